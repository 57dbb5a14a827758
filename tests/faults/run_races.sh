#!/bin/sh
# run_races.sh PROGRAM [ROUNDS]: two programs write one file at the same time, without --force.
#
# In every round exactly one of them writes its result, whole, and says so by exit 0; the other exits with 2, and a
# sentence. A file that somebody makes in between is never replaced. Verbs take turns. Prints the number of rounds, and what did not
# hold.
set -u
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
rounds=${2:-20}
cli=$(cd "$(dirname "$0")/../cli" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
wrong=0 stranger_kept=0

normals() { awk "$@" -f "$cli/normals.awk"; }
complain() {
    wrong=$((wrong + 1))
    echo "round $round, $verb: $1"
}

# one WHO: the command of this round; the two differ in what they write.
one() {
    case $verb in
    score) "$program" score "model$1" a.csv -o out -q ;;
    fit) "$program" fit -n a.csv -d b.csv -o out --critic quadratic --level "0.$1" -q ;;
    detect) "$program" detect --model odd "rows$1.csv" -o out -q ;;
    report) "$program" study gaussian --runs 2 --dim 2 --n 20 --seed "$1" --report out -q ;;
    esac >/dev/null 2>"said$1"
}

normals -v n=60 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=60 -v d=2 -v seed=2 -v header=1 >b.csv
cp a.csv rows8.csv && cp b.csv rows9.csv
"$program" fit -n a.csv -d b.csv -o model8 --critic quadratic -q >/dev/null
"$program" fit -n b.csv -d a.csv -o model9 --critic quadratic -q >/dev/null
"$program" detect --normal a.csv --save odd -q >/dev/null 2>&1
for verb in score fit detect report; do
    for who in 8 9; do
        rm -rf out && one $who || exit 1
        mv out "alone.$verb.$who"
    done
done
round=1
while [ "$round" -le "$rounds" ]; do
    verb=$(awk -v n="$round" 'BEGIN { split("score fit detect report", v, " "); print v[n % 4 + 1] }')
    rm -rf out
    one 8 &
    first=$!
    one 9 &
    second=$!
    # Every fifth round a third one makes the file, as an editor would.
    [ $((round % 5)) -ne 0 ] || [ "$verb" = report ] || (set -C && echo mine >out) 2>/dev/null
    wait $first
    a=$?
    wait $second
    b=$?
    if [ -f out ] && [ "$(head -c 4 out)" = mine ]; then
        stranger_kept=$((stranger_kept + 1))
        [ "$a$b" = 22 ] || complain "exits $a and $b, though the file is another's"
    else
        case $a$b in
        02) diff -r out "alone.$verb.8" >/dev/null || complain 'the file is not that of who wrote it' ;;
        20) diff -r out "alone.$verb.9" >/dev/null || complain 'the file is not that of who wrote it' ;;
        *) complain "exits $a and $b: $(cat said8 said9)" ;;
        esac
    fi
    [ "$(find . -name '.*n2ce*' -o -name '*.tmp*' | wc -l)" = 0 ] || complain "left behind: $(ls -A)"
    round=$((round + 1))
done
echo "$rounds rounds of two programs, $stranger_kept with a third one's file, $wrong wrong"
[ "$wrong" = 0 ]
