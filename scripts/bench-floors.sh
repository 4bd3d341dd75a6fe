#!/usr/bin/env bash
# Prints what each stage of the work on a fabric takes beside the least that this
# machine would take for it, and beside its peer. Arguments go to scripts/bench, as
# -floors 36 -peers=false; see docs/performance.md.
set -euo pipefail
cd "$(dirname "$0")/.."
make -s build # what is measured is bin/
go run ./scripts/bench -route '' -mesh '' -audit '' -discover '' -layered '' -plugin '' -floors 24,30x30 "$@"
