ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave drain tables --switch 'spine[00-01]' --cable leaf02:37 --limit 2 --rebalance 1 -o plan
ls -d plan/*/*
