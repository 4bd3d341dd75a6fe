#!/usr/bin/env bash
# Tries the plugin in the OpenSM of Debian 13, as root:
#
#     scripts/debian13.sh [FOLDER]
#
# It installs Debian 13 with opensm and ibsim-utils into a folder, by debootstrap, unless the
# folder has it already, and rehearses tables there by files and by the plugin of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(realpath -m "${1:-bin/debian13}")

if [ "$(id -u)" != 0 ]; then
	echo "debootstrap and chroot need root" >&2
	exit 1
fi
if ! command -v debootstrap >/dev/null; then
	echo "missing: debootstrap; run this and try again: apt-get install debootstrap" >&2
	exit 1
fi
make build
if [ ! -e "$root/usr/sbin/opensm" ]; then
	debootstrap --variant=minbase --include=opensm,ibsim-utils trixie "$root" http://deb.debian.org/debian >"$root.log"
fi
cp bin/ibweave "$root/usr/local/bin/"
cp bin/libibweave-opensm.so "$root/usr/local/lib/"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
trap 'umount "$root/proc" "$root/dev" "$root/tmp"' EXIT
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
