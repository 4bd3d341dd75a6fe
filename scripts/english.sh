#!/usr/bin/env bash
# Looks for marks of translated English in everything that a person reads: comments, help,
# messages, docs, examples. Subject, verb, object, then the exception.
set -euo pipefail
cd "$(dirname "$0")/.."
marks='nobody|whoever|somebody who|so many|but for|be it|in vain|anew|of before|any more|go(es)? round|comes? of it'
# The field "anew" of whatif's JSON stays.
if git grep -nIwiE "$marks" -- . ':!scripts/english.sh' ':!docs/reproduction' | grep -vE '"anew,omitempty"|"anew": \{|`anew`'; then
	echo "say it plainly: who does what" >&2
	exit 1
fi
