# What the scripts for a GPU share: sourced from the repository's root. Sections never stop the script;
# each ends with its status, and `summary` prints a table of them. The log goes to stdout and to $OUT/log.
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

# configure_and_build LIMIT TARGET...: for the GPU at hand, with the tests that need no cmocka.
configure_and_build() {
    local limit=$1
    shift
    section configure 60 cmake -G Ninja -S . -B "$BUILD" -DN2CE_CUDA=on -DN2CE_TESTS=ON -DN2CE_STAND_IN=ON \
        -DN2CE_CUDA_ARCHS=90a -DN2CE_WERROR=OFF
    section build "$limit" bash -c "quiet ninja -C $BUILD $*"
}

summary() {
    printf '\n===== summary (%d s)\n%s' $((SECONDS - START)) "$SUMMARY"
    rm -f "$OUT/last"
}
