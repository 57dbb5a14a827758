#!/bin/sh
# run_fuzz.sh SECONDS | --runs N [TARGET...]: libFuzzer with ASan and UBSan on the targets of this folder, or those that are
# named (csv, npy, bounds, ...), for so many seconds or runs each; says how many runs there were. Inputs that were found interesting are kept in
# build-fuzz/corpus-* and begun with next time; a crash leaves its input in build-fuzz.
set -eu
cd "$(dirname "$0")/../.."
if [ "$1" = --runs ]; then
    limit="-runs=$2"
    shift 2
else
    limit="-max_total_time=$1"
    shift
fi
folder=build-fuzz
cores=$(getconf _NPROCESSORS_ONLN)
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
       -ffp-contract=off -DN2_ISA_SUFFIX=portable -Iinclude -Isrc"
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
export flags

# The library once, for all targets, on all cores. Kernels, which have loops and nothing to parse, are not traced: that takes
# longer than what they compute.
objects=
stale=$folder/stale
: >"$stale"
header=$(find include src -name '*.h' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-) # the newest
for source in $(find src -name '*.c' ! -name 'mpi_plugin.c' | sort); do # which needs MPI
    object=$folder/$(echo "${source%.c}" | tr / _).o
    objects="$objects $object"
    trace=-fsanitize=fuzzer-no-link
    case $source in *_kernel.c | src/cpu/*) trace=-fno-sanitize=fuzzer-no-link ;; esac
    [ "$object" -nt "$source" ] && [ "$object" -nt "$header" ] || echo "$source $object $trace" >>"$stale"
done
# shellcheck disable=SC2016
xargs -r -P "$cores" -n 3 sh -c 'clang $flags "$2" -c "$0" -o "$1"' <"$stale"
[ $# -gt 0 ] || set -- $(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||')

# What one target does; several at a time.
one='
set -eu
name=fuzz_$0
mkdir -p "$folder/corpus-$name"
clang $flags -fsanitize=fuzzer "tests/fuzz/$name.c" $objects $libraries -o "$folder/$name"
"$folder/$name" "$limit" -print_final_stats=1 -verbosity=0 -artifact_prefix="$folder/$name-" "$folder/corpus-$name" \
    >"$folder/$name.log" 2>&1 || {
    tail -n 40 "$folder/$name.log" >&2
    exit 1
}
runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "$folder/$name.log")
echo "$name: $runs runs, no finding, $(find "$folder/corpus-$name" -type f | wc -l) inputs kept"'
export folder limit flags objects libraries
printf '%s\n' "$@" | xargs -P "$cores" -n 1 sh -c "$one"
