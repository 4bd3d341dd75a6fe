ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave check tables --host-groups groups.yaml
echo
ibweave whatif -t fabric.ibnetdiscover -e updn --fail switches --host-groups groups.yaml --top 0
echo
ibweave drain tables --host-groups groups.yaml --host-group rack:r2 --switch spine00
echo
ibweave compile -t fabric.ibnetdiscover -e updn --host-groups groups.yaml --without rack:r2 --dry-run 2>/dev/null | grep -E '^(fabric|unicast|balance)'
echo
ibweave compile -t fabric.ibnetdiscover -e updn --without spine02 --without node0030 -o fewer >compile.log
ibweave diff tables fewer --host-groups groups.yaml 2>/dev/null | sed -n '/HOST GROUP/,/^$/p'
ibweave diff tables fewer --host-groups groups.yaml --format prometheus 2>/dev/null | grep 'host_group_uplinks{group="r3"'
