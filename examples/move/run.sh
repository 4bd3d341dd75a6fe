ibweave compile -t fabric.ibnetdiscover -e updn -o tables >compile.log
ibweave move tables edits.yaml --limit 1.5 --write-plan steps.yaml -o plan
ls -d plan/*/*
cat steps.yaml
