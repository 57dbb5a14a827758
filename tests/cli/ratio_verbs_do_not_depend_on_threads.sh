# Neither answers nor models depend on the number of threads.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
small='--steps 30 --width 8 --folds 2 --critic net'
for t in 1 2 7; do
    # shellcheck disable=SC2086
    {
        n2ce fit -n a.csv -d b.csv -o model -f $small --threads $t --json >fit-$t
        n2ce divergence -n a.csv -d b.csv $small --threads $t --json >divergence-$t
        n2ce mi --x 0 --y 1 a.csv $small --threads $t --json >mi-$t
        n2ce test -n a.csv -d b.csv $small --threads $t --json >test-$t
    }
    n2ce score model a.csv --threads $t >score-$t
    mv model model-$t
done
for verb in fit divergence mi test score model; do
    cmp $verb-1 $verb-2
    cmp $verb-1 $verb-7
done
