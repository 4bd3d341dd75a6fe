#!/usr/bin/env bash
# Runs every fuzz target of both modules for as long as $1 says (default 10s), or
# as often (5000x). At the end of a time go test now and then fails with nothing
# but "context deadline exceeded", so what must not fail by chance should count.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}

targets=0
for package in $(go list ./... ./papers/...); do
	listed=$(go test -list '^Fuzz' "$package")
	for name in $(grep '^Fuzz' <<<"$listed" || true); do
		echo "fuzz $package $name for $time"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$package"
		targets=$((targets + 1))
	done
done
echo "$targets fuzz targets, no findings"
