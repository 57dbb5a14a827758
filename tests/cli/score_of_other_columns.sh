# Rows without the model's columns; others may be chosen by hand.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce fit -q -n a.csv -d b.csv --critic quadratic -o model >/dev/null
n2ce score model a.csv >want
sed '1s/.*/u,v/' a.csv >uv.csv
n2ce score model uv.csv --columns u,v | cmp - want
n2ce score model uv.csv --columns u
n2ce score model uv.csv
