# One value of 1e30 among others does not spoil them, whichever fold it is dealt into.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
sed '8s/,.*/,1e30/' a.csv >huge.csv
sed '5s/,.*/,-1e30/' b.csv >low.csv
head -n 61 huge.csv >few_huge.csv
head -n 61 a.csv >few_a.csv
head -n 61 b.csv >few_b.csv
# compare NUM DEN WITH_NUM WITH_DEN: the estimates without and with the value, over seeds.
compare() {
    for seed in 0 1 2 3 4 5 6 7 8 9 10 11; do
        n2ce divergence -q -n "$1" -d "$2" --critic quadratic --seed $seed | head -n 1
        n2ce divergence -q -n "$3" -d "$4" --critic quadratic --seed $seed | head -n 1
    done | awk '{ x[NR % 2] = $1 } NR % 2 == 0 {
        d = x[1] - x[0]; far += !(d * d < 0.02); if (d * d >= 0.02) print x[1] " and " x[0]
    } END { print (NR == 24 && !far ? "close" : far " are far off") }'
}
compare a.csv b.csv huge.csv b.csv
compare a.csv b.csv a.csv low.csv
compare few_a.csv few_b.csv few_huge.csv few_b.csv
