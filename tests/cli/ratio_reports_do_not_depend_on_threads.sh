# Pages and their JSON have the same bytes for any number of threads.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=3 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=3 -v seed=2 -v header=1 >b.csv
small='--steps 30 --width 8 --folds 2 --critic net --stages 2 --quiet --report r'
for t in 1 2 7; do
    # shellcheck disable=SC2086
    {
        n2ce fit -n a.csv -d b.csv -o model -f $small --threads $t
        n2ce divergence -n a.csv -d b.csv $small --threads $t
        n2ce mi --x 0 --y 1,2 a.csv $small --threads $t
        n2ce test -n a.csv -d b.csv $small --threads $t
    } >numbers
    mv r r-$t
done
diff -r r-1 r-2
diff -r r-1 r-7
ls r-1
