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
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
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

# The library once, for all targets, on all cores. What libFuzzer is told: of kernels, which have loops and no choices, nothing, which would
# take longer than what they compute; of all else, which parts were reached. Rooms that parse are compiled once more, with comparisons traced: so the
# words that they look for are found. Targets say of which rooms they want those: a line "traced: ROOM..." in them.
nothing=-fno-sanitize=fuzzer-no-link
reached=-fsanitize-coverage=inline-8bit-counters,pc-table
compared=-fsanitize=fuzzer-no-link
newest=$(find include src tests/fuzz/run_fuzz.sh \( -name '*.h' -o -name run_fuzz.sh \) -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
stale=$folder/stale
: >"$stale"
# object_of SOURCE PREFIX TRACE: the name of its object, which is made unless it is newer than source, headers and flags
object_of() {
    object=$folder/$2$(echo "${1%.c}" | tr / _).o
    [ "$object" -nt "$1" ] && [ "$object" -nt "$newest" ] || echo "$1 $object $3" >>"$stale"
}
objects=
for source in $(find src -name '*.c' ! -name 'mpi_plugin.c' | sort); do # which needs MPI
    case $source in *_kernel.c | src/cpu/* | src/ref/*) object_of "$source" '' $nothing ;; *) object_of "$source" '' $reached ;; esac
    objects="$objects $object"
    case $source in
    src/base/*_kernel.c) ;;
    src/io/* | src/image/* | src/metric/* | src/design/* | src/base/*) object_of "$source" traced_ $compared ;;
    esac
done
# shellcheck disable=SC2016
xargs -r -P "$cores" -n 3 sh -c 'clang $flags "$2" -c "$0" -o "$1"' <"$stale"
library=$folder/library.a
rm -f "$library"
# shellcheck disable=SC2086
ar rc "$library" $objects
[ $# -gt 0 ] || set -- $(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||')

# What one target does; several at a time. A line "libFuzzer: OPTION..." in it has options of its own.
one='
set -eu
name=fuzz_$0
mkdir -p "$folder/corpus-$name"
traced=
for room in $(sed -n "s/^ \* traced: //p" "tests/fuzz/$name.c"); do traced="$traced $(echo "$folder"/traced_src_"$room"_*.o)"; done
clang $flags -fsanitize=fuzzer "tests/fuzz/$name.c" $traced "$library" $libraries -o "$folder/$name"
begin=$(date +%s)
"$folder/$name" "$limit" $(sed -n "s/^ \* libFuzzer: //p" "tests/fuzz/$name.c") -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$folder/$name-" "$folder/corpus-$name" >"$folder/$name.log" 2>&1 || {
    tail -n 40 "$folder/$name.log" >&2
    exit 1
}
runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "$folder/$name.log")
echo "$name: $runs runs in $(($(date +%s) - begin)) s, no finding, $(find "$folder/corpus-$name" -type f | wc -l) inputs kept"'
# Memory that was freed is watched while some megabytes are freed after it: more would only be out of the cache.
export ASAN_OPTIONS="${ASAN_OPTIONS:-quarantine_size_mb=4:malloc_context_size=6}"
export folder limit flags library libraries
printf '%s\n' "$@" | xargs -P "$cores" -n 1 sh -c "$one"
