ibweave compile -t fabric.ibnetdiscover -e updn --labels -o tables >compile.log
ibweave counters tables after.txt --before before.txt --seconds 60 --host-groups groups.yaml
