#!/usr/bin/env bash
# What the GitHub Action and the GitLab template run: compiles a fabric when an engine
# is named, checks it, compares it with the state before, and says in files and by the
# exit status what came of it. The exit statuses are those of ibweave: 1 for findings
# from IBWEAVE_FAIL_ON on in any of the steps, 2 to 4 when a step could not be done.
#
# It takes its orders from the environment, never from text that is pasted into a
# script. All but IBWEAVE_TOPOLOGY or IBWEAVE_TABLES may be empty or unset:
#
#   IBWEAVE                program, by default ibweave on $PATH
#   IBWEAVE_WORK           folder for what is made on the way (a new one)
#   IBWEAVE_TOPOLOGY       topology file
#   IBWEAVE_TABLES         directory of compile, or a dump of forwarding tables
#   IBWEAVE_ENGINE         compile the topology with this engine
#   IBWEAVE_GROUPS         multicast groups for compile
#   IBWEAVE_POLICY         policy file for check
#   IBWEAVE_BASE           compare with this: directory, topology or dump
#   IBWEAVE_FAIL_ON        error, warning, note or never (error)
#   IBWEAVE_COMPILE_FLAGS  further flags, a word a line
#   IBWEAVE_CHECK_FLAGS    further flags, a word a line
#   IBWEAVE_SARIF, IBWEAVE_JUNIT   files for the result
#   IBWEAVE_SUMMARY        file to which Markdown is appended
#   IBWEAVE_OUTPUT         file to which status=, verdict=, sarif= and tables= are appended
set -uo pipefail

program=${IBWEAVE:-ibweave}
topology=${IBWEAVE_TOPOLOGY:-} tables=${IBWEAVE_TABLES:-} engine=${IBWEAVE_ENGINE:-}
fail_on=${IBWEAVE_FAIL_ON:-error}
work=${IBWEAVE_WORK:-}
[ -n "$work" ] || work=$(mktemp -d) || exit 4
mkdir -p "$work" || exit 4

worst=0 sarif='' compiled=''
# note STATUS: keeps the gravest; that a step could not be done outweighs findings.
note() {
	if [ "$1" -gt "$worst" ]; then worst=$1; fi
}
summary() {
	if [ -n "${IBWEAVE_SUMMARY:-}" ]; then cat >>"$IBWEAVE_SUMMARY"; else cat >/dev/null; fi
}
# fenced TITLE FILE: a file as it is, as far as a job summary has room for it.
fenced() {
	{
		printf '\n### %s\n\n~~~~~~~~text\n' "$1"
		head -c 100000 "$2" | sed 's/~~~~/----/g'
		printf '\n~~~~~~~~\n'
	} | summary
}
finish() {
	local verdict=pass
	[ "$worst" -eq 0 ] || verdict=fail
	[ "$worst" -le 1 ] || verdict=error
	if [ -n "${IBWEAVE_OUTPUT:-}" ]; then
		printf 'status=%s\nverdict=%s\nsarif=%s\ntables=%s\n' "$worst" "$verdict" "$sarif" "$compiled" >>"$IBWEAVE_OUTPUT"
	fi
	exit "$worst"
}
# broken TITLE FILE: a step that could not be done ends the job.
broken() {
	cat "$2" >&2
	fenced "ibweave: $1" "$2"
	finish
}
# words VARIABLE ARRAY: the lines of a variable that are not empty.
words() {
	local -n out=$2
	local line
	while IFS= read -r line; do
		[ -z "$line" ] || out+=("$line")
	done <<<"${!1:-}"
}

if [ -z "$topology" ] && [ ! -d "$tables" ]; then
	echo 'want a topology, or tables as a directory that compile wrote' >"$work/error"
	worst=2
	broken 'nothing to check' "$work/error"
fi
if [ -n "$engine" ] && { [ -z "$topology" ] || [ -n "$tables" ]; }; then
	echo 'an engine compiles a topology: want a topology, and no tables' >"$work/error"
	worst=2
	broken 'what to compile' "$work/error"
fi

if [ -n "$engine" ]; then
	flags=(-t "$topology" -e "$engine" -o "$work/tables")
	[ -z "${IBWEAVE_GROUPS:-}" ] || flags+=(-g "$IBWEAVE_GROUPS")
	words IBWEAVE_COMPILE_FLAGS flags
	"$program" compile "${flags[@]}" >"$work/compile" 2>&1
	status=$?
	note "$status"
	[ "$status" -le 1 ] || broken 'compile' "$work/compile"
	cat "$work/compile"
	if [ "$status" -eq 0 ]; then
		tables=$work/tables compiled=$work/tables
	else # the engine cannot do this fabric, but its cabling can be checked
		fenced "ibweave: $engine makes no tables of this" "$work/compile"
	fi
fi

# What is in the repository is what viewers can show: findings of tables that were made
# just now are located in the topology.
flags=(--fail-on "$fail_on")
if [ -d "$tables" ]; then
	flags+=("$tables")
	[ -z "$topology" ] || flags+=(--source "$topology")
elif [ -n "$tables" ]; then
	flags+=(-t "$topology" --lfts "$tables")
else
	flags+=(-t "$topology" --wiring)
fi
[ -z "${IBWEAVE_POLICY:-}" ] || flags+=(--policy "$IBWEAVE_POLICY")
[ -z "${IBWEAVE_SARIF:-}" ] || flags+=(--report "sarif=$IBWEAVE_SARIF")
[ -z "${IBWEAVE_JUNIT:-}" ] || flags+=(--report "junit=$IBWEAVE_JUNIT")
words IBWEAVE_CHECK_FLAGS flags
"$program" check "${flags[@]}" --report "markdown=$work/check.md" >"$work/check" 2>"$work/error"
status=$?
note "$status"
[ "$status" -le 1 ] || broken 'check' "$work/error"
cat "$work/check"
cat "$work/error" >&2
summary <"$work/check.md"
sarif=${IBWEAVE_SARIF:-}

if [ -n "${IBWEAVE_BASE:-}" ]; then
	new=${tables:-$topology}
	"$program" diff "$IBWEAVE_BASE" "$new" --fail-on "$fail_on" >"$work/diff" 2>"$work/error"
	status=$?
	note "$status"
	[ "$status" -le 1 ] || broken 'diff' "$work/error"
	cat "$work/diff"
	fenced 'What the change does' "$work/diff"
fi
finish
