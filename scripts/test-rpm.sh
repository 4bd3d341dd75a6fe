#!/usr/bin/env bash
# Builds the packages, installs them into a root of their own as a container has it, runs ibweave and
# OpenSM with the plugin there, and removes them: then nothing is left. As root.
#
# The root has this machine's OpenSM and libraries, as a package, since there is no other
# distribution here: that the packages suit the libraries of one has to be tried there.
set -euo pipefail
export LC_ALL=C # of messages that are searched
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || exec sudo -n --preserve-env=PATH scripts/test-rpm.sh
. scripts/packages.sh
packages() { rpm --root="$root" "$@" >"$work/rpm.log" 2>&1; }
left() { (cd "$root" && find . -path ./var/lib/rpm -prune -o -path ./var/log -prune -o -path ./tmp -prune -o -type f -print) | sort; }

scripts/rpm.sh "$work/packages" >/dev/null

# What a distribution has: a shell, ldconfig, OpenSM, and umad2sim to reach ibsim.
host=$work/host
umad=$(echo /usr/lib/*/umad2sim/libumad2sim.so)
threads=$(gcc -print-file-name=libgcc_s.so.1) # which glibc loads to end a thread
for program in /bin/sh "$(command -v ldconfig)" "$(command -v opensm)" "$umad" "/usr/lib/$(gcc -print-multiarch)/${threads##*/}"; do
	for file in "$program" $({ ldd "$program" 2>/dev/null || true; } | grep -o '/[^ ]*'); do
		install -D "$file" "$host$file"
	done
done
mkdir -p "$host"/{tmp,var/log,var/cache/opensm,dev,proc,sys,etc}
version=$(sed -n 's/.*OSM_VERSION "OpenSM \([^"]*\)".*/\1/p' /usr/include/infiniband/opensm/osm_version.h)
cat >"$work/host.spec" <<SPEC
Name: opensm
Version: $version
Release: 1
Summary: what the test's root needs of a distribution
License: none
AutoReq: no
Provides: rtld(GNU_HASH), /bin/sh, /sbin/ldconfig
%description
%{summary}
%install
cp -a $host/. %{buildroot}
%files
/*
SPEC
rpmbuild -bb --quiet --define "_topdir $work/topdir" --define '_build_id_links none' --define 'debug_package %{nil}' --define '__os_install_post %{nil}' "$work/host.spec" >"$work/host.log" 2>&1 || fail 'the package of the host' "$work/host.log"

mkdir -p "$root"
packages --initdb || fail 'rpm --initdb' "$work/rpm.log"
! packages -i "$work"/packages/ibweave-opensm-*.rpm || fail 'the plugin was installed without OpenSM'
grep -q "opensm >= $version is needed by ibweave-opensm" "$work/rpm.log" || fail 'rpm does not say that OpenSM lacks' "$work/rpm.log"
packages -i "$work"/topdir/RPMS/*/opensm-*.rpm || fail 'rpm -i of the host' "$work/rpm.log"
left >"$work/before"
packages -i "$work"/packages/*.rpm || fail 'rpm -i' "$work/rpm.log"
packages -V ibweave ibweave-papers ibweave-opensm || fail 'rpm -V' "$work/rpm.log"

for page in ibweave ibweave-compile ibweave-rehearse ibweave-papers ibweave-papers-reproduce; do
	zcat "$root/usr/share/man/man1/$page.1.gz" | grep -q '^\.TH' || fail "the manual page of $page"
done
for program in ibweave ibweave-papers; do
	bash -c ". '$root/usr/share/bash-completion/completions/$program' && complete -p $program" >/dev/null || fail "completion of $program"
done
! packages -ql ibweave || ! grep -q papers "$work/rpm.log" || fail 'ibweave has files of ibweave-papers' "$work/rpm.log"
for file in usr/share/zsh/site-functions/_ibweave usr/share/fish/vendor_completions.d/ibweave.fish etc/opensm/ibweave.yaml usr/lib/systemd/system/opensm@.service.d/ibweave.conf; do
	[ -s "$root/$file" ] || fail "$file is not installed"
done

# In the root, as in a container: compile, audit, and OpenSM with the plugin by its name.
inside() { timeout 60 chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
install -D /usr/bin/env "$root/usr/bin/env"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/urandom" c 1 9
inside ibweave gen mesh --dims 4x4 -o /tmp/mesh.txt >/dev/null
inside ibweave compile -t /tmp/mesh.txt -e xy -o /tmp/tables >/dev/null || fail 'compile'
inside ibweave check /tmp/tables >"$work/check" || fail 'check' "$work/check"
inside ibweave-papers reproduce min/region >"$work/region" || fail 'ibweave-papers' "$work/region"
cat >"$root/tmp/opensm.conf" <<CONF
event_plugin_name ibweave-opensm
event_plugin_options --config /etc/opensm/ibweave.yaml
routing_engine ibweave-xy,no_fallback
log_file /var/log/opensm.log
CONF
export IBSIM_SOCKNAME=ibweave-$$
mkfifo "$work/console"
ibsim -s "$root/tmp/tables/fabric.ibnetdiscover" <"$work/console" >"$work/ibsim" 2>&1 &
ibsim=$!
exec 3>"$work/console"
until grep -q 'sim>' "$work/ibsim"; do
	kill -0 "$ibsim" || fail 'ibsim' "$work/ibsim"
	sleep 0.1
done
inside IBSIM_SOCKNAME="$IBSIM_SOCKNAME" LD_LIBRARY_PATH=/usr/lib64 LD_PRELOAD="$umad" OSM_TMP_DIR=/tmp OSM_CACHE_DIR=/tmp opensm -F /tmp/opensm.conf -D 0x03 -o >"$work/opensm" 2>&1 || fail 'opensm' "$work/opensm"
log=$root/var/log/opensm.log
grep -q 'SUBNET UP' "$log" || fail 'OpenSM did not bring the subnet up' "$log"
grep -q 'ibweave: ibweave-xy: 16 switches' "$log" || fail 'OpenSM did not route with ibweave-xy' "$log"
! grep -q 'ERR IBW' "$log" || fail 'the plugin complains' "$log"
rm "$root/usr/bin/env"

packages -e ibweave ibweave-papers ibweave-opensm || fail 'rpm -e' "$work/rpm.log"
left | grep -v '^./etc/ld.so.cache$' | diff "$work/before" - >"$work/diff" || fail 'rpm -e leaves' "$work/diff"

# The static binary of this machine needs no library, and its checksum holds.
make -s static TARGETS="linux-$(go env GOARCH)" >/dev/null
(cd bin/static && sha256sum --quiet -c SHA256SUMS) || fail 'the checksums of make static'
for binary in bin/static/ibweave-*-linux-"$(go env GOARCH)"; do
	mkdir -p "$work/empty"
	cp "$binary" "$work/empty/ibweave"
	chroot "$work/empty" /ibweave version >/dev/null || fail "$binary needs more than itself"
done
echo 'test-rpm: built, installed, routed a 4x4 mesh in a root of its own, and removed without a trace'
