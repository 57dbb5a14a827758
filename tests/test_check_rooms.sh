#!/bin/sh
# Usage: test_check_rooms.sh
#
# Proves that check_rooms.sh accepts a good tree and that it can fail: every violation is put
# into a copy of a tiny good tree, alone.
set -eu

check=$(cd "$(dirname "$0")" && pwd)/check_rooms.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
checks=0 failed=0

# lines FILE LINE...: adds lines to a file.
lines() {
    file=$1
    shift
    printf '%s\n' "$@" >>"$file"
}

good_tree() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/src/base" "$scratch/tree/src/io" "$scratch/tree/src/task" \
        "$scratch/tree/src/cuda/runtime" "$scratch/tree/src/cuda/kernels" \
        "$scratch/tree/src/cuda/fused_mlp" "$scratch/tree/cli"
    cd "$scratch/tree"
    lines src/base/ctx.h '#include "n2ce.h"'
    lines src/base/ctx.c '#include "ctx.h"' '#include <stdio.h>' '/* calls exit(1)' 'rand() */'
    lines src/io/file.h '#include "base/ctx.h"' 'int f() __attribute__((format(printf, 1, 2)));'
    lines src/task/task.c '#include "base/ctx.h"' '#include "io/file.h"' 'snprintf("exit(1)");'
    lines src/cuda/runtime/graph.cu '#include "cuda/kernels/job.h"'
    lines src/cuda/kernels/job.h 'int job;'
    lines src/cuda/fused_mlp/layout.h 'int layout;'
    lines cli/cli.h '#include "n2ce.h"'
    lines cli/main.c '#include "cli.h"' 'int main(void) { printf(""); exit(0); }'
}

# rejects TEXT FILE CONTENT: with this line in this file the check fails and says TEXT.
rejects() {
    good_tree
    mkdir -p "$(dirname "$2")"
    lines "$2" "$3"
    checks=$((checks + 1))
    if sh "$check" "$scratch/tree" >"$scratch/said"; then
        echo "not noticed: $2: $3"
    elif ! grep -qF "$1" "$scratch/said" || [ "$(wc -l <"$scratch/said")" -ne 1 ]; then
        echo "for $2: $3"
        echo "expected one line with: $1"
        sed 's/^/    /' "$scratch/said"
    else
        return 0
    fi
    failed=$((failed + 1))
}

good_tree
said=$(sh "$check" "$scratch/tree") || true
[ "$said" = "rooms: 9 files, 9 includes, all in order" ] || {
    echo "a good tree is rejected: $said"
    exit 1
}

rejects 'room base may not include room io' src/base/ctx.c '#include "io/file.h"'
rejects 'room io may not include room task' src/io/file.h '#include "task/task.c"'
rejects 'room cuda/runtime may not include room cuda/fused_mlp' src/cuda/runtime/queue.cu \
    '#include "cuda/fused_mlp/layout.h"'
rejects 'room cli may not include room base' cli/main.c '#include "base/ctx.h"'
rejects 'neither in this room' src/task/task.c '#include "file.h"'
rejects 'neither in this room' src/task/task.c '#include "../io/file.h"'
rejects 'neither in this room' src/task/task.c '#include "stdio.h"'
rejects 'neither in this room' src/task/task.c '  #  include  "none.h" /* no such */'
rejects 'by its bare name' src/base/ctx.c '#include "base/ctx.h"'
rejects 'include it with quotes' src/task/task.c '#include <base/ctx.h>'
rejects 'must name its file' src/task/task.c '#include HEADER'
rejects 'room extra is not in the table' src/extra/new.c 'int x;'
rejects 'room src is not in the table' src/loose.c 'int x;'
rejects 'the file name occurs twice' src/task/main.c 'int x;'
rejects 'the file name occurs twice' src/io/ctx.c 'int x;'
for call in exit abort printf puts fprintf perror rand srand; do
    rejects "may not call $call" src/io/file.c "int y = 2; /* so */ $call (1); // or not"
done
rejects 'may not call time(NULL)' src/io/file.c 'unsigned seed = (unsigned)time(NULL);'
rejects 'src/io/file.c:2: ' src/io/file.c '
exit(1);'

# Symbols: base calls what io defines, by a declaration of its own.
good_tree
lines src/io/file.c '#include "file.h"'
mkdir -p "$scratch/build/x.dir/src/base" "$scratch/build/x.dir/src/io" "$scratch/build/x.dir/src/task"
compile() { printf '%s\n' "$2" | cc -x c -c - -o "$scratch/build/x.dir/src/$1.c.o"; }
compile base/ctx 'int n2_log(void) { return 1; }'
compile io/file 'int n2_log(void); int n2_read(void) { return n2_log(); }'
compile task/task 'int n2_read(void); int n2_run(void) { return n2_read(); }'
sh "$check" "$scratch/tree" "$scratch/build" >"$scratch/said" || {
    echo "symbols in order are rejected:"
    cat "$scratch/said"
    failed=$((failed + 1))
}
compile base/ctx 'int n2_read(void); int n2_log(void) { return n2_read(); }'
checks=$((checks + 1))
if sh "$check" "$scratch/tree" "$scratch/build" >"$scratch/said" ||
    ! grep -qF 'room base may not use n2_read of room io' "$scratch/said"; then
    echo "a symbol of a room above is not noticed"
    failed=$((failed + 1))
fi

echo "test_check_rooms: $checks violations, $failed of them handled wrongly"
[ "$failed" -eq 0 ]
