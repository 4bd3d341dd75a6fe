ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave path tables node0001 node0014
echo
ibweave path tables --all-from node0001
