# A row against a correlation, and one far out, among rows like the normal ones: the oddest two, both
# flagged, with the columns that make them so.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=200 -v d=4 -v seed=1 -v rho=0.95 -v header=1 >good.csv
normals -v n=20 -v d=4 -v seed=2 -v rho=0.95 -v header=1 >new.csv
echo '1.5,-1.5,0,0' >>new.csv
echo '0,0,9,9' >>new.csv
n2ce detect --normal good.csv new.csv -o flagged.csv --worst 2 --fdr 0.1 |
    sed -E 's/ {2,}[0-9.]+ +[0-9.]+ +([0-9.]+)   / ... \1 /'
head -n 1 flagged.csv
awk -F, 'NR > 21 { print $1, $2, $3, $4, $7 }' flagged.csv
awk -F, 'NR > 1 && NR <= 21 { flags += $7 } END { print flags + 0, "of the others" }' flagged.csv
