# A column that is there twice changes nothing.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
for f in a b; do awk -F, '{ print $0 "," (NR == 1 ? "again" : $1) }' $f.csv >$f-twice.csv; done
{
    n2ce divergence -q -n a.csv -d b.csv --critic quadratic
    n2ce divergence -q -n a-twice.csv -d b-twice.csv --critic quadratic
} | awk '{ x[NR] = $1 } END { d = x[1] - x[2]; print (NR == 2 && d * d < 1e-8 ? "same" : x[1] " and " x[2]) }'
