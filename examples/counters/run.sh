ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave counters tables after.txt --before before.txt --seconds 60
