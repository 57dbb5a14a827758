# A constant column, even one of 1e30, changes nothing; the model's account says so.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
for k in 7 1e30; do
    for f in a b; do awk -v k=$k '{ print $0 "," (NR == 1 ? "k" : k) }' $f.csv >$f-k.csv; done
    n2ce divergence -q -n a-k.csv -d b-k.csv --critic quadratic
done >with
n2ce divergence -q -n a.csv -d b.csv --critic quadratic >without
cat without without | cmp - with
n2ce fit -q -n a-k.csv -d b-k.csv --critic quadratic -o model >/dev/null
n2ce info model | grep ' k '
