#!/usr/bin/env bash
# Runs the trials of which the tests run a part, and then repeats the property
# tests with ever new random seeds for as long as $1 says in seconds, minutes or
# hours (default 10m). The failing seed is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10m}
export IBWEAVE_TESTS=all

go test -count=1 -timeout 60m ./compile -run 'TestRandomGroups|TestUnicastAndMulticast|TestIBDMChkOnMulticast|TestTry' -trials 1000 -v |
	grep -E 'groups|flipped|^(ok|FAIL|---)'

# 10,000 failures and returns on each fabric.
go test -count=1 -timeout 60m ./compile -run TestPrevious -trials 20000 -v | grep -E 'steps|^(ok|FAIL|---)'
# Every cable and every switch of a damaged tree fails, and every switch of a full one of radix 24.
go test -count=1 -timeout 60m ./audit/whatif -run 'TestSteps|TestSwitchFailures' -all -v |
	grep -E 'failures|entries|^(ok|FAIL|---)'
# 10,000 failures and returns with the last result in memory, verified by what changed.
go test -count=1 -timeout 60m ./compile -run 'TestIncremental$' -failures 10000 -v | grep -E 'steps|^(ok|FAIL|---)'
go test -count=1 -timeout 60m ./verify -run TestIncrementalChecker -trials 10000 -v | grep -E 'steps|^(ok|FAIL|---)'
# Bounds against exact linear programs and all forwarding tables of small fabrics.
go test -count=1 -timeout 60m ./verify/bound -fabrics 1000 -v | grep -E 'paths:|refused|^(ok|FAIL|---)'
# Hosts for jobs against all sets of hosts, and tables for 20 mixes of jobs on three fabrics.
go test -count=1 -timeout 60m ./audit/place -trials 1000 -mixes 20 -v | grep -E 'place_test|^(ok|FAIL|---)'
go test -count=1 -timeout 60m ./audit/jobs -run TestGap -mixes 20 -v | grep -E 'median|^(ok|FAIL|---)'
# Adaptive tables against a checker that follows every choice, and against all states of tiny
# fabrics; changes of them that matter are found.
go test -count=1 -timeout 60m ./verify -run TestAdaptive -choices 10000 -tiny 1000 -mutations 1000 -v | grep -E 'map|seed|^(ok|FAIL|---)'
# 1,000 processes that write a directory are killed.
go test -count=1 -timeout 60m ./compile/outdir -run TestKill -kills 1000 -v | grep -E 'killed|^(ok|FAIL|---)'
go test -count=1 -timeout 60m ./papers/multistage -trials 20
go test -count=1 -timeout 60m ./routing/fattree -run TestDamaged -trials 500 -v | grep -E 'flows|sum|^(ok|FAIL|---)'
go test -count=1 -timeout 60m ./audit/cabling -run 'TestFaults|TestNoErrorsByGuess|TestErrorsOfCertainShapes' -trials 2000 -v | grep -E '^(ok|FAIL|---)'
go test -count=1 -timeout 60m ./audit/cabling -run TestMissingCables -trials 1000 -v | grep -E 'named|^(ok|FAIL|---)'

# Parts of 20,000 inputs: none hides the errors of the whole.
go test -count=1 -timeout 60m ./cmd/ibweave -run TestIncomplete -rapid.checks 20000 -v | grep -E 'errors|^(ok|FAIL|---)'

# SEED=N gives the chaos of another day.
go test -count=1 -timeout 60m ./cmd/ibweave-opensm -run TestChaos -changes 1000 -seed "${SEED:-1}" -v |
	grep -E 'changes|seed|^(ok|FAIL|---)'
# What the plugin reads and writes, in every condition that a file can be in.
go test -count=1 -timeout 60m ./cmd/ibweave-opensm -run TestFileChaos -sequences 200 -seed "${SEED:-1}" -v |
	grep -E 'sequences|seed|^(ok|FAIL|---)'
go test -count=1 -timeout 60m ./cmd/ibweave-opensm -run TestManySweeps -sweeps 2000 -v |
	grep -E 'sweeps|^(ok|FAIL|---)'

# 100,000 sets of multicast packets: none deadlocks that verify finds safe; the smallest deadlocks are printed.
go test -count=1 -timeout 60m ./sim -run TestZoo -cases 100000 -v | grep -E 'scheme|cases|^(ok|FAIL|---)'
go test -count=1 -timeout 60m ./sim -run 'TestRandomRoutings|TestFullLoad|TestSPAMStress|TestPaperNumbers' -all-rows -spam-networks 1000 -trials 3000 -flit-times 1000000000 -v |
	grep -E 'clean|does not deadlock|none deadlocks|^(ok|FAIL|---)'

go test -count=1 -timeout 60m ./papers/myrinet/lan -run TestBufferDeadlock -multicasts 1000000 -v |
	grep -E 'multicasts|buffers|^(ok|FAIL|---)'

mapfile -t packages < <(go list -test -f '{{if .ForTest}}{{.ForTest}} {{join .Imports " "}}{{end}}' ./... ./papers/... |
	grep 'pgregory.net/rapid' | cut -d ' ' -f 1 | sort -u)
end=$(($(date +%s) + $(echo "$time" | sed -E 's/s$//; s/m$/*60/; s/h$/*3600/')))
rounds=0
while [ "$(date +%s)" -lt "$end" ]; do
	go test -count=1 -timeout 60m "${packages[@]}" -rapid.checks 2000
	rounds=$((rounds + 1))
done
echo "$rounds rounds of 2000 checks each, no findings"
