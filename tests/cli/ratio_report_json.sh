# What the JSON of a report holds, and that it is JSON.
command -v python3 >/dev/null || exit 0
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
small='--steps 30 --width 8 --folds 2 --critic net --stages 2 --quiet --report r'
# shellcheck disable=SC2086
{
    n2ce fit -n a.csv -d b.csv -o model $small
    n2ce mi --x 0 --y 1 a.csv $small
    n2ce test -n a.csv -d b.csv $small
} >numbers
cat >look.py <<'PY'
import json
for verb in "fit", "mi", "test":
    r = json.load(open(f"r/{verb}.json"))["report"]
    print(verb, *r)
    for side in "num", "den":
        h = r["log_ratios"][side]
        assert h["rows"] == h["below"] + h["above"] + sum(h["count"])
    print(sorted((c["column"], c.get("of")) for c in r["columns"]), len(r["stages"]), "stages")
    for c in r["curves"]:
        assert c["step"][0] == 0 and len(c["step"]) == len(c["loss"])
        assert c["kept"] == c["step"][min(range(len(c["loss"])), key=c["loss"].__getitem__)]
null = json.load(open("r/test.json"))["report"]["null"]["histogram"]["permutations"]
print(null["rows"], "permutations")
PY
python3 look.py
