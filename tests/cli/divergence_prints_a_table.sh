# KL both ways, JS and the M-path, with intervals; what was chosen; what to think of it.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce divergence -n a.csv -d b.csv --critic quadratic --path 1,1000
