ibweave compile -t fabric.ibnetdiscover -e updn -o tables
ibweave check tables
