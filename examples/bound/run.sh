ibweave compile -t fabric.ibnetdiscover -e layered -o tables --write-bound bound.txt >summary.txt
ibweave check tables
cat bound.txt
ibweave check -t fabric.ibnetdiscover --bound bound.txt
sed 's!bound 40/1!bound 44/1!' bound.txt >raised.txt
ibweave check -t fabric.ibnetdiscover --bound raised.txt
