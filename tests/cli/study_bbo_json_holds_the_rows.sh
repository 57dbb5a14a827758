# --json is one object; a row a task, method and seed, with exactly the documented keys; those of
# the trivial baselines that were not asked for are elsewhere.
n2ce study bbo --beside random,top-offline --tasks branin,branin-50 --methods random --seeds 3 --seed 5 --queries 20 --json >answer.json
sed -n '/"rows"/,/^  ],/p' answer.json | grep -c '^    {"task": "[a-z0-9-]*", "method": "random", "seed": [567], "max": [^,]*, "median": [^,]*, "distinct": 20, "inside": 1, "seconds": [0-9.]*},*$'
sed -n '/"trivial"/,/^  ],/p' answer.json | grep -c '"method": "top-offline"'
if python3 -c '' 2>/dev/null; then
    python3 -c '
import json
answer = json.load(open("answer.json"))
assert answer["study"] == "bbo" and not answer["interrupted"]
assert len(answer["rows"]) == 6 and len(answer["trivial"]) == 6
for row in answer["rows"]:
    assert list(row) == ["task", "method", "seed", "max", "median", "distinct", "inside", "seconds"], row
    assert row["median"] <= row["max"] <= -0.397, row'
fi
