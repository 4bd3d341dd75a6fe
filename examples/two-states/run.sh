ibweave compile -t fabric.ibnetdiscover -e updn -o yesterday >compile.log
ibweave compile -t fabric.ibnetdiscover --previous yesterday --without leaf02:39 -o today >>compile.log
ibweave report yesterday today -o report.html
ibweave diff yesterday today | sed -n '/^links that went/,/^destinations/p' | sed '$d'
