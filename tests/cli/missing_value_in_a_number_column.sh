# A missing value is refused unless rows with such may be dropped.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
sed '9s/.*/,1/' a.csv >holes.csv
n2ce divergence --num holes.csv --den b.csv --critic quadratic --drop-missing | grep samples
n2ce divergence --num holes.csv --den b.csv
