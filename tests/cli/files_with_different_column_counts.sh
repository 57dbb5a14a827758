# Two files with different numbers of columns.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
cut -d, -f1 a.csv >one.csv
n2ce divergence --num one.csv --den b.csv
