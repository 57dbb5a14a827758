#!/bin/bash
# Everything about the CUDA backend that needs a GPU, in one go: builds, tests, checks memory
# accesses, times n2ce and, where they are installed, PyTorch and JAX beside it. Never stops at a
# failure; every section ends with its status, and a table of all of them comes last.
#
#   bash bench/device.sh          from the repository's root; about 6 minutes
#
# The log goes to stdout and to $OUT/log.
cd "$(dirname "$0")/.." || exit 1
. bench/device_sections.sh
section machine 30 bash -c 'nvidia-smi; nvcc --version | tail -2; nproc; cmake --version | head -1; cc --version | head -1'
configure_and_build 240 

# Right first.
T=$BUILD/tests
section 'test_cuda' 60 bash -c "quiet $T/test_cuda"
section 'test_cuda_graphs' 60 bash -c "quiet $T/test_cuda_graphs"
section 'test_fused_mlp' 60 bash -c "quiet $T/test_fused_mlp"
section 'op table, float32' 60 env N2CE_TEST_DEVICE=cuda bash -c "quiet $T/test_ops"
section 'op table, tf32' 60 env N2CE_TEST_DEVICE=cuda-tf32 bash -c "quiet $T/test_ops"
section 'goldens, float32' 40 env N2CE_TEST_DEVICE=cuda bash -c "quiet $T/test_golden"
section 'goldens, tf32' 40 env N2CE_TEST_DEVICE=cuda-tf32 bash -c "quiet $T/test_golden"
section 'goldens of pictures, float32' 60 env N2CE_TEST_DEVICE=cuda bash -c "quiet $T/test_golden_pictures"
section 'goldens of pictures, tf32' 60 env N2CE_TEST_DEVICE=cuda-tf32 bash -c "quiet $T/test_golden_pictures"
section 'goldens of pictures, bf16' 60 env N2CE_TEST_DEVICE=cuda-bf16 bash -c "quiet $T/test_golden_pictures"
section 'goldens of pictures, half' 60 env N2CE_TEST_DEVICE=cuda-half bash -c "quiet $T/test_golden_pictures"
section 'test_nn, float32' 60 env N2CE_TEST_DEVICE=cuda bash -c "quiet $T/test_nn"
section 'ratio verbs' 120 bash -c "quiet $T/test_ratio_device"

# Then fast.
N=$BUILD/n2ce
section 'bench step --device all' 40 $N bench step --device all --M 100 --seconds 1
for M in 1 100 1000 10000; do
    section "bench step M=$M tf32" 40 $N bench step --device cuda --M $M --seconds 2 --json
done
for M in 1 100 1000; do
    section "bench step M=$M float32" 30 $N bench step --device cuda --precision float32 --M $M --seconds 1 --json
done
section 'bench svgd' 30 $N bench svgd --device cuda --json
section 'bench svgd, float32' 30 $N bench svgd --device cuda --precision float32 --json

# Peers.
P=bench/peers
if python3 -c 'import jax' 2>/dev/null; then
    for M in 1 100 1000; do
        section "jax tf32 M=$M" 60 python3 $P/jax_step.py --device cuda --M $M
    done
    section 'jax float32 M=100' 60 python3 $P/jax_step.py --device cuda --M 100 --precision float32
fi
if python3 -c 'import torch' 2>/dev/null; then
    section 'torch captured graph tf32 M=100' 60 python3 $P/torch_step.py --device cuda --M 100 --mode graph
fi

# Memory accesses. The program stops at the limit; what it found until then counts.
if command -v compute-sanitizer >/dev/null; then
    section 'memcheck of the op table' 60 env N2CE_TEST_DEVICE=cuda-tf32 bash -c \
        "quiet compute-sanitizer --tool memcheck --error-exitcode 9 $T/test_ops"
    section 'memcheck of fused MLPs' 60 bash -c \
        "quiet compute-sanitizer --tool memcheck --error-exitcode 9 $T/test_fused_mlp"
    section 'racecheck of goldens' 30 env N2CE_TEST_DEVICE=cuda-tf32 bash -c \
        "quiet compute-sanitizer --tool racecheck --error-exitcode 9 $T/test_golden"
fi

# Time of every launch of the second run: number, blocks, nanoseconds.
profile() {
    command -v ncu >/dev/null || return 77
    ncu --clock-control none --graph-profiling node --launch-skip 45 --launch-count 45 \
        --metrics gpu__time_duration.sum --csv "$@" >"$OUT/ncu.csv" 2>&1
    local status=$?
    python3 - "$OUT/ncu.csv" <<'PYTHON'
import csv, sys
lines = [line for line in open(sys.argv[1]) if line.startswith('"')]
total = 0
for k, row in enumerate(csv.DictReader(lines)):
    print(k, row.get("Grid Size"), row.get("Metric Value"), row.get("Metric Unit"))
    total += float(row["Metric Value"].replace(",", ""))
print("sum", total)
PYTHON
    return $status
}
export -f profile
section 'time of each launch, M=100' 40 bash -c "profile $N bench step --device cuda --M 100 --seconds 0.01"

summary
exit 0
