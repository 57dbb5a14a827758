# Two files whose columns have different names.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
sed 's/^x0,x1/x0,y1/' a.csv >other.csv
n2ce divergence --num other.csv --den b.csv
