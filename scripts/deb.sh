#!/usr/bin/env bash
# Builds the Debian packages of this source into a folder, bin/deb by default:
#
#     scripts/deb.sh [FOLDER]
#
# It needs dpkg-dev, debhelper, libopensm-dev, libibumad-dev, gcc, and Go on the
# PATH. The same source gives the same bytes, whatever the time and the folder.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "${1:-bin/deb}")

missing=()
for package in dpkg-dev debhelper libopensm-dev libibumad-dev gcc libc6-dev; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
	echo "missing: ${missing[*]}; run this and try again:" >&2
	echo "    sudo apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi
version=$(dpkg-parsechangelog -S Version)
program=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' compile/outdir/manifest.go)
if [ "${version%-*}" != "$program" ]; then
	echo "debian/changelog is of version ${version%-*}, compile/outdir/manifest.go of $program" >&2
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$work/ibweave-$program
mkdir "$source"
if git rev-parse --git-dir >/dev/null 2>&1; then
	git ls-files -z --cached --others --exclude-standard
else
	find . -path ./bin -prune -o -type f -printf '%P\0'
fi | tar -c --null -T - | tar -x -C "$source"

# Modules that are here already need no network. Where Go is not a Debian package,
# the profile leaves it out of what is needed.
export GOCACHE GOMODCACHE
GOCACHE=$(go env GOCACHE)
GOMODCACHE=$(go env GOMODCACHE)
profile=()
dpkg-query -W golang-go >/dev/null 2>&1 || profile=(-Ppkg.ibweave.othergo)
(cd "$source" && dpkg-buildpackage -b -us -uc "${profile[@]}") >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
mkdir -p "$to"
rm -f "$to"/ibweave*_"${version}"_*
cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$to"
ls -l "$to"
