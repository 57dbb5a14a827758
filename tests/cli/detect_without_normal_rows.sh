# Rows that are judged by one another: three are far off.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=400 -v d=3 -v seed=1 -v header=1 >all.csv
printf '9,0,0\n0,-12,1\n7,7,7\n' >>all.csv
n2ce detect all.csv -o flagged.csv --worst 3 --parts near,margins | sed -E 's/ {2,}[0-9.]+ +[0-9.]+ +([0-9.e-]+) / ... \1/'
awk -F, '$6 == 1 { print $1 "," $2 "," $3 }' flagged.csv
