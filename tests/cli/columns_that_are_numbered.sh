# 0,1,2 in the first line are names, not a row: every row has one score.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=60 -v d=3 -v seed=1 -v mean=1 >a.csv
normals -v n=70 -v d=3 -v seed=2 >b.csv
for name in a b; do (echo 0,1,2 && cat $name.csv) >numbered_$name.csv; done
n2ce fit -n a.csv -d b.csv -o plain.safetensors --critic quadratic >/dev/null 2>&1
n2ce fit -n numbered_a.csv -d numbered_b.csv -o model.safetensors --critic quadratic >/dev/null 2>&1
n2ce score model.safetensors numbered_a.csv >scores 2>said
grep -c . scores
n2ce score plain.safetensors a.csv | cmp - scores && cat said
