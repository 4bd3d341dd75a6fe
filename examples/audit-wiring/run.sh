# What somebody did to the fabric: a cable unplugged, one that came up as 1x, and two
# hosts in each other's places.
sed -e '/"S-000000000020000a"\[3\]/d; /"S-0000000000200002"\[7\]/d' \
    -e '/"S-0000000000200009"\[6\]/s/4xQDR/1xQDR/; /"S-0000000000200005"\[6\]/s/4xQDR/1xQDR/' \
    -e '/^\[1\].*"H-0000000000100000"/{s//[1]	"H-0000000000100008"/; s/(100001)/(100009)/; s/leaf 0/leaf 1/; b}' \
    -e '/^\[1\].*"H-0000000000100008"/{s//[1]	"H-0000000000100000"/; s/(100009)/(100001)/; s/leaf 1/leaf 0/; b}' \
    -e '/^\[1\](100001)/s/"S-0000000000200000"\(.*\)leaf 0/"S-0000000000200001"\1leaf 1/' \
    -e '/^\[1\](100009)/s/"S-0000000000200001"\(.*\)leaf 1/"S-0000000000200000"\1leaf 0/' \
    fabric.ibnetdiscover >today.ibnetdiscover
echo '--- without a policy'
ibweave check -t today.ibnetdiscover --wiring
echo '--- with the policy, on 1 December'
ibweave compile -t today.ibnetdiscover -e updn -o tables >compiled.txt
ibweave check tables --policy policy.yaml --date 2026-12-01
echo '--- and on 1 January'
ibweave check -t today.ibnetdiscover --policy policy.yaml --date 2027-01-01
