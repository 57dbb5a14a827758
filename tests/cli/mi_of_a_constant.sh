# A constant has no information about anything.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
awk '{ print $0 "," (NR == 1 ? "five" : 5) }' b.csv >five.csv
n2ce mi --x 2 --y 0,1 five.csv
