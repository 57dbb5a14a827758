# Values whose squares overflow are refused.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
awk -F, '{ print NR == 1 ? $0 : $1 "," $2 "e200" }' a.csv >huge.csv
n2ce divergence --num huge.csv --den b.csv
