ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave traffic tables --traffic traffic.yaml

# The same jobs, message by message.
echo
ibweave sim tables --traffic traffic.yaml --top 0
