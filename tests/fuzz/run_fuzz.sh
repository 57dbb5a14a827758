#!/bin/sh
# run_fuzz.sh SECONDS: libFuzzer with ASan and UBSan on every target of this folder. Inputs that were
# found interesting are kept in build-fuzz/corpus-*; a crash leaves its input in build-fuzz.
set -eu
cd "$(dirname "$0")/../.."
seconds=$1
folder=build-fuzz
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
       -ffp-contract=off -Iinclude -Isrc"
libraries='-lm -lpthread'
# use HEADER DEFINITION FLAG: what src/image can do without
use() {
    echo "#include <$1>" | clang -E - >/dev/null 2>&1 || return 0
    flags="$flags -D$2"
    libraries="$3 $libraries"
}
use zlib.h N2CE_ZLIB -lz
use png.h N2CE_PNG -lpng
use lzma.h N2CE_LZMA -llzma
mkdir -p "$folder"
library=$(find src -name '*.c' ! -name '*_kernel.c')
kernels=$(find src -name '*_kernel.c')
for target in tests/fuzz/fuzz_*.c; do
    name=$(basename "$target" .c)
    echo "== $name, $seconds s" >&2
    mkdir -p "$folder/corpus-$name"
    # shellcheck disable=SC2086
    clang $flags -fsanitize=fuzzer -DN2_ISA_SUFFIX=portable "$target" $library $kernels \
        $libraries -o "$folder/$name"
    "$folder/$name" -max_total_time="$seconds" -print_final_stats=0 -verbosity=0 \
        -artifact_prefix="$folder/$name-" "$folder/corpus-$name"
    echo "$name: no finding"
done
