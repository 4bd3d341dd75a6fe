#!/usr/bin/env bash
# Says whether a change of the source changes any output: compiles some 30 fabrics with
# every engine and multicast scheme, runs check, diff, whatif and compare on them, and
# keeps the SHA-256 of all that they print and write.
#
#     scripts/guard.sh before             # at the commit before: outputs and sums into a folder
#     scripts/guard.sh after before       # "same", or which outputs differ, and exit status 1
#
# GUARD_FABRICS names more topologies, separated by blanks: captures that are not ours to
# ship. GUARD_ONLY is a regular expression of fabrics, for a quick look. Times are left
# out; everything else counts, error messages and exit statuses too.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${1:?usage: scripts/guard.sh FOLDER [FOLDER-OF-BEFORE]}")
before=${2:+$(realpath "$2")}
rm -rf "$to"
mkdir -p "$to/fabrics" "$to/damaged" "$to/out"
export bin="$to/ibweave" to
go build -trimpath -buildvcs=false -o "$bin" ./cmd/ibweave

# NAME: arguments of gen
fabrics='
mesh4: mesh --dims 4x4
mesh9x7: mesh --dims 9x7 --hosts 2
mesh345: mesh --dims 3x4x5
mesh8cut: mesh --dims 8x8 --drop-links 3 --seed 7
torus5: torus --dims 5x5
torus6x4: torus --dims 6x4 --hosts 2
torus444: torus --dims 4x4x4
torus6cut: torus --dims 6x6 --drop-links 4 --seed 3
wrapx: mesh --dims 6x5 --wrap x
cube4: hypercube --dim 4
cube6cut: hypercube --dim 6 --drop-links 5 --seed 2
tree8: fattree --radix 8 --levels 2
tree8cut: fattree --radix 8 --levels 2 --drop-links 5 --seed 4
tree6: fattree --radix 6 --levels 3
tree8l3: fattree --radix 8 --levels 3
tree8l3cut: fattree --radix 8 --levels 3 --drop-links 12 --seed 5
tree12few: fattree --radix 12 --levels 2 --hosts-per-leaf 3
tree16: fattree --radix 16 --levels 2
shuffle: shufflenet --p 2 --k 3
shuffle3: shufflenet --p 3 --k 2
myrinet4: myrinet4
lattice16: lattice --switches 16 --seed 1
lattice64: lattice --switches 64 --seed 9
banyan3: banyan --stages 3
banyan4w: banyan --stages 4 --wrap-around
irregular9: irregular --switches 9 --degree 4 --hosts 12 --seed 5
irregular40: irregular --switches 40 --degree 5 --hosts 80 --seed 6
irregular40cut: irregular --switches 40 --degree 5 --hosts 80 --seed 6 --drop-links 9
ring8: mesh --dims 8 --wrap
line3: mesh --dims 3
'
engines=(updn minhop layered fattree spam xy negative-first west-first north-last banyan)
export schemes="default union union-row union-merge comb updn-tree spam opensm region"

only="^(${GUARD_ONLY:-.*})\$"
while IFS=: read -r name gen; do
	[[ -n $name && $name =~ $only ]] || continue
	read -ra words <<<"$gen"
	"$bin" gen "${words[@]}" >"$to/fabrics/$name"
	"$bin" gen "${words[@]}" --drop-links 1 --seed 11 >"$to/damaged/$name" 2>/dev/null || rm "$to/damaged/$name"
done <<<"$fabrics"
for capture in ${GUARD_FABRICS:-}; do
	[[ ! $(basename "$capture") =~ $only ]] || cp "$capture" "$to/fabrics/$(basename "$capture")"
done
cat >"$to/groups.yaml" <<'END'
groups:
  - {name: all, receivers: ["re:."]}
  - {name: one sender, receivers: ["re:[02468]$"], senders: ["re:[ ,]1$"]}
  - {name: some, receivers: ["re:[ ,][0-3]$"]}
END

# run NAME COMMAND..: keeps what a command prints and its status, without times.
run() {
	local name=$1 status=0
	shift
	"$@" >"out/$name" 2>"out/$name.err" || status=$?
	sed -i -E -e '/^seconds (  |to )/d' -e '/"seconds": \{/,/\}/d' -e "s#$to/##g" "out/$name"
	sed -i -e "s#$to/##g" "out/$name.err"
	echo "status $status" >>"out/$name.err"
}
# one FABRIC ENGINE: all commands on a fabric with an engine.
one() {
	local f=$1 e=$2 x=$1-$2 sample=6
	cd "$to"
	mkdir -p "dir/$x"
	run "$x.compile" "$bin" compile -t "fabrics/$f" -e "$e" -o "dir/$x/plain"
	[ -e "dir/$x/plain/manifest.json" ] || return 0
	run "$x.compile-json" "$bin" compile -t "fabrics/$f" -e "$e" --lmc 1 --lids dense --format json -o "dir/$x/lmc"
	run "$x.check" "$bin" check "dir/$x/plain"
	run "$x.check-json" "$bin" check "dir/$x/plain" --wiring --format json
	run "$x.check-sarif" "$bin" check "dir/$x/lmc" --format sarif
	run "$x.whatif" "$bin" whatif -t "fabrics/$f" -e "$e" --fail links --sample $sample --format json
	run "$x.whatif2" "$bin" whatif -t "fabrics/$f" -e "$e" --fail switches --depth 2 --sample $sample
	run "$x.diff" "$bin" diff "dir/$f-updn/plain" "dir/$x/plain"
	run "$x.diff-json" "$bin" diff "dir/$x/plain" "dir/$f-updn/plain" --format json
	run "$x.report" "$bin" report "dir/$x/plain" -o "dir/$x/report.html"
	if [ -e "damaged/$f" ]; then
		run "$x.kept" "$bin" compile -t "damaged/$f" -e "$e" --previous "dir/$x/plain" -o "dir/$x/kept"
		[ ! -e "dir/$x/kept/manifest.json" ] || run "$x.kept-diff" "$bin" diff "dir/$x/plain" "dir/$x/kept"
	fi
	local s flag
	for s in $schemes; do
		flag=(--mcast "$s")
		[ "$s" != default ] || flag=()
		run "$x.mcast-$s" "$bin" compile -t "fabrics/$f" -e "$e" -g groups.yaml "${flag[@]}" -o "dir/$x/mcast-$s"
		[ -e "dir/$x/mcast-$s/manifest.json" ] || continue
		run "$x.mcheck-$s" "$bin" check "dir/$x/mcast-$s" --format json
		run "$x.mdiff-$s" "$bin" diff "dir/$x/mcast-default" "dir/$x/mcast-$s"
	done
}
export -f run one
for f in $(ls "$to/fabrics"); do # diff compares with updn, which comes first
	one "$f" updn
	printf '%s\n' "${engines[@]:1}" | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'one "$@"' one "$f" {}
	(cd "$to" && run "$f.compare" "$bin" compare -t "fabrics/$f" -e updn,minhop,layered --bisections 50)
done
cd "$to"
find fabrics damaged out dir -type f | LC_ALL=C sort | xargs -d '\n' sha256sum >sums
echo "$(wc -l <sums) outputs of $(ls fabrics | wc -l) fabrics: $(sha256sum <sums | cut -c 1-16)"
[ -n "$before" ] || exit 0
names="[0-9a-f]*  (fabrics|damaged|out|dir)/(${GUARD_ONLY:-.*})([-.].*)?"
if changed=$(diff <(grep -xE "$names" "$before/sums") sums | sed -n 's/^[<>] [0-9a-f]*  //p' | LC_ALL=C sort -u) && [ -z "$changed" ]; then
	echo same
	exit 0
fi
echo "$(wc -l <<<"$changed") outputs differ; compare them in $before and $to:"
head -n 40 <<<"$changed"
exit 1
