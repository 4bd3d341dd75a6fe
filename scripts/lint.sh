#!/usr/bin/env bash
# Formats, lints (.golangci.yml vets, too), holds rooms to their budgets, looks for what no program reaches,
# builds what runs in a browser and on other systems, and proves that the linter holds the
# arrows of ARCHITECTURE.md: in a module made for it, packages of every room import a room
# that they must not, and each of these imports has to be found.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra golangci <<<"${GOLANGCI:?run make lint}"

unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
	echo "not formatted by gofmt:" >&2
	echo "$unformatted" >&2
	exit 1
fi
"${golangci[@]}" run ./... ./papers/...
if [ -e /usr/include/infiniband/opensm/osm_opensm.h ]; then
	"${golangci[@]}" run --build-tags opensm ./cmd/ibweave-opensm
fi
scripts/english.sh
scripts/size.sh
scripts/deadcode.sh

# The module does not know that of papers, which builds with this one beside it. Both build
# by themselves.
known=$(go list -deps -test ./... | grep '/ibweave/papers' || true)
if [ -n "$known" ]; then
	echo "imported, by whatever way (go mod why):" "$known" >&2
	exit 1
fi
GOWORK=off go build ./...
GOWORK=off go build -C papers ./...

for file in $(grep -oE '`[a-z0-9_/.-]+\.(go|c|yml|sh)`' ARCHITECTURE.md | tr -d '`' | sort -u); do
	[ -e "$file" ] || { echo "ARCHITECTURE.md names $file, which is not there" >&2; exit 1; }
done

# The pipeline and the page run in a browser: they stand apart from files, from what
# talks to subnet managers, and from plotting.
portable=(./fabric/... ./lft/... ./mft/... ./state ./mesh/... ./updown/... ./routing/... ./verify/... ./compile ./audit/whatif ./audit/drain ./audit/session ./report/page ./cmd/ibweave-page)
GOOS=wasip1 GOARCH=wasm go build "${portable[@]}"
heavy=$(GOOS=wasip1 GOARCH=wasm go list -deps "${portable[@]}" | grep -E '/internal/files$|/sminterface|^gonum.org/v1/plot' || true)
if [ -n "$heavy" ]; then
	echo "what runs in a browser imports, by whatever way (go mod why):" >&2
	echo "$heavy" >&2
	exit 1
fi

# Fabrics are audited on other systems than Linux, too.
GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/ibweave
GOOS=windows go build -o /dev/null ./cmd/ibweave

# room, and what it must not import; together without a cycle
forbidden='
.                     updown
internal/files        fabric
fabric                lft
fabric/gen            mesh
lft                   updown
mft                   mesh
state                 mesh
state/open            mesh
mesh                  updown
updown                sim
routing/layered       mesh
traffic               fabric
verify                state/open
sim                   example.com/other
sminterface/dump      compile
sminterface/rehearse  updown
compile               internal/files
compile/outdir        updown
compile/fabrictest    sim
audit/diff            state/open
audit/whatif          sminterface/rehearse
report                compile
report/page           mesh
papers/reproduce      audit/whatif
papers/cmd/ibweave-papers example.com/other
cmd/ibweave           papers/reproduce
cmd/ibweave           example.com/other
cmd/ibweave-opensm    example.com/other
scripts/bench         example.com/other
'
module=$(GOWORK=off go list -m)
for room in $(go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... ./papers/...); do
	[ "$room" != "$module" ] || room=.
	room=${room#"$module"/}
	if ! grep -q "^${room%%/*}[ /]" <<<"$forbidden"; then
		echo "${room%%/*} has no rule in .golangci.yml, or none that scripts/lint.sh proves" >&2
		exit 1
	fi
done
proof=$(mktemp -d)
trap 'rm -rf "$proof"' EXIT
cp .golangci.yml "$proof"
printf 'module %s\n\ngo 1.26\n' "$module" >"$proof/go.mod"
wanted=0
while read -r room import; do
	[ -n "$room" ] || continue
	wanted=$((wanted + 1))
	mkdir -p "$proof/$room" "$proof/${import#example.com/}"
	case $import in
	example.com/*) path=$import ;;
	*) path=$module/$import; echo "package stub" >"$proof/$import/stub.go" ;;
	esac
	file=import$wanted.go
	[ "$room" != . ] || file=ibweave.go # which the rule is about
	printf 'package stub\n\nimport _ "%s"\n' "$path" >"$proof/$room/$file"
done <<<"$forbidden"
said=$(cd "$proof" && GOWORK=off "${golangci[@]}" run --enable-only depguard 2>&1 || true)
found=$(grep -c 'is not allowed from list' <<<"$said" || true)
if [ "$found" != "$wanted" ]; then
	echo "$said" >&2
	echo "the linter found $found of $wanted forbidden imports; see the depguard rules in .golangci.yml" >&2
	exit 1
fi
echo "lint: clean, and all $wanted forbidden imports of the proof were found"
