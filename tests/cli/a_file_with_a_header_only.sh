# A file with names and no rows.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
echo x0,x1 >header.csv
n2ce fit --num a.csv --den header.csv -o model
