# What test-deb.sh and test-rpm.sh share: a folder $work that is gone in the end, as ibsim is, with the
# $root of the packages in it.
work=$(mktemp -d)
root=$work/root
ibsim=
cleanup() {
	[ -z "$ibsim" ] || kill "$ibsim" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
fail() { # what is wrong, and a file that says more
	echo "$(basename "$0" .sh): $1" >&2
	[ $# = 1 ] || cat "$2" >&2
	exit 1
}
