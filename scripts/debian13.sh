#!/usr/bin/env bash
# Tries the plugin in the OpenSM of Debian 13, as root:
#
#     scripts/debian13.sh [--where-possible] [FOLDER]
#
# It installs Debian 13 with opensm and ibsim-utils into a folder, by debootstrap, unless the
# folder has it already, and rehearses tables there by files and by the plugin of this machine.
# With --where-possible, a machine that cannot install or mount it is no failure.
set -euo pipefail
export LC_ALL=C # of messages that are searched
cd "$(dirname "$0")/.."
status=1
if [ "${1-}" = --where-possible ]; then
	status=0
	shift
fi
root=$(realpath -m "${1:-bin/debian13}")

# unable says why Debian 13 is not tried, and ends.
unable() {
	echo "Debian 13 is not tried: $1" >&2
	exit $status
}

[ "$(id -u)" = 0 ] || unable "debootstrap and chroot need root"
if ! command -v debootstrap >/dev/null; then
	apt-get install -y -qq debootstrap >/dev/null 2>&1 || unable "debootstrap is missing; run this and try again: apt-get install debootstrap"
fi
make build
if [ ! -e "$root/usr/sbin/opensm" ]; then
	mkdir -p "$root"
	debootstrap --variant=minbase --include=opensm,ibsim-utils trixie "$root" http://deb.debian.org/debian >"$root.log" 2>&1 ||
		unable "debootstrap ends with: $(tail -n 1 "$root.log")"
fi
cp bin/ibweave "$root/usr/local/bin/"
cp bin/libibweave-opensm.so "$root/usr/local/lib/"
mounted=()
trap 'for dir in "${mounted[@]}"; do umount "$dir"; done' EXIT
attach() {
	mount "$@" || unable "mount $* is not allowed here"
	mounted+=("${@: -1}")
}
attach -t proc proc "$root/proc"
attach --bind /dev "$root/dev"
attach -t tmpfs tmpfs "$root/tmp"
chroot "$root" sh -e <<'TEST'
cd /tmp
dpkg-query -W opensm ibsim-utils infiniband-diags
ibweave gen torus --dims 4x4 --hosts 2 -o torus
ibweave compile -t torus -e xy -o lanes >/dev/null
ibweave gen fattree --radix 8 --levels 3 -o tree
ibweave compile -t tree -e updn -o tables >/dev/null
ibweave rehearse tables
ibweave rehearse tables --via plugin --plugin /usr/local/lib/libibweave-opensm.so
ibweave rehearse lanes --via plugin --plugin /usr/local/lib/libibweave-opensm.so
TEST
