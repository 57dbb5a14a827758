# Samples that differ get a small p, halves of one sample do not.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
normals -v n=110 -v d=2 -v seed=4 -v header=1 >c.csv
n2ce test -n a.csv -d b.csv --critic quadratic
n2ce test -n c.csv -d b.csv --critic quadratic --quiet | awk '{ print ($1 > 0.01 && $1 <= 1 ? "one distribution" : "wrong: " $1) }'
