#!/bin/sh
# Submits the job, waits for it and puts the shards together. The exit status is 1
# where any two cables are a single point of failure.
set -eu
rm -f shard-*.json
sbatch --quiet --wait job.sh
ibweave whatif --merge shard-*.json -o all.json --top 5 --fail-on warning
