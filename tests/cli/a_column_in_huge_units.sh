# Units of 1e30 change nothing that matters.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
for f in a b; do awk -F, '{ print NR == 1 ? $0 : $1 * 1e30 "," $2 }' OFMT=%.12g CONVFMT=%.12g $f.csv >$f-huge.csv; done
{
    n2ce divergence -q -n a.csv -d b.csv --critic quadratic
    n2ce divergence -q -n a-huge.csv -d b-huge.csv --critic quadratic
} | awk '{ x[NR] = $1 } END { d = x[1] - x[2]; print (NR == 2 && d * d < 1e-10 ? "same" : x[1] " and " x[2]) }'
