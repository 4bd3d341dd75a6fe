#!/usr/bin/env bash
# Builds the packages, installs them, has OpenSM route with the installed plugin by
# its name, and purges them: then nothing is left. Likewise make install and
# uninstall.
#
# All of it happens in a folder of its own, as any user: dpkg has a database there in
# which opensm and libc6 are as on this machine.
set -euo pipefail
export LC_ALL=C # of messages that are searched
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/sbin:/sbin
. scripts/packages.sh
packages() { # arguments of dpkg
	local as=()
	[ "$(id -u)" = 0 ] || as=(fakeroot)
	"${as[@]}" dpkg --root="$root" --force-script-chrootless --no-debsig "$@" >"$work/dpkg" 2>&1
}
# The files that are left, without dpkg's own.
left() { (cd "$1" && find . -path ./var/lib/dpkg -prune -o -type f -print) | sort; }

DEB_BUILD_OPTIONS=noautodbgsym scripts/deb.sh "$work/deb" >/dev/null
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root/var/log"

# With another version of OpenSM the plugin cannot be configured.
dpkg-query -s opensm libc6 >"$work/status"
sed 's/^Version: 3\.3\.[0-9]*/Version: 3.3.99/' "$work/status" >"$root/var/lib/dpkg/status"
! packages -i "$work"/deb/*.deb || fail 'the plugin was installed beside an OpenSM that does not load it'
grep -q 'ibweave-opensm depends on opensm (<< 3.3.[0-9]*.~)' "$work/dpkg" || fail 'dpkg does not say that OpenSM has another version' "$work/dpkg"
packages --purge ibweave-opensm ibweave-papers ibweave || fail 'purge of packages that are not configured' "$work/dpkg"
cp "$work/status" "$root/var/lib/dpkg/status"
packages -i "$work"/deb/*.deb || fail 'dpkg -i' "$work/dpkg"

ibweave=$root/usr/bin/ibweave
lib=$(dirname "$root"/usr/lib/*/libibweave-opensm.so)
for page in ibweave ibweave-compile ibweave-path ibweave-rehearse ibweave-papers ibweave-papers-reproduce; do
	zcat "$root/usr/share/man/man1/$page.1.gz" | grep -q '^\.TH' || fail "the manual page of $page"
done
for program in ibweave ibweave-papers; do
	bash -c ". '$root/usr/share/bash-completion/completions/$program' && complete -p $program" >/dev/null || fail "completion of $program"
done
owned=$(cd "$work/deb" && dpkg-deb -c ibweave_*.deb | grep -c ibweave-papers || true)
[ "$owned" = 0 ] || fail 'ibweave has files of ibweave-papers'
"$root/usr/bin/ibweave-papers" reproduce min/region | grep -q 'holds$' || fail 'ibweave-papers'

# OpenSM finds the plugin by its name and has the configuration as it is installed.
"$ibweave" gen mesh --dims 4x4 -o "$work/mesh.txt" 2>/dev/null
"$ibweave" compile -t "$work/mesh.txt" -e xy -o "$work/tables" >/dev/null
cat >"$work/opensm.conf" <<CONF
event_plugin_name ibweave-opensm
event_plugin_options --config $root/etc/opensm/ibweave.yaml
routing_engine ibweave-xy,no_fallback
log_file $root/var/log/opensm.log
CONF
"$ibweave" report "$work/tables" --interactive -o "$work/page.html" >"$work/page" 2>&1 || fail 'the page has no compiler' "$work/page"
export IBSIM_SOCKNAME=ibweave-$$ OSM_TMP_DIR=$work OSM_CACHE_DIR=$work
mkfifo "$work/console"
ibsim -s "$work/tables/fabric.ibnetdiscover" <"$work/console" >"$work/ibsim" 2>&1 &
ibsim=$!
exec 3>"$work/console"
until grep -q 'sim>' "$work/ibsim"; do
	kill -0 "$ibsim" || fail 'ibsim' "$work/ibsim"
	sleep 0.1
done
umad=$(echo /usr/lib/*/umad2sim/libumad2sim.so)
LD_LIBRARY_PATH=$lib LD_PRELOAD=$umad timeout 60 opensm -F "$work/opensm.conf" -D 0x03 -o >"$work/opensm" 2>&1 || fail 'opensm' "$work/opensm"
log=$root/var/log/opensm.log
grep -q 'SUBNET UP' "$log" || fail 'OpenSM did not bring the subnet up' "$log"
grep -q 'ibweave: ibweave-xy: 16 switches' "$log" || fail 'OpenSM did not route with ibweave-xy' "$log"
! grep -q 'ERR IBW' "$log" || fail 'the plugin complains' "$log"
grep -q routed "$root/var/log/ibweave.log" || fail 'the plugin has no log'
LD_PRELOAD=$umad dump_lfts >"$work/switches" 2>/dev/null
"$ibweave" diff "$work/tables/opensm-lfts.dump" "$work/switches" -t "$work/tables/fabric.ibnetdiscover" >"$work/diff" || fail 'the switches have other tables than compile makes' "$work/diff"

packages --purge ibweave-opensm ibweave-papers ibweave || fail 'dpkg --purge' "$work/dpkg"
[ "$(left "$root")" = ./var/log/opensm.log ] || fail "purge leaves: $(left "$root")"

# From source, to another prefix. Configuration that was changed stays.
make -s build
install() { make -s "$@" DESTDIR="$work/made" PREFIX=/opt LIBDIR=/opt/lib >/dev/null || fail "make $*"; }
install install
for file in bin/ibweave bin/ibweave-papers lib/libibweave-opensm.so share/man/man1/ibweave.1 lib/systemd/system/opensm@.service.d/ibweave.conf; do
	[ -s "$work/made/opt/$file" ] || fail "make install has not installed $file"
done
echo 'timeout: 1m' >>"$work/made/etc/opensm/ibweave.yaml"
install install
install uninstall
[ "$(left "$work/made")" = ./etc/opensm/ibweave.yaml ] || fail "make uninstall leaves: $(left "$work/made")"
cp cmd/ibweave-opensm/ibweave.yaml "$work/made/etc/opensm/ibweave.yaml"
install uninstall
[ -z "$(left "$work/made")" ] || fail "make uninstall leaves: $(left "$work/made")"
echo 'test-deb: built, installed, routed a 4x4 mesh, and removed without a trace'
