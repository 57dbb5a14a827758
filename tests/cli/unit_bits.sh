# Bits are nats divided by ln 2.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
for unit in nats bits; do
    n2ce divergence -q -n a.csv -d b.csv --critic quadratic --unit $unit
    n2ce mi -q --x 0 --y 1 a.csv --critic quadratic -u $unit
done | awk '{ x[NR] = $1 } END {
    for (i = 1; i <= 2; i++) { r = x[i] / x[i + 2] / log(2); print (r > 0.999999 && r < 1.000001 ? "right" : r) }
}'
n2ce mi --x 0 --y 1 a.csv --critic quadratic -u bits | grep -o bits
