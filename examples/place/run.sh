ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave place tables --hosts 8 --traffic jobs.yaml --busy 'node[0007,0047]' --top 4
ibweave place tables --hosts 6 --pattern allreduce-ring --slurm squeue.json --top 2
