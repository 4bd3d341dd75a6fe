
sed "s/node0003 /$1 /" fabric.ibnetdiscover >fabric
salloc --quiet --no-shell --job-name traffic -w "$1" -N 1 || exit
id=$(squeue --noheader --name traffic --format %i)
squeue --json >squeue.json
scontrol show job >scontrol.txt
scontrol --oneliner show job >oneliner.txt
scancel "$id"
for file in squeue.json scontrol.txt oneliner.txt
do
	cat >traffic.yaml <<-end
		slurm: $file
		jobs: [{name: a, slurm: $id, patterns: [{pattern: to-storage, size: 1M, to: node0020}]}]
	end
	ibweave traffic -t fabric --traffic traffic.yaml | grep '^a ' || cat $file
	ibweave place -t fabric -e minhop --hosts 1 --slurm $file | grep '^free '
done
