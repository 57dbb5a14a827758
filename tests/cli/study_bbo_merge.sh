# Runs made in pieces are one answer: the same rows, ranks and unmoved values as from one run, also
# of an answer that is merged itself, and whatever else there is is not run.
n2ce study bbo --beside random,top-offline --tasks branin,branin-50 --methods random,cube-0.1,top-offline --seeds 4 --json >whole.json
n2ce study bbo --beside random,top-offline --tasks branin --methods random,cube-0.1,top-offline --seeds 4 --report a >a.txt
n2ce study bbo --beside random,top-offline --tasks branin-50 --methods random,cube-0.1 --seeds 1 --json >b.json
n2ce study bbo --beside random,top-offline --tasks branin-50 --methods random,cube-0.1,top-offline --seeds 3 --seed 1 --json >c.json
n2ce study bbo --merge a,b.json --report ab >ab.txt
n2ce study bbo --merge c.json,ab --json >merged.json
strip() { sed -e 's/"seconds": [0-9.]*/"seconds"/' -e '/"options"/d' "$1"; }
[ "$(strip whole.json)" = "$(strip merged.json)" ] || echo "not the same"
grep 'seeds)' ab.txt | sed 's/ .*(\(.*\)).*/ \1/'
