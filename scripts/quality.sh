#!/usr/bin/env bash
# Measures how damage changes our engines and OpenSM's, which run on ibsim, into $1 (default
# bin/quality), and takes the tables into docs/dev/quality.md. It takes half an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-bin/quality}
page=docs/dev/quality.md
mkdir -p "$out"

bin/ibweave gen fattree --radix 12 --levels 3 -o "$out/fabric.txt"
for damage in cables switches; do
	# Engines that cannot route a damaged tree are in the tables.
	bin/ibweave compare -t "$out/fabric.txt" --damage "$damage" --hottest 0 --fail-on never \
		-e fattree,layered,updn,minhop,opensm:ftree,opensm:updn,opensm:minhop,opensm:dfsssp,opensm:nue,opensm:lash >"$out/$damage.table"
done

# The lines between the markers are the tables.
awk -v out="$out" '
	/^<!-- end -->$/ { inside = 0 }
	!inside { print }
	/^<!-- table of [a-z]+ -->$/ {
		inside = 1
		print "```text"
		while ((getline line <(out "/" $4 ".table")) > 0) print line
		print "```"
	}
' "$page" >"$page.new"
mv "$page.new" "$page"
