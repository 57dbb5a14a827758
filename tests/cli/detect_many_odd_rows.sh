# Without normal rows: odd ones, in eight corners, that are a twentieth, a tenth and more of all are flagged all the same.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=950 -v d=3 -v seed=1 -v header=1 >normal.csv
for odd in 0 40 50 80 106 150; do
    (cat normal.csv && normals -v n=$odd -v d=3 -v seed=2 |
        awk -F, '{ k = NR % 8; print $1 + (k % 2 ? 9 : -9) "," $2 + (k % 4 > 1 ? 9 : -9) "," $3 + (k > 3 ? 9 : -9) }') >all.csv
    n2ce detect all.csv -o flagged.csv --fdr 0.05 --force --quiet >/dev/null
    awk -F, -v odd=$odd 'NR > 951 { hits += $NF } NR > 1 && NR <= 951 { wrong += $NF }
        END { print odd ":", (hits >= 0.95 * odd ? "found" : hits " found"), (wrong <= 1 + 0.1 * odd ? "few wrong" : wrong " wrong") }' flagged.csv
done
