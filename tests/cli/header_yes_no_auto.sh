# Names or data in the first line: told, or assumed and said.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=60 -v d=2 -v seed=1 -v mean=1 >a.csv
normals -v n=60 -v d=2 -v seed=2 >b.csv
n2ce fit -n a.csv -d b.csv -o m --critic quadratic -q >/dev/null 2>&1
headed() { (echo "$1" && cat a.csv) >headed.csv; }
count() { n2ce score m headed.csv "$@" | grep -c .; }

echo 'two years, which may be either'
headed 2019,2020
count
count --header no
count --header yes --columns 0,1
echo 'numbers of two columns'
headed 0,1
count
count --header yes
echo 'a text and a number'
headed x,2020
count
count --header yes --columns 0,1
echo 'detect writes as many rows as it judged'
headed 2019,2020
n2ce detect --normal b.csv headed.csv --header no -q -o judged.csv >/dev/null 2>&1
head -n 2 judged.csv | cut -d, -f1-2
n2ce detect --normal headed.csv headed.csv --header yes -q -o judged.csv --force >/dev/null 2>&1
head -n 1 judged.csv
echo 'texts alone'
printf 'a,b\nc,d\ne,d\nc,f\na,b\na,d\n' >texts.csv
n2ce test -n texts.csv -d texts.csv --categorical 0,1 >/dev/null
n2ce test -n texts.csv -d texts.csv --categorical 0,1 --header no >/dev/null && echo silent
printf 'a,a\nc,d\n' >texts.csv
n2ce test -n texts.csv -d texts.csv --categorical 0,1 -q
echo 'optimize'
awk 'BEGIN { srand(1); print "0,1"; for (i = 0; i < 40; i++) print rand() "," rand() }' >designs.csv
n2ce optimize designs.csv -m 1 -Q 2 --effort 0.01 --header yes 2>/dev/null | head -n 1
