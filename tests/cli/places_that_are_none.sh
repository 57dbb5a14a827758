# What cannot be a folder, or hold the state of hours of work, is refused before the work.
awk 'BEGIN { srand(5); print "a,b"; for (i = 0; i < 80; i++) print rand() "," rand() }' >a.csv
awk 'BEGIN { srand(1); print "u,v,y"; for (i = 0; i < 40; i++) { u = rand(); print u "," rand() "," u } }' >designs.csv
ln -s nowhere link
mkfifo pipe
mkdir folder
say() {
    timeout 20 "$@" -q 2>&1
    echo "exit $?"
}
say n2ce divergence -n a.csv -d a.csv --critic quadratic --report -
say n2ce divergence -n a.csv -d a.csv --critic quadratic --report link
say n2ce divergence -n a.csv -d a.csv --critic quadratic --report link/
n2ce man --all -
echo "exit $?"
{
    printf '\0\0\010\003\0\0\0\144\0\0\0\010\0\0\0\010'
    awk 'BEGIN { srand(3); for (i = 0; i < 6400; i++) printf "%c", 1 + 120 * rand() }'
} >pictures.idx
n2ce train pictures.idx -o model --width 4 --codes 4 --batch 16 --noise 2 --phases 2,2,2 --device cpu -q >/dev/null
say n2ce sample model -n 2 -o -
for place in - pipe folder link nowhere/state; do
    say n2ce optimize designs.csv -m y -o proposals.csv --checkpoint $place
    say n2ce train pictures.idx -o other --device cpu --checkpoint $place
done
ls
