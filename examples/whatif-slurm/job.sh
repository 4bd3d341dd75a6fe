#!/bin/sh
#SBATCH --job-name=whatif
#SBATCH --array=1-4
#SBATCH --cpus-per-task=1
#SBATCH --output=shard-%a.log
# Tries its share of the failures of any two cables. Findings are no failure of the
# job: merge says what they are.
set -eu
GOMAXPROCS=${SLURM_CPUS_PER_TASK:-1} ibweave whatif -t fabric.ibnetdiscover -e updn --fail links --depth 2 \
	--shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" -o "shard-$SLURM_ARRAY_TASK_ID.json" --fail-on never
