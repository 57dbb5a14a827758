# What --json prints is JSON, for every verb.
command -v python3 >/dev/null || exit 0
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
small='--steps 20 --width 8 --folds 2 --json'
parse() { python3 -c 'import json, sys; json.load(sys.stdin)' || echo "not JSON: $*"; }
# shellcheck disable=SC2086
{
    n2ce fit -n a.csv -d b.csv -o model $small | parse fit
    n2ce divergence -n a.csv -d b.csv $small | parse divergence
    n2ce mi --x 0 --y 1 a.csv $small | parse mi
    n2ce test -n a.csv -d b.csv $small | parse test
}
n2ce score model a.csv --json | parse score
n2ce info model --json | parse info
