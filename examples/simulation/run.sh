# The same cables, routed twice. Shortest paths have a credit loop here.
ibweave compile -t fabric.ibnetdiscover -e minhop -o minhop | grep -A 5 '^warning'
ibweave compile -t fabric.ibnetdiscover -e xy -g groups.yaml --mcast comb -o xy | grep '^verdict'

# It takes small buffers and some load to run into it.
echo
ibweave sim minhop --load 0.05,0.3 --bytes 512 --buffer-packets 1
echo "exit status $?"
echo
ibweave sim xy --load 0.05,0.3 --bytes 512 --buffer-packets 1

# Two engines on one lane and on two, with the same buffer in all, side by side.
echo
ibweave sim -t fabric.ibnetdiscover --engines xy,updn --vls 1,2 --load 0.3,0.7 --bytes 512 --max-time 500us

# What a ring over all hosts takes, in the order of their names and in a random one.
for order in listed random:1; do
	echo
	ibweave sim xy --pattern allreduce-ring --rank-order $order --burst 16 --bytes 4096 | sed 1,3d
done

# Latency under load, with some multicast.
echo
ibweave sim xy --load 0.1:0.5:0.1 --bytes 512 --multicast 0.05 --error 0.05

# What multicast saves: the time until the last receiver has it, for one source, and
# for all at once; then the same by unicast.
for sources in one all; do
	echo
	ibweave sim xy --burst 1 --multicast 1 --sources $sources --bytes 64,4096 --format csv >multicast.csv
	ibweave sim xy --burst 1 --multicast 1 --sources $sources --bytes 64,4096 --format csv --repeat >unicast.csv
	echo "$sources: bytes, ns by multicast, ns by unicast"
	cut -d , -f 2,20 multicast.csv | sed 1d >multicast.txt
	cut -d , -f 20 unicast.csv | sed 1d | paste -d , multicast.txt -
done
