ibweave compile -t fabric.ibnetdiscover -e minhop --dry-run
ibweave compile -t fabric.ibnetdiscover -e updn --lmc 1 -o tables
ibweave check tables --fail-on warning
