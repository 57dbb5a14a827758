# The report is one page without scripts or links, and the JSON is what --json prints.
n2ce study bbo --beside random,top-offline --tasks branin,branin-50 --methods random,cube-0.1 --seeds 2 --json --report r >answer.json
ls -A r
cmp answer.json r/bbo.json
grep -c '<svg' r/bbo.html
grep -ciE '<script|https?://[^w]' r/bbo.html
tail -n 1 r/bbo.html
