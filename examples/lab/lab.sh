#!/bin/sh
# A fabric to practise on: ibsim with a topology, and OpenSM as its subnet manager. All files are
# in ./lab. infiniband-diags, and ibweave with --ibsim, work on it after ". lab/env".
#
#   lab.sh start FILE [CONF]   ibsim with the topology in FILE; OpenSM with the lines of CONF
#   lab.sh restart             OpenSM again, as after systemctl restart opensm
#   lab.sh unplug NODE [PORT]  one cable of a node, or all
#   lab.sh plug NODE [PORT]    back to where it was
#   lab.sh stop                ends both
set -eu
preload=$(ls /usr/lib/umad2sim/libumad2sim.so /usr/lib*/*/umad2sim/libumad2sim.so 2>/dev/null | head -n 1)

fail() {
	echo "lab.sh: $*" >&2
	exit 1
}

# wrap makes lab/bin/NAME, which runs the installed program on ibsim. What the simulator says
# of each connection goes to lab/warnings.
wrap() {
	program=$(PATH=$PATH:/usr/sbin command -v "$1") || return 0
	printf '#!/bin/sh\nexec env LD_PRELOAD=%s %s "$@" 2>>%s/lab/warnings\n' "$preload" "$program" "$PWD" >lab/bin/"$1"
	chmod +x lab/bin/"$1"
}

# runs says whether the process in a file of its number runs.
runs() { [ -f "$1" ] && grep -q '^State:[[:space:]]*[^Z]' /proc/"$(cat "$1")"/status 2>/dev/null; }

# ends stops it.
ends() {
	while runs "$1"; do
		kill "$(cat "$1")" 2>/dev/null || :
		sleep 0.2
	done
	rm -f "$1"
}

# ups counts how often the subnet came up.
ups() { cat lab/opensm.log 2>/dev/null | grep -c 'SUBNET UP' || :; }

# until_up waits until OpenSM has brought the subnet up once more.
until_up() {
	for _ in $(seq 600); do
		[ "$(ups)" -gt "${1:-0}" ] && return
		runs lab/opensm.pid || fail "OpenSM has ended: lab/opensm.out, lab/opensm.log"
		sleep 0.1
	done
	fail "the subnet does not come up: lab/opensm.log"
}

# start_opensm starts OpenSM, or another one in its place.
start_opensm() {
	ends lab/opensm.pid
	rm -f lab/opensm.log
	OSM_TMP_DIR=lab OSM_CACHE_DIR=lab/cache LD_LIBRARY_PATH=$(dirname "$(command -v ibweave)"):${LD_LIBRARY_PATH:-} \
		LD_PRELOAD=$preload /usr/sbin/opensm -F lab/opensm.conf -f "$PWD/lab/opensm.log" >lab/opensm.out 2>&1 </dev/null 3>&- &
	echo $! >lab/opensm.pid
	until_up
}

# sweep has OpenSM look at the fabric again; a real one is told by a trap.
sweep() {
	before=$(ups)
	kill -HUP "$(cat lab/opensm.pid)"
	until_up "$before"
}

# tell gives ibsim a command: Unlink or ReLink, for all ports of a node or one.
tell() {
	# The quoted words of a node's line are its id and its name. No character of the name is special.
	id=$(name=$2 awk -F '"' '/^[A-Z]/ && index($0, "# \"" ENVIRON["name"] "\"") { print $2 }' lab/fabric)
	[ -n "$id" ] || fail "the fabric has no node \"$2\""
	printf '%s "%s"%s\n' "$1" "$id" "${3:+[$3]}" >lab/console
	sleep 0.2
	sweep
}

case ${1:-} in
start)
	[ -n "$preload" ] || fail "libumad2sim.so is missing: install ibsim-utils, opensm and infiniband-diags"
	[ ! -e lab/ibsim.pid ] || fail "it runs already: lab.sh stop"
	mkdir -p lab/bin lab/cache
	for name in ibnetdiscover ibnodes iblinkinfo perfquery saquery smpquery ibroute dump_lfts dump_fts; do wrap $name; done
	export IBSIM_SOCKNAME=lab-$$
	printf 'export IBSIM_SOCKNAME=%s\nPATH=%s/lab/bin:$PATH\n' $IBSIM_SOCKNAME "$PWD" >lab/env
	mkfifo lab/console
	cp "$2" lab/fabric
	: >lab/ibsim.log
	ibsim -s "$2" <>lab/console >>lab/ibsim.log 2>&1 &
	echo $! >lab/ibsim.pid
	# OpenSM looks at the fabric when unplug and plug tell it to, and not by a clock besides.
	printf 'force_log_flush TRUE\nsweep_interval 0\n' >lab/opensm.conf
	[ -z "${3:-}" ] || cat "$3" >>lab/opensm.conf
	for _ in $(seq 100); do grep -q 'sim>' lab/ibsim.log && break; sleep 0.1; done
	start_opensm
	;;
restart) . lab/env && start_opensm ;;
unplug) . lab/env && tell Unlink "$2" "${3:-}" ;;
plug) . lab/env && tell ReLink "$2" "${3:-}" ;;
stop)
	ends lab/opensm.pid
	ends lab/ibsim.pid
	rm -rf lab
	;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" ;;
esac
