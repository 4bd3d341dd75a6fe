#!/usr/bin/env bash
# Measures all figures of the papers into $1 (default bin/figures; what is there
# is kept), and takes the verdicts and the pictures that docs/reproduction.md shows
# into docs. An interrupted run goes on where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
figures=${1:-bin/figures}
page=docs/reproduction.md

bin/ibweave reproduce all --seed 1,2,3 -o "$figures" >"$figures.txt"

# A picture that the page shows, as docs/reproduction/PAPER/FIGURE.svg or .png.
grep -oE '\(reproduction/[^)]+\.(svg|png)\)' "$page" | tr -d '()' | sort -u | while read -r picture; do
	mkdir -p "docs/$(dirname "$picture")"
	cp "$figures/${picture#reproduction/}" "docs/$picture"
done

# The lines between the markers of a paper are its table.
awk -v figures="$figures" '
	/^<!-- end of verdicts -->$/ { inside = 0 }
	!inside { print }
	/^<!-- verdicts of [^ ]+ -->$/ {
		file = figures "/" $4 "/verdicts.md"
		lines = 0
		while ((getline line <file) > 0) { print line; lines++ }
		if (!lines) { print file ": nothing there" >"/dev/stderr"; exit 1 }
		inside = 1
	}
' "$page" >"$page.new"
mv "$page.new" "$page"
tail -n 2 "$figures.txt"
