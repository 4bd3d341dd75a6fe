#!/usr/bin/env bash
# Prints ibweave's times against OpenSM's and ibdmchk's, then Go benchmarks.
# Arguments go to scripts/bench, see go run ./scripts/bench -h.
set -euo pipefail
cd "$(dirname "$0")/.."
make -s build # what is measured is bin/
go run ./scripts/bench "$@"
echo
go test -run '^$' -bench . -benchtime 3x ./... ./papers/...
