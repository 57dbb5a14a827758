# Standard input, files without a header, columns by name and range, NPY: the same number.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
estimate() { n2ce divergence -q --critic quadratic "$@"; }
estimate -n a.csv -d b.csv >want
estimate -n - -d b.csv <a.csv | cmp - want
sed 1d a.csv >a-bare.csv
sed 1d b.csv >b-bare.csv
estimate -n a-bare.csv -d b-bare.csv | cmp - want
estimate -n a-bare.csv -d b.csv | cmp - want
estimate -n a.csv -d b.csv -c x0,x1 | cmp - want
estimate -n a.csv -d b.csv -c 0-1 | cmp - want
for f in a b; do awk -F, '{ print $2 "," (NR == 1 ? "name" : "text") "," $1 }' $f.csv >$f-wide.csv; done
estimate -n a-wide.csv -d b-wide.csv -c x0,x1 | cmp - want
estimate -n a-wide.csv -d b-wide.csv -c 2,0 | cmp - want
tr , '\t' <a.csv >a.tsv
estimate -n a.tsv -d b.csv | cmp - want
n2ce fit -q -n a.csv -d b.csv --critic quadratic -o model >/dev/null
for f in a b; do
    n2ce score model $f.csv -o $f.npy -q >/dev/null
    n2ce score model $f.csv >$f.txt
done
estimate -n a.npy -d b.npy >npy
estimate -n a.txt -d b.txt | cmp - npy
estimate -n - -d b.npy <a.npy | cmp - npy
