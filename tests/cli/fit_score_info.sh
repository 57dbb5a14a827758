# A model from two files, its account of itself, and its score of each row.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce fit --num a.csv --den b.csv --critic quadratic -o model
n2ce info model | sed 's/^fitted as .*/fitted as .../'
n2ce score model a.csv >scores
grep -cE '^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$' scores
awk '{ sum += $1 } END { print (sum > 60 ? "more like the numerator" : "wrong: " sum) }' scores
n2ce score model b.csv | awk '{ sum += $1 } END { print (sum < -50 ? "more like the denominator" : "wrong: " sum) }'
