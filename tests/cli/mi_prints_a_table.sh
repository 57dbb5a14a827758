# Mutual information of two groups of columns.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=300 -v d=4 -v seed=3 -v rho=0.8 -v header=1 >xy.csv
n2ce mi --x x0,x2 --y x1,x3 xy.csv --critic quadratic
