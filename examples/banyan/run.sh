# Destination tags, and a region mask for each group: one MLID for all sources.
ibweave compile -t fabric.ibnetdiscover -e banyan -g groups.yaml --mcast region -o tables | grep -E -A 2 '^(engine|trees|multicast)'
ibweave check tables | tail -n 3

# Switches that take the outputs of a packet one by one: two packets that are copied by
# one element can each have one output and wait for the other.
ibweave check tables --copying lock-step | head -n 12
echo

# This is no mesh.
ibweave compile -t fabric.ibnetdiscover -e xy -o none 2>&1
