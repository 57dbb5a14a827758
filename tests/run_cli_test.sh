#!/bin/sh
# Usage: run_cli_test.sh PROGRAM CASE.sh
#
# Runs CASE.sh in an empty scratch folder, with the folder of PROGRAM first on PATH, and compares
# what it does with the files beside it: CASE.out and CASE.err (missing: empty) and CASE.exit
# (missing: 0).
# An expected line that contains "*" is a shell glob for the whole line; others match exactly.
# UPDATE=1 rewrites the expected files that do not match.
set -eu

program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
script=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
case=${script%.sh}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
failed=0

# A file as lines; one that does not end with a newline says so in a last line.
lines() {
    [ -e "$1" ] || return 0
    cat "$1"
    [ -z "$(tail -c 1 "$1")" ] || printf '\n(no newline at the end)\n'
}

# The lines of file $1, each glob that matches replaced by its line of file $2: diff does the rest.
resolve() {
    while IFS= read -r want; do
        IFS= read -r got <&3 || got=
        case $want in
        *\**)
            # shellcheck disable=SC2254 # a pattern on purpose
            case $got in
            $want) want=$got ;;
            esac
            ;;
        esac
        printf '%s\n' "$want"
    done <"$1" 3<"$2"
}

# compare KIND: what was found in $scratch/KIND with the expected CASE.KIND.
compare() {
    lines "$scratch/$1" >"$scratch/got"
    lines "$case.$1" >"$scratch/want"
    if [ "$1" = exit ] && [ ! -e "$case.exit" ]; then echo 0 >"$scratch/want"; fi
    resolve "$scratch/want" "$scratch/got" >"$scratch/resolved"
    cmp -s "$scratch/resolved" "$scratch/got" && return
    if [ "${UPDATE:-0}" = 1 ]; then
        update "$1"
    else
        echo "$case.sh: $1 is not as expected (-) but this (+):"
        diff -u "$scratch/resolved" "$scratch/got" | sed 1,2d
        failed=1
    fi
}

# An expected file that would say the default is removed.
update() {
    if [ ! -s "$scratch/$1" ] || { [ "$1" = exit ] && [ "$(cat "$scratch/exit")" = 0 ]; }; then
        rm -f "$case.$1"
    else
        cp "$scratch/$1" "$case.$1"
    fi
    echo "$case.$1: updated"
}

mkdir "$scratch/folder"
code=0
(
    cd "$scratch/folder"
    PATH=$(dirname "$program"):$PATH LC_ALL=C
    export PATH LC_ALL
    exec sh "$script" </dev/null >"$scratch/out" 2>"$scratch/err"
) || code=$?
echo "$code" >"$scratch/exit"

compare out
compare err
compare exit
exit "$failed"
