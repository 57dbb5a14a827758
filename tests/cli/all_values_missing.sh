# Nothing but NaN.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
awk 'BEGIN { print "x0,x1"; for (i = 0; i < 50; i++) print "nan,NaN" }' >holes.csv
n2ce divergence --num holes.csv --den b.csv --drop-missing
