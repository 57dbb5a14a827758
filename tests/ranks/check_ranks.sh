#!/bin/sh
# Usage: check_ranks.sh PROGRAM forked|mpi
#
# What several processes do together: the same bytes as one, sentences said once, files whole. With
# processes that the program forks itself, or with mpirun, if there is one.
set -u
program=$1
how=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
OMPI_MCA_btl_base_warn_component_unused=0
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export OMPI_MCA_btl_base_warn_component_unused
if [ "$how" = mpi ]; then
    command -v mpirun >/dev/null 2>&1 && [ -e "$(dirname "$program")/libn2ce_mpi.so" ] || {
        echo "skipped: no mpirun here, or the plugin was not built (Debian: openmpi-bin libopenmpi-dev)"
        exit 77
    }
fi
failed=0
complain() {
    echo "$*"
    failed=1
}

# ranks N WORDS...: n2ce on N ranks of one thread.
ranks() {
    n=$1
    shift
    if [ "$how" = mpi ]; then
        timeout 300 mpirun --oversubscribe -n "$n" "$program" "$@" --threads 1
    else
        timeout 300 "$program" "$@" --threads 1 --ranks "$n"
    fi
}

# rows N SHIFT: numbers that depend on their place alone.
rows() {
    awk -v n="$1" -v shift="$2" 'BEGIN {
        srand(7 + shift); print "a,b,c"
        for (i = 0; i < n; i++) {
            x = rand() + rand() + rand() - 1.5; y = rand() + rand() + rand() - 1.5
            printf "%.5f,%.5f,%.5f\n", x + shift, y * (1 + shift), x * y + rand()
        }
    }'
}
rows 400 0 >den.csv
rows 400 0.3 >num.csv
rows 5000 0.1 >new.csv
awk 'BEGIN {
    srand(3); print "a,b,value"
    for (i = 0; i < 200; i++) { x = rand(); y = rand(); printf "%.4f,%.4f,%.4f\n", x, y, -(x - .4) ^ 2 - (y - .6) ^ 2 }
}' >designs.csv

# same NAME WORDS...: what NAME becomes on 1, 2 and 4 ranks.
same() {
    name=$1
    shift
    for n in 1 2 4; do
        rm -rf "$n" && mkdir -p "$n"
        (cd "$n" && ranks "$n" "$@" >out 2>err) || complain "$name: $n ranks: exit $? $(cat "$n/err")"
        for file in "$n"/*; do
            cmp -s "$file" "1/${file#*/}" || complain "$name: ${file#*/} of $n ranks is not that of one"
        done
    done
}
same fit fit -n ../num.csv -d ../den.csv --critic both --steps 6 --folds 2 --width 128 --blocks 2 --batch 256 -M 20 \
    --noise 4 -o model.st
cp 1/model.st model.st
"$program" fit -n num.csv -d den.csv --critic quadratic -o quick.st >out || complain "$(cat out)"
{ cat new.csv; for i in $(seq 80); do tail -n +2 new.csv; done; } >long.csv # of more than one piece
same score score ../quick.st ../long.csv -o scores.txt
rows 90000 0.2 >many.csv # of more than one piece, and more rows than are kept
same 'fit by pieces' fit -n ../long.csv -d ../many.csv --critic quadratic --max-rows 5000 -o model.st
"$program" fit -n - -d many.csv --critic quadratic --max-rows 5000 -o piped.st --quiet <long.csv >out || complain "$(cat out)"
"$program" fit -n long.csv -d many.csv --critic quadratic --max-rows 5000 -o whole.st --quiet >whole || complain "$(cat whole)"
cmp -s out whole || complain "rows that are read by pieces are others than those of a pipe: $(cat out whole)"
{ echo a,b,c && tail -n 40000 many.csv; } >part-2.csv
head -n 50001 many.csv >part-1.csv
same 'fit by pieces, of several files' fit -n ../long.csv -d '../part-*.csv' --critic quadratic --max-rows 5000 -o model.st
"$program" fit -n long.csv -d 'part-*.csv' --critic quadratic --max-rows 5000 -o parts.st --quiet >parts || complain "$(cat parts)"
cmp -s whole parts || complain "several files are not what they are together: $(cat whole parts)"
same 'score several files' score ../quick.st '../part-[12].csv' -o scores.txt
"$program" score quick.st many.csv -o scores.txt >out && cmp -s scores.txt 1/scores.txt || complain 'scores of several files'
"$program" score quick.st long.csv -o long.npy >out && "$program" score quick.st many.csv -o many.npy --force >out || complain "$(cat out)"
same 'fit of NPY by pieces' fit -n ../long.npy -d ../many.npy --critic quadratic --max-rows 5000 -o model.st
cp 1/model.st one.st
same 'score NPY by pieces' score ../one.st ../long.npy -o scores.txt
{ cat many.csv; echo '"1","2'; echo '3",4'; } >quotes.csv
same 'fit of what cannot be cut' fit -n ../quotes.csv -d ../long.csv --columns a,c --max-rows 500 --critic quadratic -o model.st
same 'score without names' score ../quick.st ../new.csv -o scores.npy
same optimize optimize ../designs.csv -m value -Q 4 --effort 0.003 --joint 4 --rounds 4 --device cpu -o proposals.csv \
    --checkpoint state.st
same detect detect --normal ../den.csv ../new.csv -o flagged.csv

# Pictures, bright bars: networks that are trained on them, and by one another.
if [ "$how" = forked ]; then
    printf '\0\0\010\003\0\0\0\144\0\0\0\020\0\0\0\020' >bars # 100 of 16 by 16, as an IDX file
    LC_ALL=C awk 'BEGIN {
        srand(1)
        for (i = 0; i < 100; i++) { at = int(16 * rand()); for (k = 0; k < 256; k++) printf "%c", k % 16 == at ? 120 : 1 }
    }' >>bars
    few='--batch 16 --seen 32 --watched 64 --looks 1 --device cpu --force-cpu'
    same train train ../bars --width 16 --codes 8 --batch 32 --noise 8 --phases 2,2,1 --device cpu -q -o model
    # shellcheck disable=SC2086
    same 'train a diffusion model' train ../bars --model diffusion --width 16 $few -q -o teacher
    cp 1/teacher teacher
    # shellcheck disable=SC2086
    same distill distill ../teacher ../bars $few -q -o student

    # Runs of studies are dealt out. Seconds differ.
    # study NAME WORDS...: the rows of its JSON on 1 and 3 ranks.
    study() {
        name=$1
        shift
        for n in 1 3; do
            rm -rf "$n" && mkdir -p "$n"
            (cd "$n" && ranks "$n" study "$@" --device cpu --json >out 2>err) || complain "study $name: $n ranks: exit $? $(cat "$n/err")"
            sed 's/"[a-z_]*seconds": [0-9.e-]*/S/g' "$n/out" >"$n/rows"
        done
        [ "$(grep -c '"arm": ' 1/rows)" -ge 4 ] && cmp -s 1/rows 3/rows || complain "study $name: $(diff 1/rows 3/rows | head -5)"
    }
    study images images --images ../bars --width 4 --codes 4 --batch 16 --noise 2 --phases 4,4,2,1 --number 40 --arms vae,gaussian,n2ce --seeds 4
    study distill distill --images ../bars --width 4 --batch 4 --effort 3e-6 --number 64 --watched 64 --looks 2 --halve 0 \
        --teacher ../teacher --students start,sid,sida-m50 --seeds 2 --force-cpu
fi

same 'study gaussian' study gaussian --dim 3 --n 20 --runs 6 --steps 10
same 'study ratio' study ratio --tasks correlated-normal --methods ulsif --n 100 --seeds 3 --quiet
same 'study bbo' study bbo --tasks branin --methods random,top-offline --seeds 3 --quiet

# What is wrong is said once, with one exit code.
code=0
ranks 3 fit -n missing.csv -d den.csv -o m.st >out 2>err || code=$?
[ "$code" = 1 ] || complain "a file that is not there: exit $code"
[ "$(grep -c '^n2ce:.*missing.csv' err)" = 1 ] || complain "a file that is not there: $(cat err)"
# Of a pipe each would get a part.
mkfifo pipe
for rows in - pipe; do
    code=0
    ranks 2 fit -n $rows -d den.csv -o m.st <num.csv >out 2>err || code=$?
    [ "$code" = 2 ] && [ ! -e m.st ] || complain "rows from $rows: exit $code"
    [ "$(grep -c '^n2ce:.*cannot be read by several ranks' err)" = 1 ] || complain "rows from $rows: $(cat err)"
done
code=0
ranks 3 fit --no-such-option >out 2>err || code=$?
[ "$code" = 2 ] || complain "an option that is not there: exit $code"
[ "$(grep -c '^n2ce:.*no-such-option' err)" = 1 ] || complain "an option that is not there: $(cat err)"
{ cat long.csv; echo 1,2,x; } >broken.csv
code=0
ranks 2 fit -n broken.csv -d den.csv -o broken.st >out 2>err || code=$?
[ "$code" = 3 ] && [ ! -e broken.st ] || complain "a bad line: exit $code"
[ "$(grep -c "n2ce: .*broken.csv, line $(wc -l <broken.csv), column 3" err)" = 1 ] || complain "a bad line: $(cat err)"
code=0
ranks 2 score quick.st broken.csv -o broken.txt >out 2>err || code=$?
[ "$code" = 3 ] && [ ! -e broken.txt ] || complain "a bad line: exit $code"
[ "$(grep -c 'n2ce: .*from byte [0-9]* on, line [0-9]*, column 3' err)" = 1 ] || complain "a bad line: $(cat err)"
{ cat long.csv; echo 1e200,1e200,1; } >far.csv
code=0
ranks 2 score quick.st far.csv -o far.txt >out 2>err || code=$?
[ "$code" = 3 ] && [ ! -e far.txt ] || complain "a row without a score: exit $code"
[ "$(grep -c 'n2ce: .*Row [0-9]* of far.csv from byte [0-9]* on has a score' err)" = 1 ] || complain "a row without a score: $(cat err)"
echo a,b,d >part-3.csv && echo 1,2,3 >>part-3.csv
code=0
ranks 2 fit -n 'part-*.csv' -d den.csv -o broken.st >out 2>err || code=$?
[ "$code" = 3 ] && [ ! -e broken.st ] && [ "$(grep -c 'n2ce: Column 3 is "c" in part-1.csv and "d" in part-3.csv' err)" = 1 ] ||
    complain "files that are not alike: exit $code $(cat err)"
code=0
ranks 2 fit -n 'none-*.csv' -d den.csv -o broken.st >out 2>err || code=$?
[ "$code" = 1 ] && [ "$(grep -c 'n2ce: none-\*.csv: there is no file' err)" = 1 ] || complain "no such files: exit $code $(cat err)"
touch there.st
code=0
ranks 2 fit -n num.csv -d den.csv -o there.st >out 2>err || code=$?
[ "$code" = 2 ] || complain "a file that is there: exit $code"
[ "$(grep -c '^n2ce: there.st exists' err)" = 1 ] || complain "a file that is there: $(cat err)"
exit "$failed"
