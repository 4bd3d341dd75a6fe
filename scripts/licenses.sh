#!/usr/bin/env bash
# Prints the licences of all that is linked into the programs and the plugin: go
# itself, and each module that is not ours.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

print() { # name, folder
	local files=() file
	for file in "$2"/{LICENSE,LICENSE.*,License.txt,UNLICENSE,NOTICE,PATENTS}; do
		[ ! -f "$file" ] || files+=("$file")
	done
	if [ ${#files[@]} = 0 ]; then
		echo "$1 has no licence in $2" >&2
		exit 1
	fi
	for file in "${files[@]}"; do
		printf '%s\n%s\n\n' "$1, ${file##*/}" "${1//?/=}"
		tr -d '\r' <"$file"
		printf '\n\n'
	done
}

print "Go's standard library, $("$go" env GOVERSION)" "$("$go" env GOROOT)"
modules=$("$go" list -deps -tags opensm -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}|{{.Dir}}{{end}}{{end}}' ./cmd/ibweave ./cmd/ibweave-opensm ./papers/cmd/ibweave-papers)
while IFS='|' read -r name dir; do
	print "$name" "$dir"
done < <(LC_ALL=C sort -u <<<"$modules")
