# --json is one object whose rows have the documented keys.
n2ce study gaussian --dim 3 --n 20 --runs 4 --steps 10 --json >answer.json
if python3 -c '' 2>/dev/null; then
    python3 -m json.tool answer.json >/dev/null || exit 1
    python3 -c '
import json
for row in json.load(open("answer.json"))["rows"]:
    assert row.keys() >= {"M", "kind", "mean", "std", "paper"}, row'
else
    [ "$(head -c 1 answer.json)$(tail -n 1 answer.json)" = '{}' ] || exit 1
    grep -q '"rows": \[' answer.json || exit 1
fi
grep -c '"kind": "[a-z0-9-]*", "M": [^,]*, "mean": [^,]*, "std": [^,]*, "paper": ' answer.json
