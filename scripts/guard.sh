#!/usr/bin/env bash
# Compares every output of two commits: compiles some 35 fabrics with every engine and
# multicast scheme, runs every command that needs no live fabric on what came out, whole and
# damaged, and all examples, and keeps the SHA-256 of all that they print and write.
#
#     scripts/guard.sh before             # at the commit before: outputs and sums into a folder
#     scripts/guard.sh after before       # "same", or which outputs differ, and exit status 1
#
# GUARD_FABRICS names captures that are not ours to ship, separated by blanks: topologies, or
# folders and runs of ibdiagnet. GUARD_ONLY is a regular expression of fabrics, for a quick
# look. Times are left out; everything else counts, error messages and exit statuses too.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${1:?usage: scripts/guard.sh FOLDER [FOLDER-OF-BEFORE]}")
before=${2:+$(realpath "$2")}
rm -rf "$to"
mkdir -p "$to/fabrics" "$to/damaged" "$to/gen" "$to/examples" "$to/out"
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
site: tree --leaves 6 --hosts 8 --spines 3 --parallel 2 --names site
pods: tree --pods 2 --leaves 4,3 --hosts 6 --spines 4 --cores 4 --names site
rails: tree --leaves 2 --rails 4 --hosts 8 --spines 4 --ports 40 --names site
sharp: tree --leaves 6 --hosts 8 --spines 3 --names mixed --aggregation-nodes
director: director --directors 2 --line-chips 4 --spine-chips 4 --leaves 4 --hosts 6 --names factory
'
engines=(updn minhop layered fattree spam xy negative-first west-first north-last banyan)
export schemes="default union union-row union-merge comb updn-tree spam opensm region"

only="^(${GUARD_ONLY:-.*})\$"
while IFS=: read -r name gen; do
	[[ -n $name && $name =~ $only ]] || continue
	read -ra words <<<"$gen"
	"$bin" gen "${words[@]}" >"$to/fabrics/$name"
	echo "$gen" >"$to/gen/$name"
	"$bin" gen "${words[@]}" --drop-links 1 --seed 11 >"$to/damaged/$name" 2>/dev/null || rm "$to/damaged/$name"
done <<<"$fabrics"
captures=" "
for capture in ${GUARD_FABRICS:-}; do
	name=$(basename "$capture")
	[[ $name =~ $only ]] || continue
	cp -r "$capture" "$to/fabrics/$name"
	captures+="$name "
done
cat >"$to/groups.yaml" <<'END'
groups:
  - {name: all, receivers: ["re:."]}
  - {name: one sender, receivers: ["re:[02468]$"], senders: ["re:[ ,]1$"]}
  - {name: some, receivers: ["re:[ ,][0-3]$"]}
END
cat >"$to/partitions.conf" <<'END'
Default=0x7fff, ipoib : ALL=full;
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
# others FABRIC ENGINE: the commands that take compiled tables, a folder of dumps or a topology.
others() {
	local f=$1 e=$2 x=$1-$2 d=dir/$1-$2/plain t=fabrics/$1 node port more
	cd "$to"
	[ -e "$d/manifest.json" ] || return 0
	mkdir -p "dir/$x/dumps"
	cp "$d/fabric.ibnetdiscover" "$d/opensm-lfts.dump" "dir/$x/dumps"
	[ ! -e "$d/opensm-sl2vl.dump" ] || cp "$d/opensm-sl2vl.dump" "dir/$x/dumps"
	run "$x.dumps" "$bin" check "dir/$x/dumps"
	run "$x.dumps-part" "$bin" check -t "$d/fabric.ibnetdiscover" --lfts "$d/opensm.fdbs" --format json
	run "$x.dumps-diff" "$bin" diff "dir/$x/dumps" "dir/$f-updn/plain" --format json
	run "$x.junit" "$bin" check "$d" --wiring --format junit
	run "$x.partitions" "$bin" check -t "$d/fabric.ibnetdiscover" --partitions partitions.conf --format json
	run "$x.drift" "$bin" drift "$d" --live "$d/opensm-lfts.dump" -v
	run "$x.drift-folder" "$bin" drift "$d" --live "dir/$f-updn/plain" --format json
	run "$x.prometheus" "$bin" drift "$d" --live "dir/$f-updn/plain" --format prometheus
	# The first switch that another switch is cabled to, and that port.
	read -r node port < <(awk '/^Switch/ { split($3, id, "\""); sub("S-", "0x", id[2]) } /^\[[0-9]+\].*"S-/ && id[2] != "" { sub("\\].*", ""); print id[2], substr($0, 2); exit }' "$d/fabric.ibnetdiscover") || true
	if [ -n "${port:-}" ]; then
		run "$x.drain" "$bin" drain "$d" --switch "$node" --cable "$node:$port" -o "dir/$x/drain"
		run "$x.drain-json" "$bin" drain "$d" --cable "$node:$port" --limit 1.5 --rebalance 1 --format json
		run "$x.without" "$bin" compile -t "$t" -e "$e" --previous "$d" --without "$node" -o "dir/$x/without"
		[ ! -e "dir/$x/without/manifest.json" ] || run "$x.states" "$bin" report "$d" "dir/$x/without" -o "dir/$x/states.html"
		printf 'edits:\n  - unplug %s:%s\n' "$node" "$port" >"dir/$x/edits.yaml"
		run "$x.move-edits" "$bin" move "$d" "dir/$x/edits.yaml" -o "dir/$x/move"
	fi
	local fewer=dir/$x/kept/fabric.ibnetdiscover # with LIDs
	if [ -e "$fewer" ]; then
		run "$x.move" "$bin" move "$d" "damaged/$f" --format json
		run "$x.move-at-once" "$bin" move "$d" "damaged/$f" --at-once 1 --write-plan "dir/$x/steps.yaml"
		run "$x.move-back" "$bin" move "dir/$x/kept" "fabrics/$f" -o "dir/$x/move-back"
		run "$x.damaged" "$bin" check -t "$fewer" --lfts "$d/opensm-lfts.dump" --wiring
		run "$x.damaged-json" "$bin" check -t "$fewer" --lfts "$d/opensm-lfts.dump" --format json
		run "$x.damaged-diff" "$bin" diff "$t" "$fewer" --format json
	fi
	awk '/^(Switch|Ca)/ { split($3, id, "\""); sub("[SH]-", "0x", id[2]); print "Errors for " id[2] } /^\[/ { sub("\\].*", ""); n = n * 7 % 1000 + 3; print "GUID " id[2] " port " substr($0, 2) ": [PortXmitData == " n * 250000 "] [SymbolErrorCounter == " n % 5 "]" }' "$d/fabric.ibnetdiscover" >"dir/$x/counters.txt"
	run "$x.counters" "$bin" counters "$d" "dir/$x/counters.txt"
	run "$x.counters-json" "$bin" counters "$d" "dir/$x/counters.txt" --format json
	# Two jobs on four of five adapters.
	awk '/^Ca/ { split($3, id, "\""); sub("H-", "0x", id[2]); k = n++ % 5; if (k < 4) job[k % 2] = job[k % 2] (n > 2 ? "," : "") id[2] } END { print "jobs:"; print "  - {name: train, hosts: \"" job[0] "\", patterns: [{pattern: allreduce-ring, size: 64M}]}"; print "  - {name: spectral, hosts: \"" job[1] "\", patterns: [{pattern: alltoall, size: 64M}]}" }' "$d/fabric.ibnetdiscover" >"dir/$x/jobs.yaml"
	run "$x.traffic" "$bin" traffic "$d" --traffic "dir/$x/jobs.yaml"
	run "$x.traffic-json" "$bin" traffic "$d" --traffic "dir/$x/jobs.yaml" --format json
	run "$x.place-jobs" "$bin" place "$d" --hosts 2 --traffic "dir/$x/jobs.yaml"
	run "$x.place" "$bin" place "$d" --hosts 3 --format json
	run "$x.fit" "$bin" compile -t "$t" -e "$e" --lenient --traffic "dir/$x/jobs.yaml" -o "dir/$x/fit"
	run "$x.bound" "$bin" compile -t "$t" -e "$e" --lenient --dry-run --write-bound "dir/$x/bound.txt"
	run "$x.rails" "$bin" rails "$d"
	run "$x.rails-json" "$bin" rails "$d" --format json
	run "$x.plan" "$bin" plan "$d"
	run "$x.path" "$bin" path "$d" "$(awk '/^Ca/ { split($3, id, "\""); sub("H-", "0x", id[2]); print id[2]; exit }' "$d/fabric.ibnetdiscover")" 2
	run "$x.path-all" "$bin" path "$d" --all-from "$(awk '/^Ca/ { split($3, id, "\""); sub("H-", "0x", id[2]); print id[2]; exit }' "$d/fabric.ibnetdiscover")"
	run "$x.sim" "$bin" sim "$d" --burst 2 --format json
	run "$x.sim-load" "$bin" sim "$d" --load 0.1 --min-messages 500 --error 0.2 --format json
	run "$x.svg" "$bin" report "$d" -o "dir/$x/second.html" --svg "dir/$x/fabric.svg"
	run "$x.adaptive" "$bin" compile -t "$t" -e "$e" --lenient --adaptive -o "dir/$x/adaptive"
	[ ! -e "dir/$x/adaptive/manifest.json" ] || {
		run "$x.adaptive-check" "$bin" check "dir/$x/adaptive" --format json
		run "$x.adaptive-far" "$bin" check -t "$d/fabric.ibnetdiscover" --far "dir/$x/adaptive/ibweave.far"
		[ ! -e "$fewer" ] || run "$x.adaptive-damaged" "$bin" check -t "$fewer" --far "dir/$x/adaptive/ibweave.far"
	}
	# The fabric alone, whatever routes it.
	[ "$e" = updn ] || return 0
	for more in --wiring "--wiring --format json" "--wiring --format sarif"; do
		run "$f.cables${more//[ -]/}" "$bin" check -t "$t" --lenient $more
	done
	run "$f.slurm" "$bin" slurm -t "$t" --lenient
	run "$f.slurm-yaml" "$bin" slurm -t "$t" --lenient --format yaml --switch-names numbers
	run "$f.choice" "$bin" compile -t "$t" --lenient --dry-run --format json
	run "$f.whatif-shard" "$bin" whatif -t "$t" -e updn --lenient --fail links --shard 1/2 --sample 8 -o "dir/$x/part1.json"
	run "$f.whatif-shard2" "$bin" whatif -t "$t" -e updn --lenient --fail links --shard 2/2 --sample 8 -o "dir/$x/part2.json"
	run "$f.merge" "$bin" merge "dir/$x/part1.json" "dir/$x/part2.json" --format json
	for more in ibdiagnet2 lst; do
		[ -e "damaged/$f" ] || continue
		read -ra words <<<"$(cat "gen/$f")"
		run "$f.form-$more" "$bin" gen "${words[@]}" --format "$more" -o "dir/$x/form-$more"
		run "$f.form-$more-check" "$bin" check -t "dir/$x/form-$more" --wiring --format json
	done
}
# example FOLDER: its commands, as its README has them.
example() {
	mkdir -p "$to/examples"
	cp -r "examples/$1" "$to/examples"
	cd "$to/examples/$1"
	PATH=$to:$PATH bash run.sh >output 2>errors || echo "status $?" >>errors
	sed -i -E -e '/^seconds (  |to )/d' -e "s#$to/##g" output errors
}
export -f others example
for f in $(ls "$to/fabrics"); do # diff compares with updn, which comes first
	one "$f" updn
	if [[ $captures == *" $f "* ]]; then # without the slow engines and schemes
		schemes=default one "$f" fattree
		schemes=default one "$f" layered
		others "$f" updn
		others "$f" fattree
		continue
	fi
	printf '%s\n' "${engines[@]:1}" | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'one "$@"' one "$f" {}
	printf '%s\n' updn fattree layered xy | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'others "$@"' others "$f" {}
	(cd "$to" && run "$f.compare" "$bin" compare -t "fabrics/$f" -e updn,minhop,layered --bisections 50)
done
if [ -z "${GUARD_ONLY:-}" ]; then
	for e in examples/*/run.sh; do basename "$(dirname "$e")"; done | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'example "$@"' example {}
	# The papers' figures and schedules, of the module that has them.
	papers=$bin
	if [ -e papers/go.mod ]; then
		papers=$to/ibweave-papers
		(cd papers && go build -trimpath -buildvcs=false -o "$papers" ./cmd/ibweave-papers)
	fi
	cd "$to"
	run reproduce "$papers" reproduce all --quick -o dir/reproduce
	for method in circuit tree tree-flood unicast doubling; do
		run "schedule-$method" "$papers" schedule dir/irregular40-updn/plain -g groups.yaml --method "$method" -o "dir/schedule-$method"
	done
	cd - >/dev/null
fi
cd "$to"
# Plans and examples have configurations with absolute paths, and their sums in manifests.
find dir examples -name '*.conf' -exec sed -i "s#$to/##g" {} +
find dir examples -name manifest.json -exec sed -i -e '/"opensm.*\.conf"/d' -e "s#$to/##g" {} +
find fabrics damaged gen out dir examples -type f | LC_ALL=C sort | xargs -d '\n' sha256sum >sums
echo "$(wc -l <sums) outputs of $(ls fabrics | wc -l) fabrics: $(sha256sum <sums | cut -c 1-16)"
[ -n "$before" ] || exit 0
names="[0-9a-f]*  (fabrics|damaged|gen|out|dir)/(${GUARD_ONLY:-.*})([-.].*)?"
if changed=$(diff <(grep -xE "$names" "$before/sums") sums | sed -n 's/^[<>] [0-9a-f]*  //p' | LC_ALL=C sort -u) && [ -z "$changed" ]; then
	echo same
	exit 0
fi
echo "$(wc -l <<<"$changed") outputs differ; compare them in $before and $to:"
head -n 40 <<<"$changed"
exit 1
