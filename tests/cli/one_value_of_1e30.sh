# One value of 1e30 among others does not spoil them.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
sed '8s/,.*/,1e30/' a.csv >huge.csv
{
    n2ce divergence -q -n a.csv -d b.csv --critic quadratic
    n2ce divergence -q -n huge.csv -d b.csv --critic quadratic
} | awk '{ x[NR] = $1 } END { d = x[1] - x[2]; print (NR == 2 && d * d < 0.1 ? "close" : x[1] " and " x[2]) }'
