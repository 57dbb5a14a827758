#!/bin/sh
# check_aarch64.sh SOURCE PROGRAM: builds for 64-bit ARM with Debian's cross compiler and runs, by qemu-user, the unit tests
# that take seconds there; exact kernels hold no fused instruction, and the Gaussian study has the bytes that PROGRAM,
# of this machine, gives. Exits with 77 (skipped) where compiler or emulator are missing.
set -eu
source=$1 program=$2
build=$source/build-aarch64
emulate() { qemu-aarch64 -L /usr/aarch64-linux-gnu "$@"; }
fail() {
    printf 'check_aarch64: %s\n' "$*" >&2
    exit 1
}
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $tool >/dev/null || {
        echo "skipped: aarch64 needs $tool (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user)"
        exit 77
    }
done

# Numbers, kernels, engine, files, a ratio: three minutes of one core.
tests='exact_bits random lanes linalg numerics decimal pool processors ctx arena distributions
    objective objective_diagnostics divergence golden plan plan_storage engine_api engine_train engine_pictures
    csv_parts csv_writer plain_lines json npy file image options out_of_memory feature_net image_net ncnn_net metric model_file
    feature_map gauss gauss_scores explain permutation ranking calibration forest design_tasks appraisal prior_fit
    report text safetensors safetensors_malformed storage narrow noise_levels null_arguments vocabulary waymarks train'
list=$(for name in $tests; do printf 'test_%s;' "$name"; done)
mkdir -p "$build"
{ cmake -G Ninja -S "$source" -B "$build" --toolchain "$source/cmake/aarch64-linux-gnu.cmake" -DN2CE_CUDA=off \
    -DN2CE_TESTS=ON -DN2CE_STAND_IN=ON -DN2CE_STAND_IN_TESTS="${list%;}" && cmake --build "$build"; } >"$build/build.log" 2>&1 || {
    tail -n 40 "$build/build.log" >&2
    fail "the build failed"
}
ctest --test-dir "$build" -j "$(getconf _NPROCESSORS_ONLN)" --output-on-failure --timeout 300

# fused KIND: how many fused multiply-adds of vectors or numbers its kernels have.
fused() { find "$build/CMakeFiles/n2ce_$1_portable.dir" -name '*.o' -exec aarch64-linux-gnu-objdump -d {} + | grep -cE 'fml[as]|fn?m(add|sub)' || true; }
[ "$(fused exact)" -eq 0 ] || fail "exact kernels have fused multiply-adds: their bits differ from other processors'"
[ "$(fused fused)" -gt 100 ] || fail "kernels of the engine have no fused multiply-adds of NEON"

study='study gaussian --dim 2 --n 100 --magnitudes 1,100 --runs 4 --json'
# shellcheck disable=SC2086
emulate "$build/n2ce" $study >"$build/study.json"
# shellcheck disable=SC2086
"$program" $study | cmp - "$build/study.json" || fail "the Gaussian study has other bytes than on this machine"
echo "aarch64: in order"
