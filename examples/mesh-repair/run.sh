ibweave compile -t fabric.ibnetdiscover -e xy --dry-run | head -n 14
ibweave compile -t fabric.ibnetdiscover -e xy --repair -o tables
ibweave check tables
