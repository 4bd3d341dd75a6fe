# By default: union for one sender, for others an MLID for each row of the mesh.
ibweave compile -t fabric.ibnetdiscover -e xy -g groups.yaml -o rows | grep -E -A 2 '^(trees|multicast)'

# A comb for each group: one MLID, for all senders.
ibweave compile -t fabric.ibnetdiscover -e xy -g groups.yaml --mcast comb -o comb | grep -E -A 2 '^(notes|trees|multicast)'
ibweave check comb | tail -n 3

# The trees that OpenSM makes by itself, with the same unicast paths.
ibweave compile -t fabric.ibnetdiscover -e xy -g groups.yaml --mcast opensm --dry-run | grep -E -A 4 '^warning'

# A bit too many in one mask of the comb: a storm.
sed '0,/^0xC001 : 0x002  0x004  0x005 $/s//0xC001 : 0x001  0x002  0x004  0x005 /' comb/opensm.mcfdbs >changed.mcfdbs
ibweave check -t comb/fabric.ibnetdiscover --lfts comb/opensm-lfts.dump --mfts changed.mcfdbs -g comb/groups.json >report.txt
echo "exit status $?"
grep -A 12 '^error' report.txt
