# Scores into files, as weights, and only over what may be replaced.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce fit -q -n a.csv -d b.csv --critic quadratic -o model >/dev/null
n2ce score model a.csv >scores
n2ce score model - <a.csv | cmp - scores
n2ce score model a.csv -o out.txt
cmp out.txt scores
n2ce score model a.csv -o out.npy
head -c 6 out.npy | tail -c 5
echo
n2ce score model a.csv --weights >weights
paste scores weights | awk '{ d = exp($1) / $2 - 1; bad += d * d > 1e-18 } END { print bad + 0 " wrong weights" }'
n2ce score model a.csv -o out.txt -q --force
n2ce score model a.csv -o out.txt
