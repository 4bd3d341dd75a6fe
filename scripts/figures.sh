#!/usr/bin/env bash
# Measures all figures of the papers into $1 (default bin/figures; what is there is kept)
# with seeds 1, 2 and 3, and takes them into docs/papers: data, tables and pictures. An
# interrupted run goes on where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
figures=$(realpath -m "${1:-bin/figures}")

bin/ibweave-papers reproduce all --seed 1,2,3 -o "$figures" >"$figures.txt"
"${GO:-go}" test ./papers/reproduce -run TestPages -count=1 -args -update -figures "$figures"
tail -n 2 "$figures.txt"
