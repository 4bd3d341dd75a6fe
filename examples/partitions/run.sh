echo "what OpenSM would make of partitions.conf"
ibweave check -t fabric.ibnetdiscover --partitions partitions.conf --sm node0001
echo
echo "the P_Key tables of the fabric, which smpquery printed"
ibweave check -t fabric.ibnetdiscover --pkeys pkeys.txt --partitions partitions.conf --sm node0001
