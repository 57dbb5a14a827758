# --json is one object; a row a task, method and seed, with exactly the documented keys.
n2ce study ratio --tasks sanity,swiss-roll --methods ulsif,kliep --n 100 --seeds 3 --seed 5 --json >answer.json
grep -c '^    {"task": "[a-z0-9-]*", "method": "[a-z0-9-]*", "seed": [567], "truth": [^,]*, "estimate": [^,]*, "lo": [^,]*, "hi": [^,]*, "device": "cpu", "seconds": [^,]*, "log_ratio_mse": [^,]*, "trusted": [a-z]*},*$' answer.json
grep -c '"task": "swiss-roll".*"log_ratio_mse": null' answer.json # a mapped problem has no closed form
grep '"log_ratio_mse": null' answer.json | grep -c sanity
if python3 -c '' 2>/dev/null; then
    python3 -c '
import json
answer = json.load(open("answer.json"))
assert answer["study"] == "ratio" and not answer["interrupted"]
assert answer["options"]["tasks"] == "sanity,swiss-roll"
for row in answer["rows"]:
    assert row["lo"] <= row["estimate"] <= row["hi"], row'
fi
