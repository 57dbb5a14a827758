# A model that was saved judges as the one that was learnt; columns may come in another order.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=100 -v d=3 -v seed=1 -v header=1 >good.csv
normals -v n=40 -v d=3 -v seed=2 -v header=1 >new.csv
n2ce detect --normal good.csv new.csv -o a.csv --save model -q
n2ce detect --model model new.csv -o b.csv -q --threads 1
cmp a.csv b.csv && echo same
awk -F, -v OFS=, '{ print $3, $1, $2 }' new.csv >turned.csv
n2ce detect --model model turned.csv -o c.csv -q
cut -d, -f 4-6 a.csv >a
cut -d, -f 4-6 c.csv >c
cmp a c && echo same
n2ce info model
n2ce score model new.csv >scores
cut -d, -f 4 a.csv | sed 1d | cmp - scores && echo same
n2ce detect --normal good.csv new.csv -o a.csv
n2ce detect --model good.csv new.csv
