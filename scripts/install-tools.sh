#!/usr/bin/env bash
# Makes sure that the programs which make test runs are here, and what the plugin is built
# with; with the argument all those of make test-all, too, and what packages are built with. As
# root, or with sudo that asks for no password, it installs what is missing; otherwise it says
# what to install.
set -euo pipefail

declare -A package=(
	[opensm]=opensm
	[ibsim]=ibsim-utils
	[ibnetdiscover]=infiniband-diags
	[dump_lfts]=infiniband-diags
	[ibroute]=infiniband-diags
	[ibdmchk]=ibutils
	[gcc]=gcc
)
[ "${1-}" != all ] || package+=(
	[chromium]=chromium
	[firefox-esr]=firefox-esr
	[prometheus]=prometheus
	[promtool]=prometheus
	[slurmctld]=slurmctld
	[slurmd]=slurmd
	[sbatch]=slurm-client
	[groff]=groff-base
	[jq]=jq
	[dh]=debhelper
	[dpkg-buildpackage]=dpkg-dev
	[fakeroot]=fakeroot
	[rpmbuild]=rpm
)
PATH=$PATH:/usr/sbin:/sbin

missing=()
for program in "${!package[@]}"; do
	command -v "$program" >/dev/null || missing+=("${package[$program]}")
done
[ -e /usr/include/infiniband/opensm/osm_opensm.h ] || missing+=(libopensm-dev)
[ -e /usr/include/infiniband/umad.h ] || missing+=(libibumad-dev)
[ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)
[ ${#missing[@]} -gt 0 ] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if ! command -v apt-get >/dev/null; then
	echo "missing: ${missing[*]} (names of Debian packages); install them and try again" >&2
	exit 1
fi
if [ "$(id -u)" = 0 ]; then
	as_root=(env DEBIAN_FRONTEND=noninteractive)
elif sudo -n true 2>/dev/null; then
	as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
else
	echo "missing: ${missing[*]}; run this and try again:" >&2
	echo "    sudo apt-get update && sudo ${install[*]}" >&2
	exit 1
fi
echo "installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" "${install[@]}" >/dev/null
