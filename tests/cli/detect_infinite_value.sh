# A missing value is a value; an infinite one is a mistake, with its place.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=30 -v d=2 -v seed=1 -v header=1 >good.csv
printf 'x0,x1\n1,1\n2,inf\n' >new.csv
n2ce detect --normal good.csv new.csv --parts near
