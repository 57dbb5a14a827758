# Training without an end stops in time, and the verdict says so.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
start=$(date +%s)
n2ce divergence -n a.csv -d b.csv --critic net --width 8 --folds 2 --steps 1e9 --rate 1e-9 --time-limit 1 | tail -n 1
end=$(date +%s)
[ $((end - start)) -lt 30 ] || echo "it took $((end - start)) seconds"
