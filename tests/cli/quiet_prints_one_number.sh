# --quiet: one number a verb, and nothing on stderr.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
number='^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$'
n2ce fit -q -n a.csv -d b.csv -o model --critic quadratic >n1
n2ce divergence -q -n a.csv -d b.csv --steps 20 --width 8 --folds 2 >n2
n2ce mi -q --x 0 --y 1 a.csv --critic quadratic >n3
n2ce test -q -n a.csv -d b.csv --critic quadratic >n4
for i in n1 n2 n3 n4; do
    [ "$(wc -l <$i)" -eq 1 ] && grep -qE "$number" $i || cat $i
done
