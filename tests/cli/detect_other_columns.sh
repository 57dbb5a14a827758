# Columns are found by name, and all must be there.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=30 -v d=2 -v seed=1 -v header=1 >good.csv
sed 's/x1/y1/' good.csv >new.csv
n2ce detect --normal good.csv new.csv --parts near -o flagged.csv
