#!/bin/bash
# Ranks on a GPU: the same bytes on 1, 2 and 4 of them that share it, what one costs that exchanges its sums with
# itself by NCCL, and the tests of both. At most two minutes; every section ends with its status.
#
#   N2CE=path/to/n2ce [TEST=path/to/test_cuda_ranks] bash bench/device_ranks.sh
#
# The log goes to stdout and to $OUT/log. NCCL is PyTorch's if the system has none.
cd "$(dirname "$0")/.." || exit 1
N=$(realpath "${N2CE:-build/n2ce}")
TEST=${TEST:-build/tests/test_cuda_ranks}
. bench/device_sections.sh
nccl=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null)
[ -n "$nccl" ] && export LD_LIBRARY_PATH="$nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
echo "NCCL: ${nccl:-the system\'s}"

[ -x "$TEST" ] && section tests 40 "$TEST"

# step M: milliseconds of a training step
step() { timeout 10 "$N" bench step --M "$1" --seconds 0.7 --device cuda --quiet | head -1; }
for round in 1 2 3; do
    for M in 1 100 1000; do
        [ "$SECONDS" -lt 75 ] || continue
        echo "M $M: one rank $(step $M) ms, exchanging with itself $(N2CE_NCCL=always N2CE_CUDA_SHARE=0 step $M) ms"
    done
done
for M in 1 100; do echo "M $M: eight shards $(N2CE_REPRODUCIBLE=1 N2CE_CUDA_SHARE=0 step $M) ms"; done
[ "$SECONDS" -lt 90 ] && section 'profile of a step that exchanges, M = 100' 10 env N2CE_NCCL=always N2CE_CUDA_SHARE=0 \
    "$N" bench step --M 100 --seconds 0.2 --device cuda --plan | tail -25

work=$(mktemp -d)
awk 'BEGIN { srand(5); print "a,b,c"; for (i = 0; i < 4000; i++) print rand() + rand(), rand() * rand(), rand() }' >"$work/num.csv"
awk 'BEGIN { srand(6); print "a,b,c"; for (i = 0; i < 4000; i++) print rand() + rand() + .1, rand(), rand() }' >"$work/den.csv"
for how in --reproducible ''; do
    for ranks in 1 2 4; do
        [ "$SECONDS" -lt 110 ] || break
        mkdir -p "$work/$ranks$how"
        (cd "$work/$ranks$how" && N2CE_CUDA_SHARE=0 timeout 15 "$N" fit -n ../num.csv -d ../den.csv --critic both --M 20 --folds 2 \
            --steps 100 --width 128 --batch 512 --device cuda --ranks $ranks $how -o model.st >out 2>err || cat err)
        echo "fit $how on $ranks ranks, ${SECONDS} s: $(grep KL "$work/$ranks$how/out") $(cmp "$work/1$how/model.st" "$work/$ranks$how/model.st" &&
            echo 'same bytes as on one')"
    done
done
rm -rf "$work"
summary
