# A row whose log ratio is no finite number is an error that names it, not "null"; names of files need not be UTF-8.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
folder=$(printf 'caf\351')
mkdir "$folder"
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >"$folder/a.csv"
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce fit -n "$folder/a.csv" -d b.csv -o "$folder/model" --critic quadratic --json | iconv -f UTF-8 -t UTF-8 >/dev/null && echo UTF-8
printf 'x0,x1\n1,1\n1e160,1\n' >rows.csv
n2ce score "$folder/model" rows.csv
