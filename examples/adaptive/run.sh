ibweave compile -t fabric.ibnetdiscover -e fattree --adaptive -o tables >summary.txt
grep -A 2 '^choices' summary.txt
grep '^verdict' summary.txt
echo
head -n 20 tables/ibweave.far
echo
grep 'leaf 0' tables/adaptive.json
echo
head -n 4 tables/certificate.txt
ibweave check tables | grep -E '^(adaptive|certificate|verdict)'
