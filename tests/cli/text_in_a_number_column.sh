# Text among numbers: file, line, column, and what to do.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
sed '7s/.*/0.5,red/' a.csv >text.csv
n2ce fit --num text.csv --den b.csv -o model
