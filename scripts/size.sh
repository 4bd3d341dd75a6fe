#!/usr/bin/env bash
# Prints the lines of Go of each room: without tests, the budget that the table of rooms in
# ARCHITECTURE.md states, and those of tests. Fails where a room, or the sum, is above
# its budget, where Go stands in no room, or where lines are made longer or comments fewer to
# come below it: lines have 30 bytes in the mean and 11 % are comments, each give or take a tenth.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard '*.go' | LC_ALL=C xargs -0 awk '
	function room(file) {
		while (sub("/[^/]*$", "", file) && !(file in owner)) {}
		return owner[file]
	}
	FNR == 1 { in_tests = FILENAME ~ /_test\.go$/; in_room = FILENAME ~ "/" ? room(FILENAME) : owner["."] }
	FILENAME == "ARCHITECTURE.md" {
		# | `room/`, `another/` | what is in it | may import | lines |
		if (split($0, cell, "|") == 6 && cell[5] ~ /^ [0-9,]+ $/) {
			gsub(/[ ,]/, "", cell[5])
			names[++rooms] = cell[2]; gsub(/[ `]/, "", names[rooms])
			budget[names[rooms]] = cell[5]
			parts = split(names[rooms], part, ",")
			for (i = 1; i <= parts; i++) { sub("/$", "", part[i]); owner[part[i]] = names[rooms] }
			if (part[1] == "ibweave(root)") owner["."] = names[rooms]
		}
		next
	}
	in_room == "" { print FILENAME ": no room of ARCHITECTURE.md has it" > "/dev/stderr"; wrong = 1; nextfile }
	in_tests { tests[in_room]++; all_tests++; next }
	{ lines[in_room]++; all++; bytes += length() + 1 }
	/^[ \t]*\/\// { comments++ }
	END {
		form = "%-38s %8s %8s %8s\n"
		printf form, "room", "lines", "budget", "tests"
		for (i = 1; i <= rooms; i++) {
			name = names[i]
			printf form, name, lines[name] + 0, budget[name], tests[name] + 0
			sum += budget[name]
			if (lines[name] > budget[name]) { print name " is above its budget: take lines from it, or raise the budget by what another room gives" > "/dev/stderr"; wrong = 1 }
		}
		printf form, "all", all, sum, all_tests
		printf "%.1f bytes a line in the mean, %.1f %% of comments\n", bytes / all, 100 * comments / all
		if (bytes / all < 27 || bytes / all > 33 || comments / all < 0.099 || comments / all > 0.121) { print "lines or comments are not as long or as many as they were" > "/dev/stderr"; wrong = 1 }
		exit wrong
	}' ARCHITECTURE.md
