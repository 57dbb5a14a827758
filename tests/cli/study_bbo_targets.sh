# What designs that were drawn for a value are worth, as table, plot and JSON. Training takes a while,
# so the numbers come from an earlier answer here. Methods that cannot aim are not disturbed.
cat >earlier.json <<'END'
{"study": "bbo", "options": {"queries": "auto", "scale": 1}, "rows": [
 {"task": "branin", "method": "n2ce", "seed": 0, "max": -0.4, "median": -0.8, "distinct": 128, "inside": 1, "seconds": 1},
 {"task": "branin", "method": "n2ce", "seed": 1, "max": -0.5, "median": -0.9, "distinct": 128, "inside": 1, "seconds": 1}],
"targets": [
 {"task": "branin", "method": "n2ce", "seed": 0, "scaled": 0.5, "target": -150, "mean": -151, "sd": 5, "low": -160, "high": -140},
 {"task": "branin", "method": "n2ce", "seed": 0, "scaled": 1, "target": -6, "mean": -5, "sd": 1, "low": -7, "high": -3},
 {"task": "branin", "method": "n2ce", "seed": 1, "scaled": 0.5, "target": -152, "mean": -155, "sd": 5, "low": -162, "high": -144},
 {"task": "branin", "method": "n2ce", "seed": 1, "scaled": 1, "target": -6.2, "mean": -5.2, "sd": 1, "low": -7, "high": -3}],
"samples": [
 {"task": "branin", "method": "n2ce", "seed": 0, "drawn": 0, "x": [3, 2, 9, 2.5]},
 {"task": "branin", "method": "n2ce", "seed": 0, "drawn": 1, "x": [3.1, 2.1, 9.1, 2.6]}]}
END
n2ce study bbo --merge earlier.json --report r >text
sed -n '/drawn for a value/,/^$/p; /^  target/,/^$/p' text
grep -c '<svg' r/bbo.html
grep -o 'Target and achieved value\|Draws for the best value offline' r/bbo.html | sort | uniq -c | sed 's/^ *//'
sed -e 's/"method": "n2ce"/"method": "n2ce-m1"/; s/"scaled": 0.5/"scaled": 0.9/' earlier.json >other.json
n2ce study bbo --merge earlier.json,other.json | sed -n '/^  target/,/^$/p' # values that only one drew for
n2ce study bbo --merge r --json | sed '/"options"/d' >again
sed '/"options"/d' r/bbo.json | cmp - again
sed -n '/^  "targets"/,/^  ],/p; /^  "samples"/,/^  ],/p' r/bbo.json
n2ce study bbo --beside random,top-offline --methods random --targets 0.5,1 --seeds 1 --json | grep -A1 '"targets": \['
