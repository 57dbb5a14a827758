#!/bin/sh
# check_score.sh PROGRAM SCORE: models that the program fits are scored by examples/score.c to the
# same bits, with scaling inside; a model of other columns, or a damaged one, is refused.
set -eu
program=$1 score=$2
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    printf 'check_score: %s\n' "$*" >&2
    exit 1
}

cd "$scratch"
for k in 1 2; do
    awk -v n=200 -v d=2 -v seed=$k -v mean=$((2 - k)) -v header=1 -f "$here/cli/normals.awk" >$k.csv
done
printf 'x0,x1\n0.5,1\n-1,0\n2,2.5\n' >rows.csv
small='--steps 40 --width 8 --folds 2'
for kind in '--critic quadratic' "--critic net $small" "--critic net --stages 2 --scaling normal $small" \
    "--method kliep" "--critic auto"; do
    # shellcheck disable=SC2086
    "$program" fit -q --num 1.csv --den 2.csv -o model -f $kind >/dev/null
    "$program" score model rows.csv | awk '{ printf "%.17g\n", $1 }' >want
    "$score" model >got
    cmp want got || fail "other bits with $kind"
done

"$program" fit -q --num 1.csv --den 2.csv -o narrow --columns 0 --critic quadratic >/dev/null
for file in narrow rows.csv nothing; do
    ! "$score" $file >got 2>said || fail "$file was not refused"
    [ ! -s got ] && [ "$(wc -l <said)" -eq 1 ] || fail "$file: $(cat got said)"
done
echo "score: the same bits"
