# A row with a missing value is refused, or left out.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce fit -q -n a.csv -d b.csv --critic quadratic -o model >/dev/null
sed '3s/.*/NA,1/' b.csv >holes.csv
n2ce score model holes.csv --drop-missing | wc -l | tr -d ' '
n2ce score model holes.csv
