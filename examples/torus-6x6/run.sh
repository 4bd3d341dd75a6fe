ibweave compile -t fabric.ibnetdiscover -e xy -o tables
ibweave check tables
ibweave check -t tables/fabric.ibnetdiscover --lfts tables/opensm-lfts.dump
