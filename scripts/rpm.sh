#!/usr/bin/env bash
# Builds the packages ibweave, ibweave-papers and ibweave-opensm into a folder, bin/rpm by default:
#
#     scripts/rpm.sh [FOLDER]
#
# The plugin is for the OpenSM whose headers are on this machine, and for its C library or a
# later one: build where the cluster's release is. It needs rpmbuild, and what make build needs.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${1:-bin/rpm}")
command -v rpmbuild >/dev/null || { echo 'missing: rpmbuild (apt-get install rpm, dnf install rpm-build)' >&2; exit 1; }
opensm=$(sed -n 's/.*OSM_VERSION "OpenSM \([^"]*\)".*/\1/p' /usr/include/infiniband/opensm/osm_version.h)
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' compile/outdir/manifest.go)
make -s build licenses
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s install DESTDIR="$work/staged" PREFIX=/usr LIBDIR=/usr/lib64 UNITDIR=/usr/lib/systemd/system >/dev/null
gzip -9n "$work"/staged/usr/share/man/man1/*.1
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
export SOURCE_DATE_EPOCH
rpmbuild -bb --quiet --define "_topdir $work/rpm" --define "ibweave_version $version" --define "opensm_version $opensm" \
	--define "staged $work/staged" --define "licenses $PWD/bin/licenses.txt" --define '_buildhost localhost' \
	--define '_prefix /usr' --define '_bindir /usr/bin' --define '_datadir /usr/share' --define '_mandir /usr/share/man' \
	scripts/ibweave.spec >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
mkdir -p "$to"
rm -f "$to"/ibweave*.rpm
cp "$work"/rpm/RPMS/*/*.rpm "$to"
ls -l "$to"
