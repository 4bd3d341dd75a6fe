ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave traffic tables --traffic traffic.yaml
