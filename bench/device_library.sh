#!/bin/bash
# The library lane on a GPU: builds, tests products by cuBLASLt beside ref, and times them beside our
# own kernels. Never stops at a failure; every section ends with its status, and a table of all of
# them comes last.
#
#   bash bench/device_library.sh          from the repository's root; less than 3 minutes, once built
#
# The log goes to stdout and to $OUT/log; tables and JSON to $OUT/matmul-*.
cd "$(dirname "$0")/.." || exit 1
. bench/device_sections.sh
T=$BUILD/tests
N=$BUILD/n2ce
section machine 30 bash -c 'nvidia-smi; ls -l $CUDA_HOME/lib*/libcublasLt.so* $CUDA_HOME/lib*/libcudnn.so*; ldconfig -p | grep -E "cublasLt|libcudnn.so"'
configure_and_build 240 n2ce test_library_lane test_conv_lane test_ops test_nn

# Right first: the lane's own tests, and all ops, where every product that may goes to the library.
section 'test_library_lane' 60 bash -c "quiet $T/test_library_lane"
section 'test_conv_lane' 60 bash -c "quiet $T/test_conv_lane"
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

summary
exit 0
