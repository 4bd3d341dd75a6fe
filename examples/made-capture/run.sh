ibweave check -t fabric.ibnetdiscover --wiring
ibweave gen tree --leaves 3 --rails 2 --hosts 6 --spines 2 --parallel 3 --ports 24 --drop-links 1 --speed NDR --names site --aggregation-nodes \
	--labels --format ibdiagnet2 -o ibdiagnet2
ibweave check ibdiagnet2
