#!/usr/bin/env bash
# Fails if there are functions of either module that no program reaches, besides those of
# scripts/deadcode.exempt, and if one of its lines exempts nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra deadcode <<<"${DEADCODE:?run make lint}"

# deadcode does not know that OpenSM calls what the plugin exports to C. In a copy of the
# tree a function calls all of that.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z '*.go' '*.[ch]' go.mod go.sum go.work papers/go.mod papers/go.sum report/page/assets scripts/deadcode.exempt | tar -c --null -T - | tar -x -C "$copy"
cd "$copy"
plugin=cmd/ibweave-opensm
tags=()
if [ -e /usr/include/infiniband/opensm/osm_opensm.h ]; then
	tags=(-tags opensm)
	{
		printf '//go:build opensm\n\npackage main\n\nimport "reflect"\n\nfunc init() {\n'
		sed -n 's|^//export \(.*\)|\treflect.ValueOf(\1).Call(nil)|p' $plugin/bridge.go
		echo '}'
	} >$plugin/exported.go
fi
# Nor does it know that the worker of a page calls what cmd/ibweave-page exports.
printf 'package main\n\nfunc init() { new(server).answer(nil) }\n' >cmd/ibweave-page/exported.go
# cgo's wrappers of exported functions are called from C alone.
dead=$("${deadcode[@]}" "${tags[@]}" ./cmd/... ./scripts/... ./papers/cmd/... | grep -v "unreachable func: _cgoexp_" || true)
if [ ${#tags[@]} = 0 ]; then
	dead=$(grep -v "^$plugin/" <<<"$dead" || true) # its bridge needs OpenSM's headers
fi

bad=0
while read -r pattern _; do
	case $pattern in '' | '#'*) continue ;; esac
	if ! grep -qE "^$pattern:" <<<"$dead"; then
		echo "scripts/deadcode.exempt: $pattern exempts nothing" >&2
		bad=1
	fi
	dead=$(grep -vE "^$pattern:" <<<"$dead" || true)
done <scripts/deadcode.exempt
if [ -n "$dead" ]; then
	echo "no program reaches these functions:" >&2
	echo "$dead" >&2
	bad=1
fi
exit $bad
