#!/bin/bash
# Ranks on a GPU: the same bytes on 1, 2 and 4 of them that share it, what one costs that exchanges its sums with
# itself by NCCL, and the tests of both. At most two minutes, of which nothing waits longer than it says; what
# was found comes last, as a table. Without NCCL or mpirun what needs them is left out, and the table says so.
#
#   [N2CE=path/to/n2ce] [TEST=path/to/test_cuda_ranks] bash bench/device_ranks.sh [test] [bytes] [cost]
#
# Without N2CE it builds the program and the test first, in $BUILD, which takes minutes more. The log goes to stdout
# and to $OUT/log. NCCL is PyTorch's if the system has none.
cd "$(dirname "$0")/.." || exit 1
. bench/device_sections.sh
if [ -z "${N2CE:-}" ]; then
    configure_and_build 420 n2ce test_cuda_ranks
    N2CE=$BUILD/n2ce TEST=$BUILD/tests/test_cuda_ranks
fi
N=$(realpath "$N2CE")
TEST=${TEST:-$(dirname "$N")/tests/test_cuda_ranks}
BEGAN=$SECONDS
RESULTS=$OUT/results
PARTS=${*:-test bytes cost}
wanted() { [[ " $PARTS " == *" $1 "* ]]; }
: >"$RESULTS"

# found WHAT FORMAT [...]: a line of the table.
found() {
    local what=$1
    shift
    # shellcheck disable=SC2059
    printf '%-34s %s\n' "$what" "$(printf "$@")" | tee -a "$RESULTS"
}
# before S: whether fewer seconds have gone by.
before() { [ $((SECONDS - BEGAN)) -lt "$1" ]; }
# limited S COMMAND...: its output in $work/out and $work/err, so that nobody waits for who has a pipe open.
limited() { timeout -k 2 "$@" >"$work/out" 2>"$work/err" </dev/null; }
work=$(mktemp -d)

# ---- what there is

nccl_folder() {
    ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2' && echo system && return
    timeout 10 python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null && return
    # shellcheck disable=SC2046
    timeout 10 find $(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null) /usr /opt -name libnccl.so.2 \
        -printf '%h\n' -quit 2>/dev/null
}
NCCL=$(nccl_folder)
case $NCCL in '' | system) ;; *) export LD_LIBRARY_PATH="$NCCL${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;; esac
found NCCL '%s' "${NCCL:-not found: sums go by way of the host}"
MPIRUN=$(command -v mpirun)
[ -e "$(dirname "$N")/libn2ce_mpi.so" ] || MPIRUN=
found mpirun '%s' "${MPIRUN:-not found, or no plugin was built: ranks are forked}"
limited 10 nvidia-smi --query-gpu=name,utilization.gpu,memory.used --format=csv,noheader
found GPU '%s' "$(head -1 "$work/out")"

# Row programs are shared however small they are, but for what is said to be as a user has it.
export N2CE_CUDA_SHARE=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# ---- the tests

if [ -x "$TEST" ] && wanted test; then
    section test_cuda_ranks 30 "$TEST"
    found test_cuda_ranks '%s' "$(tail -1 <<<"${SUMMARY%$'\n'}" | grep -o 'exit.*')"
else
    found test_cuda_ranks 'not built, or not asked for'
fi

# ---- the same bytes

awk -v OFS=, 'BEGIN { srand(5); print "a,b,c"; for (i = 0; i < 4000; i++) print rand() + rand(), rand() * rand(), rand() }' >"$work/num.csv"
awk -v OFS=, 'BEGIN { srand(6); print "a,b,c"; for (i = 0; i < 4000; i++) print rand() + rand() + .1, rand(), rand() }' >"$work/den.csv"

# fit LABEL OPTIONS -- COMMAND...: what it says of the divergence, and whether the model file is that of one rank.
fit() {
    local label=$1 how=$2 begin=$SECONDS folder kl same
    shift 2
    folder=$work/$label
    mkdir -p "$folder"
    # shellcheck disable=SC2086
    (cd "$folder" && limited 12 "$@" fit -n ../num.csv -d ../den.csv --critic both --M 20 --folds 2 --steps 100 --width 128 \
        --batch 512 --device cuda --quiet -o model.st $how) || { tail -3 "$work/err"; found "fit $label" 'FAILED'; return; }
    kl=$(head -1 "$work/out")
    first=${first:-$folder/model.st}
    same='other bytes than one rank'
    cmp -s "$first" "$folder/model.st" && same='same bytes as one rank'
    found "fit $label" 'KL %s; %s; %d s' "$kl" "$same" $((SECONDS - begin))
}
for how in --reproducible '--precision float32' ''; do
    wanted bytes || continue
    first=
    for ranks in 1 2 4; do
        before 70 && fit "${how:-plain} --ranks $ranks" "$how --ranks $ranks" "$N"
    done
    [ -n "$MPIRUN" ] && before 70 && fit "${how:-plain} mpirun -n 2" "$how" mpirun --oversubscribe -n 2 "$N"
done

# ---- what it costs

# step M ENVIRONMENT...: milliseconds of a training step.
step() {
    local M=$1
    shift
    limited 10 env "$@" "$N" bench step --M "$M" --seconds 0.5 --device cuda --quiet && head -1 "$work/out"
}
# both FILE M ENVIRONMENT...: without and with it, if both ended.
both() {
    local file=$1 M=$2 without with
    shift 2
    if without=$(step "$M") && with=$(step "$M" "$@"); then echo "$without $with" >>"$file"; else tail -2 "$work/err"; fi
}
median() { sort -n | awk '{ x[NR] = $1 } END { print NR ? (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 : "nan" }'; }

if wanted cost; then
    limited 10 env NCCL_DEBUG=VERSION N2CE_NCCL=always "$N" bench step --M 1 --seconds 0.1 --device cuda
    found 'NCCL says' '%s' "$(cat "$work/out" "$work/err" | grep -m1 'NCCL version' || echo 'nothing: it was not used')"
fi
as_is=(-u N2CE_CUDA_SHARE)
for round in 1 2 3 4 5; do
    for M in 1 100 1000; do
        wanted cost && before 95 || continue
        both "$work/nccl.$M" $M "${as_is[@]}" N2CE_NCCL=always
        [ $round -gt 2 ] || both "$work/every.$M" $M N2CE_NCCL=always
        [ $round -gt 1 ] || both "$work/shards.$M" $M "${as_is[@]}" N2CE_REPRODUCIBLE=1
    done
done
# cost WHAT FILE: medians of both columns.
cost() {
    [ -s "$2" ] || return
    local without with
    without=$(awk '{ print $1 }' "$2" | median)
    with=$(awk '{ print $2 }' "$2" | median)
    echo "$1: $(tr '\n' ';' <"$2")"
    found "$1" '%s ms, without %s: %s times, %d rounds' "$with" "$without" \
        "$(awk -v a="$with" -v b="$without" 'BEGIN { if (b > 0) printf "%.3f", a / b; else print "?" }')" "$(wc -l <"$2")"
}
for M in 1 100 1000; do
    cost "one rank by NCCL, M = $M" "$work/nccl.$M"
    cost "the same, all shared, M = $M" "$work/every.$M"
    cost "eight shards, M = $M" "$work/shards.$M"
done
if wanted cost && before 112; then
    limited 8 env -u N2CE_CUDA_SHARE N2CE_NCCL=always "$N" bench step --M 100 --seconds 0.2 --device cuda --plan
    printf '\n===== profile of a step that exchanges, M = 100\n' && tail -20 "$work/out"
fi

summary
printf '\n===== what was found (%d s)\n' $((SECONDS - BEGAN))
cat "$RESULTS"
rm -rf "$work" "$RESULTS"
sleep 0.3 # until the log has it
