# What a run of ibdiagnet on this fabric has, with adaptive routing by compile --adaptive.
ibweave compile -t fabric.ibnetdiscover -e updn --adaptive -o tables >summary.txt
mkdir run
cp tables/opensm-subnet.lst run/ibdiagnet2.lst
sed 's/^LID    : Port.*/PLFT_NUM: 0\n&/' tables/opensm.fdbs >run/ibdiagnet2.fdbs
sed -n '3,13p' tables/ibweave.far

echo '== the linear tables alone are not all of the path'
ibweave check run

echo '== with the adaptive tables'
cp tables/ibweave.far run/ibdiagnet2.far
ibweave check run

echo '== the cable of port 4 of leaf 0 was pulled'
sed -i '/{leaf 0} LID:0001 PN:04/d' run/ibdiagnet2.lst
ibweave check run | grep -E '^(adaptive|warning: adaptive|verdict)|LID 2 '

echo '== routed again on the cables that are left'
ibweave compile -t run/ibdiagnet2.lst -e updn --previous tables --adaptive -o again >summary.txt
ibweave check again | grep -E '^(adaptive|warning|note: adaptive|verdict)'
rm -r run tables again summary.txt
