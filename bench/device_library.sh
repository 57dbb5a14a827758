#!/bin/bash
# The library lane on a GPU: builds, tests products by cuBLASLt beside ref, and times them beside our
# own kernels. Never stops at a failure; every section ends with its status, and a table of all of
# them comes last.
#
#   bash bench/device_library.sh          from the repository's root; less than 3 minutes, once built
#
# The log goes to stdout and to $OUT/log; tables and JSON to $OUT/matmul-*.
cd "$(dirname "$0")/.." || exit 1
OUT=${OUT:-out}
mkdir -p "$OUT"
exec > >(tee "$OUT/log") 2>&1
BUILD=${BUILD:-build-device}
SUMMARY=
START=$SECONDS

# section NAME LIMIT COMMAND...: runs it, at most LIMIT seconds.
section() {
    local name=$1 limit=$2 begin=$SECONDS
    shift 2
    printf '\n===== %s\n' "$name"
    timeout -k 5 "$limit" "$@"
    local status=$?
    SUMMARY="$SUMMARY$(printf '%-42s exit %-3s %4d s' "$name" "$status" $((SECONDS - begin)))
"
    printf '===== %s: exit %s after %d s\n' "$name" "$status" $((SECONDS - begin))
}

# quiet COMMAND...: only the last lines, and those that tell of failures.
quiet() {
    "$@" >"$OUT/last" 2>&1
    local status=$?
    grep -nE 'FAILED|failed|error|is not|off by|differs|could not' "$OUT/last" | head -40
    tail -12 "$OUT/last"
    return $status
}
export -f quiet
export OUT

export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
export PATH=$PATH:$CUDA_HOME/bin
T=$BUILD/tests
N=$BUILD/n2ce
section machine 30 bash -c 'nvidia-smi; ls -l $CUDA_HOME/lib*/libcublasLt.so* $CUDA_HOME/lib*/libcudnn.so*; ldconfig -p | grep -E "cublasLt|libcudnn.so"'
section configure 60 cmake -G Ninja -S . -B "$BUILD" -DN2CE_CUDA=on -DN2CE_TESTS=ON -DN2CE_STAND_IN=ON \
    -DN2CE_CUDA_ARCHS=90a -DN2CE_WERROR=OFF
section build 240 bash -c "quiet ninja -C $BUILD n2ce test_library_lane test_cudnn test_ops test_nn"

# Right first: the lane's own tests, and all ops, where every product that may goes to the library.
section 'test_library_lane' 60 bash -c "quiet $T/test_library_lane"
section 'test_cudnn' 60 bash -c "quiet $T/test_cudnn"
export N2CE_CUDA_LIBRARY=always
section 'op table by the library, float32' 60 env N2CE_TEST_DEVICE=cuda bash -c "quiet $T/test_ops"
section 'op table by the library, tf32' 60 env N2CE_TEST_DEVICE=cuda-tf32 bash -c "quiet $T/test_ops"
section 'test_nn by the library, float32' 60 env N2CE_TEST_DEVICE=cuda bash -c "quiet $T/test_nn"
unset N2CE_CUDA_LIBRARY

# Then fast.
for precision in tf32 float32; do
    section "bench matmul $precision" 60 bash -c \
        "$N bench matmul --device cuda --precision $precision --json >$OUT/matmul-$precision.json
         status=\$?; cat $OUT/matmul-$precision.json; exit \$status"
done
section 'bench matmul tf32, as a table' 60 bash -c \
    "$N bench matmul --device cuda --largest 4096 | tee $OUT/matmul-tf32.txt"
section 'bench step without the library' 30 env N2CE_CUDA_LIBRARY=off \
    $N bench step --device cuda --M 1 --seconds 0.2 --json

printf '\n===== summary (%d s)\n%s' $((SECONDS - START)) "$SUMMARY"
rm -f "$OUT/last"
exit 0
