ibweave compile -t fabric.ibnetdiscover -e updn -o yesterday >compile.log
ibweave compile -t fabric.ibnetdiscover --previous yesterday --without leaf02:39 -o today >>compile.log
ibweave report yesterday today -o report.html --svg changes.svg --view changes
sed -nE 's/&#34;//g; s/.*>((cable|forwarding) .*)<.text>/\1/p' changes.svg
