#!/usr/bin/env bash
# Fails if there are functions that no program reaches, besides those of
# scripts/deadcode.exempt, and if one of its lines exempts nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
deadcode=golang.org/x/tools/cmd/deadcode@latest
tags=()
if [ -e /usr/include/infiniband/opensm/osm_opensm.h ]; then
	tags=(-tags opensm)
fi
dead=$(go run "$deadcode" "${tags[@]}" ./cmd/... ./scripts/...)
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
