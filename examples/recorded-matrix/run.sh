ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log

# Where to put 512 ranks, four on each host, beside the job that runs.
ibweave place tables --hosts 128 --pattern halo:8x8x8 --ranks-per-host 4 --size 96K --traffic running.yaml --search 20 --format json >sets.json
placed=$(sed -n 's/^ *"hosts": "\(.*\)",$/\1/p' sets.json | head -n 1)
echo "placed on $placed"

# The recorded matrix on these hosts, and on the first free ones.
first='node[0002-0004,0013-0049,0058-0096,0105-0128,0130-0154]'
for hosts in "$placed" "$first"; do
	cp running.yaml jobs.yaml
	cat >>jobs.yaml <<END
  - name: recorded
    hosts: "$hosts"
    ranks-per-host: 4
    patterns:
      - {pattern: matrix, file: ranks.csv, weight: 4}
END
	echo
	ibweave sim tables --traffic jobs.yaml --top 2
done
