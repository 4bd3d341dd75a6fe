#!/usr/bin/env bash
# Runs every fuzz target of both modules for as long as $1 says (default 10s), or
# as often (5000x). At the end of a time a target now and then fails with nothing
# but "context deadline exceeded", so what must not fail by chance should count.
# The sources tell which packages have targets, and only those are linked, once each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
cache=$(go env GOCACHE)/fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sources='{{.ImportPath}} {{.Dir}}{{$p := .}}{{range .TestGoFiles}} {{$p.Dir}}/{{.}}{{end}}{{range .XTestGoFiles}} {{$p.Dir}}/{{.}}{{end}}'
packages=$(go list -f "$sources" ./... ./papers/...)
targets=0
while read -r package dir files; do
	names=$([ -z "$files" ] || sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $files)
	[ -n "$names" ] || continue
	go test -c -vet=off -ldflags=-w -fuzz Fuzz -o "$work/fuzz.test" "$package"
	for name in $names; do
		echo "fuzz $package $name for $time"
		(cd "$dir" && "$work/fuzz.test" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "$time" -test.fuzzcachedir "$cache/$package")
		targets=$((targets + 1))
	done
done <<<"$packages"
echo "$targets fuzz targets, no findings"
