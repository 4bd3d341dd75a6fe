ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave traffic tables --traffic traffic.yaml

# The same jobs, message by message.
echo
ibweave sim tables --traffic traffic.yaml --top 0

# Tables for these jobs, with at most half more routes of all hosts to all on a cable.
echo
ibweave compile -t fabric.ibnetdiscover -e updn --traffic traffic.yaml --uniform-floor 1.5 -o fitted | grep -A 1 '^traffic'
ibweave traffic fitted --traffic traffic.yaml --top 1 | grep -A 4 '^JOB  '
echo
ibweave sim fitted --traffic traffic.yaml --top 0
