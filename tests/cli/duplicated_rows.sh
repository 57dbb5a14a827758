# Rows that are there four times: still a number near the truth.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
sed 1d a.csv >rows
cat a.csv rows rows rows >often.csv
n2ce divergence -q -n often.csv -d b.csv --steps 60 --width 8 | awk '{ print ($1 > 0.3 && $1 < 3 ? "about 1" : $1) }'
