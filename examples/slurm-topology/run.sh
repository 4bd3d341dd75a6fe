ibweave slurm -t fabric.ibnetdiscover
echo
ibweave slurm -t fabric.ibnetdiscover --format yaml --switch-names numbers
