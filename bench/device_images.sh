#!/bin/bash
# Networks of pictures on a GPU: tests of their ops beside ref, where the time of each workload goes,
# and the workloads beside PyTorch. Never stops at a failure; every section ends with its status, and a
# table of all of them comes last.
#
#   bash bench/device_images.sh [PART...]     from the repository's root; without parts, all of them
#
#   tests    ops, networks against PyTorch's goldens, storage in 16 bits             1 minute
#   time     n2ce alone, and the launches that its time goes to                      1 minute
#   quick    beside PyTorch, eager and captured; not among all                       2 minutes
#   peers    beside PyTorch in its fastest modes; compiling takes half a minute each 4 minutes
#   check    compute-sanitizer's memcheck of the op table                            1 minute
#
# ONLY=lebm,ld keeps to some workloads. The log goes to stdout and to $OUT/log, JSON to $OUT/images-*.json,
# profiles to $OUT/time-*.txt.
cd "$(dirname "$0")/.." || exit 1
. bench/device_sections.sh
T=$BUILD/tests
N=$BUILD/n2ce
wanted() { [ -z "$PARTS" ] || [[ " $PARTS " == *" $1 "* ]]; }
PARTS="$*"
ONLY=${ONLY:-unet,unet16,forward,distill,lebm,ld}
configure_and_build 300

if wanted tests; then
    for test in test_ops test_golden test_golden_pictures test_storage test_wide test_narrow test_conv_lane test_library_lane; do
        [ -x "$T/$test" ] || continue
        section "$test, float32" 60 env N2CE_TEST_DEVICE=cuda bash -c "quiet $T/$test"
        section "$test, tf32" 60 env N2CE_TEST_DEVICE=cuda-tf32 bash -c "quiet $T/$test"
    done
    section 'op table, wide' 60 env N2CE_TEST_DEVICE=cuda N2CE_CUDA_WIDE=always bash -c "quiet $T/test_ops"
fi

# work NAME PRECISION OPTIONS...: its profile into a file, the head of it here.
work() {
    local name=$1 precision=$2
    shift 2
    [[ ",$ONLY," == *",$name,"* ]] || return 0
    section "$name, $precision" 60 bash -c \
        "$N bench $* --device cuda --precision $precision --seconds 1 --plan >$OUT/time-$name-$precision.txt 2>&1
         status=\$?; grep -vE '  stage |^      [a-z]' $OUT/time-$name-$precision.txt | cut -c1-140 | head -40; exit \$status"
}
if wanted time; then
    work unet bf16 unet --batch 512
    work unet16 bf16 unet --size 16 --batch 1024
    work forward bf16 unet --batch 512 --forward
    work distill bf16 distill --size 16 --batch 512
    for precision in tf32 bf16; do work lebm $precision lebm; done
    for precision in tf32 half; do work ld $precision ld; done
fi

# beside LIMIT OPTIONS...: each workload and PyTorch, a line here and JSON into a file of its own.
beside() {
    local limit=$1 work
    shift
    for work in ${ONLY//,/ }; do
        section "$work beside PyTorch: $*" "$limit" bash -c \
            "python3 bench/images.py --program $N --device cuda --only $work $* --json >$OUT/images-$work.json
             status=\$?; python3 -c '
import json, sys
for row in json.load(open(sys.argv[1])):
    ours = row[\"n2ce\"]
    print(row[\"work\"], row[\"precision\"], \"n2ce\", ours and round(ours[\"ms\"], 3), \"ms,\", ours and ours[\"gpu_mb\"], \"MB;\",
          {name: peer and (round(peer[\"ms\"], 2), round(peer[\"peak_mb\"])) for name, peer in row[\"peers\"].items()},
          \"ratio\", row[\"ratio\"], \"at least\", row[\"least_ratio\"])' $OUT/images-$work.json; exit \$status"
    done
}
[ -n "$PARTS" ] && wanted quick && beside 60 --modes eager,graph --rounds 1 --seconds 0.5
wanted peers && beside 150 --rounds 2 --seconds 1

if wanted check && command -v compute-sanitizer >/dev/null; then
    section 'memcheck of the op table' 90 env N2CE_TEST_DEVICE=cuda-tf32 bash -c \
        "quiet compute-sanitizer --tool memcheck --error-exitcode 9 $T/test_ops"
fi

summary
exit 0
