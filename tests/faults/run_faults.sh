#!/bin/sh
# run_faults.sh PROGRAM LIBRARY [FAULTS]: every call that changes a file fails once, in every verb that writes; then again,
# with other errors (no quota left, permission denied), until there were so many faults.
#
# A verb is run undisturbed first; then once for each of its calls, which fails. After each run every
# file is either as it was before or as the undisturbed run left it, none is there that neither had
# (but the state to go on from, where the result could not be written), and the program either did its work (exit 0, all files) or says a sentence (exit 1).
# Prints the number of faults, and what did not hold.
set -u
wanted=${3:-1}
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
library=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
cli=$(cd "$(dirname "$0")/../cli" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
faults=0 wrong=0

normals() { awk "$@" -f "$cli/normals.awk"; }

# Files of a folder with their sums.
state() { (cd "$1" && find . -type f | sort | xargs -r cksum); }

complain() {
    wrong=$((wrong + 1))
    echo "$verb, call $call of $calls: $1"
}

# check_files: each is as in `before` or as in `after`.
check_files() {
    state work >now
    while read -r line; do
        case $code$line in 1*.checkpoint) continue ;; esac
        grep -qxF "$line" before || grep -qxF "$line" after || complain "neither old nor new: $line"
    done <now
    while read -r line; do
        name=${line##* }
        [ -e "work/${name#./}" ] || complain "lost: $name"
    done <before
}

# check_together: a report is both of its files or none, pictures of a folder are all there or none.
check_together() {
    case $verb in *report* | *folder* | study*) ;; *) return ;; esac
    (cd work && find out -type f 2>/dev/null | sort | xargs -r cksum) >out.now
    [ ! -s out.now ] || cmp -s out.now out.before || cmp -s out.now out.after || complain "half a result: $(cut -d ' ' -f 3 out.now | tr '\n' ' ')"
}

# attempt NAME COMMAND...: in a copy of `start`, all calls fail in turn.
attempt() {
    verb=$1
    shift
    rm -rf work && cp -rp start work && state work >before
    (cd work && LD_PRELOAD=$library N2CE_FAIL_COUNT=$scratch/calls "$program" "$@" >/dev/null 2>&1)
    calls=$(cat calls)
    [ "$calls" -gt 0 ] || { echo "$verb: no call is seen, so nothing is tested" && wrong=$((wrong + 1)); }
    state work >after
    (cd work && find out -type f 2>/dev/null | sort | xargs -r cksum) >out.after
    (cd start && find out -type f 2>/dev/null | sort | xargs -r cksum) >out.before
    cmp -s before after && echo "$verb: writes nothing, so nothing is tested" && wrong=$((wrong + 1))
    call=1
    while [ "$call" -le "$calls" ]; do
        rm -rf work && cp -rp start work
        (cd work && LD_PRELOAD=$library N2CE_FAIL_AT=$call timeout 300 "$program" "$@" >/dev/null 2>"$scratch/said")
        code=$?
        check_files
        case $code in
        0) state work | cmp -s - after || complain "exit 0, but not all files are there" ;;
        1)
            check_together
            grep -q '^n2ce: .*\.$' said || complain "no sentence: $(cat said)"
            ;;
        *) complain "exit $code: $(tail -n 1 said)" ;;
        esac
        faults=$((faults + 1))
        call=$((call + 1))
    done
    echo "$verb: $calls calls"
}

mkdir start && cd start || exit 1
normals -v n=60 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=60 -v d=2 -v seed=2 -v header=1 >b.csv
awk 'BEGIN { srand(1); print "u,v,y"; for (i = 0; i < 60; i++) { u = rand(); v = rand(); print u "," v "," u - v * v } }' >designs.csv
"$program" fit -n a.csv -d b.csv -o model --critic quadratic -q >/dev/null
"$program" detect --normal a.csv --save odd -q >/dev/null 2>&1
cp a.csv old.csv
{
    printf '\0\0\010\003\0\0\0\144\0\0\0\010\0\0\0\010'
    awk 'BEGIN { srand(3); for (i = 0; i < 6400; i++) printf "%c", 1 + 120 * rand() }'
} >pictures.idx
tiny='--width 4 --codes 2 --batch 8 --noise 2 --phases 3,3,2 --device cpu'
# shellcheck disable=SC2086
"$program" train pictures.idx -o prior $tiny -q >/dev/null
small='--batch 8 --watched 0 --looks 2 --force-cpu --device cpu'
# shellcheck disable=SC2086
"$program" train --model diffusion pictures.idx -o teacher --width 4 --seen 64 $small -q >/dev/null
cd ..
quick='--critic quadratic -q'
# shellcheck disable=SC2086
every_verb() {
    attempt 'fit' fit -n a.csv -d b.csv -o new $quick
    attempt 'fit --force' fit -n a.csv -d b.csv -o model --seed 7 --force $quick
    attempt 'divergence --report' divergence -n a.csv -d b.csv --report out $quick
    attempt 'score' score model a.csv -o scores.csv -q
    attempt 'score --force' score model b.csv -o old.csv --force -q
    attempt 'score to NPY' score model a.csv -o scores.npy -q
    attempt 'detect' detect --model odd b.csv -o flagged.csv -q
    attempt 'detect --save' detect --normal a.csv b.csv -o flagged.csv --save new -q
    attempt 'optimize' optimize designs.csv -m y -Q 4 --effort 0.01 --rounds 2 --ambition 1 -o next.csv -q
    attempt 'mi --report' mi a.csv -x 0 -y 1 --report out $quick
    attempt 'test --report' test -n a.csv -d b.csv --report out -q
    attempt 'train' train pictures.idx -o new $tiny -q
    attempt 'train --force' train pictures.idx -o prior --seed 3 --force $tiny -q
    attempt 'sample' sample prior -n 4 -o sheet.png -q
    attempt 'sample into a folder' sample prior -n 4 -o out -q
    attempt 'train --model diffusion' train --model diffusion pictures.idx -o new --width 4 --seen 64 $small -q
    attempt 'distill' distill teacher pictures.idx -o new --seen 32 $small -q
    attempt 'study gaussian' study gaussian --runs 3 --dim 2 --n 20 --report out -q
    mkdir start/out && (cd start && "$program" study gaussian --runs 2 --dim 2 --n 20 --report out -q >/dev/null)
    attempt 'study gaussian --force' study gaussian --runs 3 --dim 2 --n 20 --report out --force -q
    rm -r start/out
    attempt 'study draw' study draw shifted-2d --n 50 --num new.csv --den newer.csv -q
}
every_verb
for error in 122 13; do # EDQUOT, EACCES
    [ "$faults" -lt "$wanted" ] || break
    echo "with error $error:"
    export N2CE_FAIL_WITH=$error
    every_verb
done
echo "$faults faults, $wrong wrong"
[ "$faults" -ge "$wanted" ] || echo "fewer than the $wanted that were asked for"
[ "$wrong" = 0 ]
