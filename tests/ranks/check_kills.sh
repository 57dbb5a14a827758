#!/bin/sh
# Usage: check_kills.sh PROGRAM [ROUNDS [kill]]
#
# A rank of an optimisation is killed at some moment, or the job is interrupted: it ends with a sentence, files are
# whole, and it goes on with another number of ranks, to the bytes of a run that nobody disturbed. The moments are those
# of the system's clock: each run of this tries others. With `kill` no job is interrupted, all ranks are killed.
set -u
program=$1
rounds=${2:-2}
how=${3:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0
complain() {
    echo "$*"
    failed=1
}
awk 'BEGIN {
    srand(3); print "a,b,value"
    for (i = 0; i < 80; i++) { x = rand(); y = rand(); printf "%.4f,%.4f,%.4f\n", x, y, -(x - .4) ^ 2 - (y - .6) ^ 2 }
}' >designs.csv

# optimize RANKS WORDS...: proposals in out.csv.
optimize() {
    ranks=$1
    shift
    exec "$program" optimize designs.csv -m value -Q 4 --effort 0.01 --joint 20 --rounds 20 --device cpu --threads 1 \
        --checkpoint state -o out.csv --ranks "$ranks" "$@"
}
began=$(date +%s%N)
(optimize 1 --force >/dev/null 2>err) || complain "undisturbed: $(cat err)"
took=$((($(date +%s%N) - began) / 1000000))
mv out.csv want.csv
rm -f state

# One of the ranks of process $1 that this shell started, the $2-th; rank 0 is the process itself.
rank_of() {
    { echo "$1"; cat "/proc/$1/task/$1/children" | tr ' ' '\n'; } | sed -n "$(($2 + 1))p"
}

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    chance=$(od -An -N2 -tu2 /dev/urandom)
    (optimize 3 >out 2>err) &
    job=$!
    sleep "$(awk -v a="$chance" -v t="$took" 'BEGIN { print a / 65536 * t / 1000 }')"
    if [ $((round % 2)) = 0 ] && [ "$how" != kill ]; then kill -INT "$job"; else kill -KILL "$(rank_of "$job" $((chance % 3)))"; fi 2>/dev/null
    code=0
    wait "$job" || code=$?
    if [ "$code" = 0 ]; then
        mv out.csv got.csv
    else
        [ ! -e out.csv ] || complain "round $round: a file of a job that was killed"
        [ "$code" = 137 ] || [ "$(grep -c '^n2ce: ' err)" = 1 ] || complain "round $round: exit $code: $(cat err)"
        (optimize $((1 + chance % 4)) --resume >out 2>err) || complain "round $round: resumed: $(cat err)"
        mv out.csv got.csv
    fi
    [ "$rounds" -le 2 ] || echo "round $round: exit $code"
    cmp -s got.csv want.csv || complain "round $round: other proposals than those of an undisturbed run"
    rm -f state got.csv
done
[ -z "$(ls | grep -vx 'designs.csv\|want.csv\|out\|err')" ] || complain "left behind: $(ls)"
exit "$failed"
