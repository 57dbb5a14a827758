# Q and scale of every run are kept where they differ.
n2ce study bbo --beside random,top-offline --tasks branin-50 --methods cma-es --seeds 1 --scale 32 --queries 4,8 --json >a.json
n2ce study bbo --beside random,top-offline --tasks branin-50 --methods random --seeds 1 --queries 16 --json >b.json
n2ce study bbo --merge a.json,b.json --json >c.json
n2ce study bbo --merge c.json >text
grep -o 'Q = .*' text
grep -o 'Networks and training are not those of the paper' text
sed -n '/"rows"/,/^  ],/p' c.json | grep -o '"method": "[a-z-]*"\|"queries": [0-9]*\|"scale": [0-9]*'
