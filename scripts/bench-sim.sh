#!/usr/bin/env bash
# Measures how a sweep of ibweave sim scales from one core to $1 (default 2): the same
# sixteen points by one job at a time and by $1, turn by turn, $2 times (default 3). Prints the
# ratio of the wall times, of the fastest runs, and of the CPU times, which says how
# much the jobs cost each other. Wants a machine with nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2} runs=${2:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/ibweave" ./cmd/ibweave
"$dir/ibweave" gen mesh --dims 16x16 -o "$dir/mesh" >/dev/null
"$dir/ibweave" compile -t "$dir/mesh" -e xy -o "$dir/tables" >/dev/null
TIMEFORMAT='%R %U'
for ((run = 0; run < runs; run++)); do
	for n in 1 "$jobs"; do
		{ time "$dir/ibweave" sim "$dir/tables" --load 0.08,0.11,0.14,0.15 --seed 1,2,3,4 --error 0 \
			--max-time 200us --jobs "$n" --format csv -o "$dir/$n.csv" >/dev/null; } 2>>"$dir/$n.times"
	done
	cmp "$dir/1.csv" "$dir/$jobs.csv"
done
sort -n "$dir/1.times" | head -n 1 >"$dir/1.best"
sort -n "$dir/$jobs.times" | head -n 1 >"$dir/$jobs.best"
read -r wall1 cpu1 <"$dir/1.best"
read -r walln cpun <"$dir/$jobs.best"
awk -v n="$jobs" -v a="$wall1" -v b="$walln" -v c="$cpu1" -v d="$cpun" 'BEGIN {
	printf "1 job   %7.2f s, %7.2f s of CPU\n%d jobs  %7.2f s, %7.2f s of CPU\n", a, c, n, b, d
	printf "%.2f times as fast; %.2f of the CPU time for the same results\n", a / b, d / c
}'
