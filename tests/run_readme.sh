#!/bin/sh
# Usage: run_readme.sh PROGRAM README.md
#
# Runs the examples of a README. A block fenced as ```console holds commands, lines that start with
# "$ ", each followed by its output (stdout and stderr together). They run in order in one scratch
# folder with the folder of PROGRAM first on PATH. In the expected output "*" stands for anything
# within a line, and a line "..." for any number of lines. Commands that build or fetch are skipped.
set -eu

PATH=$(cd "$(dirname "$1")" && pwd):$PATH LC_ALL=C
export PATH LC_ALL
readme=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/folder"
passed=0 failed=0 skipped=0

# True if the lines of file "got" are those that file "want" asks for. It is glob matching: where
# lines differ, the last "..." takes one line more.
matches() {
    awk -v want_file="$scratch/want" -v got_file="$scratch/got" '
    function is_dots(line) { return line ~ /^[ \t]*\.\.\.[ \t]*$/ }
    function fits(want, got) {
        if (want == got) return 1
        if (!index(want, "*")) return 0
        gsub(/[][\\.^$+?(){}|]/, "\\\\&", want)
        gsub(/\*/, ".*", want)
        return got ~ ("^" want "$")
    }
    BEGIN {
        while ((getline line < want_file) > 0) want[++n] = line
        while ((getline line < got_file) > 0) got[++m] = line
        i = j = 1
        dots = 0
        while (j <= m) {
            if (i <= n && is_dots(want[i])) { dots = i++; resume = j }
            else if (i <= n && fits(want[i], got[j])) { i++; j++ }
            else if (dots) { i = dots + 1; j = ++resume }
            else exit 1
        }
        while (i <= n && is_dots(want[i])) i++
        exit i <= n
    }'
}

# Runs $command, whose expected output is in the file "want".
run_example() {
    case $command in
    '') return ;;
    ./run* | sudo* | 'git clone'*)
        echo "skipped: $command"
        skipped=$((skipped + 1))
        command=
        return
        ;;
    esac
    (cd "$scratch/folder" && sh -c "$command" </dev/null >"$scratch/got" 2>&1) || true
    if matches; then
        passed=$((passed + 1))
    else
        echo "$readme:$command_line: $command: expected (-) and found (+):"
        diff -u "$scratch/want" "$scratch/got" | sed 1,2d
        failed=$((failed + 1))
    fi
    command=
}

command='' command_line=0 line_number=0 in_block=0
while IFS= read -r line || [ -n "$line" ]; do
    line_number=$((line_number + 1))
    case $in_block$line in
    '0```console'*)
        in_block=1
        ;;
    '1```'*)
        in_block=0
        run_example
        ;;
    '1$ '*)
        run_example
        command=${line#??}
        command_line=$line_number
        : >"$scratch/want"
        ;;
    1*)
        [ -z "$command" ] || printf '%s\n' "$line" >>"$scratch/want"
        ;;
    esac
done <"$readme"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
