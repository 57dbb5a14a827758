# A file that was joined to itself five times, and new rows like its own: none is odd.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=80 -v d=2 -v seed=1 -v header=1 >once.csv
normals -v n=80 -v d=2 -v seed=2 -v header=1 >new.csv
(cat once.csv; for i in 1 2 3 4; do sed 1d once.csv; done) >five.csv
n2ce detect --normal five.csv new.csv --parts near,margins --quiet --save model
n2ce detect --model model new.csv --quiet
