ibweave compile -t fabric.ibnetdiscover -e layered -o tables >/dev/null
python3 check_certificate.py tables
# A path that turns where no path did: the switch sends a host's packets by another port.
sed -i '0,/^0x0018 [0-9]*/s//0x0018 003/' tables/opensm-lfts.dump
python3 check_certificate.py tables
