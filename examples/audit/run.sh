ibweave check -t opensm-subnet.lst --lfts opensm-lfts.dump
