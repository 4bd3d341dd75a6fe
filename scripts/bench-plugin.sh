#!/usr/bin/env bash
# Prints the time inside the plugin's callbacks against OpenSM's own updn, and what
# OpenSM takes with an engine that does nothing. Arguments go to scripts/bench.
set -euo pipefail
cd "$(dirname "$0")/.."
make -s build # what is measured is bin/
go run ./scripts/bench -only plugin -plugin 24,36 -runs 3 "$@"
