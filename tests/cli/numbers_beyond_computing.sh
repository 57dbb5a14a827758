# Bounds and data with which nobody can compute: a sentence says which column, and what to do.
table() { awk "$@" 'BEGIN { srand(1); print "u,v,y"; for (i = 0; i < 60; i++) { u = rand(); v = rand(); print u size "," v "," u - v * v value } }'; }
table >designs.csv
bound() {
    printf 'column,low,high\nu,%s,%s\n' "$1" "$2" >bounds.csv
    n2ce optimize designs.csv -m y --bounds bounds.csv -q
}
bound 0.5 0.5
bound 0.7 0.5
bound 1e-310 2e-310
bound -1e308 1e308
bound 2 3
table -v size=e-301 >designs.csv
n2ce optimize designs.csv -m y -q
table -v value=e-310 >designs.csv
n2ce optimize designs.csv -m y -q
awk 'BEGIN { srand(2); print "u,v,y"; for (i = 0; i < 60; i++) print int(9 * rand()) "," rand() "," rand() }' >designs.csv
bound 0.2 0.8
normals() { awk "$@" -f "${0%/*}/normals.awk" | sed 's/,/e-300,/g; s/$/e-300/'; }
normals -v n=60 -v d=2 -v seed=1 -v mean=1 >a.csv
normals -v n=60 -v d=2 -v seed=2 >b.csv
n2ce divergence -n a.csv -d b.csv -q
n2ce mi a.csv -x 0 -y 1 -q
