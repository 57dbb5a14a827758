# Every ratio verb has a page that loads nothing, and says the same with and without it.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=3 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=3 -v seed=2 -v header=1 >b.csv
small='--steps 30 --width 8 --folds 2 --quiet'
# shellcheck disable=SC2086
{
    n2ce fit -n a.csv -d b.csv -o model $small --report r >fit
    n2ce divergence -n a.csv -d b.csv $small -r r >divergence
    n2ce mi -x x0 -y x1,x2 a.csv $small -r r >mi
    n2ce test -n a.csv -d b.csv $small -r r >test
    n2ce divergence -n a.csv -d b.csv $small | cmp - divergence
    n2ce test -n a.csv -d b.csv $small | cmp - test
}
ls -A r
for page in r/*.html; do
    grep -nE 'https?://|src=|<link|<script|@import' "$page"
    head -n 1 "$page"
    tail -n 1 "$page"
    echo "$(grep -o '<svg class="n2-plot"' "$page" | wc -l | tr -d ' ') pictures"
done
grep -o 'x: x[0-9]<\|y: x[0-9]<' r/mi.html | sort -u
grep -o '<h1>.*</h1>' r/test.html
