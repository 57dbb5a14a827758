#!/bin/sh
# check_install.sh BUILD SOURCE: installs into a scratch prefix and uses what is there: the examples
# compile with pkg-config alone and run, one with find_package too, the shared library exports n2ce_* and
# nothing else, manual pages and completions are in place.
set -eu
build=$1 source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    printf 'check_install: %s\n' "$*" >&2
    exit 1
}

cmake --install "$build" --prefix "$scratch/usr" >/dev/null
library=$(find "$scratch/usr" -name 'libn2ce.so')
[ -n "$library" ] || fail "libn2ce.so was not installed"
folder=$(dirname "$library")
sed -i "s|=.*/usr/local|=$scratch/usr|" "$folder/pkgconfig/n2ce.pc"
export PKG_CONFIG_PATH="$folder/pkgconfig" LD_LIBRARY_PATH="$folder"

cd "$scratch"
[ -n "$(ls "$source"/examples/*.c)" ] || fail "there are no examples"
for file in "$source"/examples/*.c; do
    name=$(basename "$file" .c)
    # shellcheck disable=SC2046
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$file" $(pkg-config --cflags --libs n2ce) -lm -o "$name"
    case $name in
    loss) ./loss | grep -q '^loss 3' || fail "the example's loss is wrong: $(./loss)" ;;
    score) # a model of the installed program, scored by one that knows the installed library only
        sh "$source/tests/check_score.sh" "$scratch/usr/bin/n2ce" "$scratch/score" >/dev/null ||
            fail "examples/score.c does not score as n2ce does" ;;
    *) "./$name" >log 2>&1 || { cat log >&2; fail "examples/$name.c failed"; } ;;
    esac
done

# The headers are C++ too, where there is a compiler for it.
if command -v c++ >/dev/null; then
    cat >user.cc <<'END'
#include <n2ce_engine.h>
int main() {
    n2ce_ctx *ctx = nullptr;
    n2ce_store *store = nullptr;
    n2ce_graph *g = nullptr;
    if (n2ce_ctx_new(&ctx, nullptr) || n2ce_store_new(ctx, &store) || n2ce_graph_new(store, &g)) return 1;
    n2ce_node x = n2ce_normal(g, n2ce_shape{2, {8, 3}}), dx;
    n2ce_grad(g, n2ce_total(g, n2ce_mul(g, x, x)), &x, 1, &dx);
    const bool built = n2ce_graph_status(g) == N2CE_OK;
    n2ce_graph_free(g);
    n2ce_store_free(store);
    n2ce_ctx_free(ctx);
    return built ? 0 : 1;
}
END
    # shellcheck disable=SC2046
    c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror user.cc $(pkg-config --cflags --libs n2ce) -o user_cc
    ./user_cc || fail "a C++ program cannot use the engine"
fi

# The README's listing is the example.
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '1d;$d' >listing.c
# shellcheck disable=SC2046
cc listing.c $(pkg-config --cflags --libs n2ce) -o listing
[ "$(./listing)" = "$(./loss)" ] || fail "the README's listing is not examples/loss.c any more"

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(n2ce 0.1 REQUIRED)
add_executable(with_shared loss.c)
target_link_libraries(with_shared PRIVATE n2ce::n2ce)
add_executable(with_static loss.c)
target_link_libraries(with_static PRIVATE n2ce::static)
END
cp "$source/examples/loss.c" .
{ cmake -G Ninja -B user -S . -DCMAKE_PREFIX_PATH="$scratch/usr" && cmake --build user; } >log 2>&1 ||
    { cat log >&2; fail "find_package(n2ce) does not work"; }
# Who links the shared library needs no headers of the libraries that it uses itself.
sed -i '/with_static/d' CMakeLists.txt
{ cmake -G Ninja -B alone -S . -DCMAKE_PREFIX_PATH="$scratch/usr" -DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON -DCMAKE_DISABLE_FIND_PACKAGE_LibLZMA=ON &&
    cmake --build alone; } >log 2>&1 || { cat log >&2; fail "n2ce::n2ce needs more than itself"; }
# Linked statically, all of it, with what pkg-config names and nothing else.
# shellcheck disable=SC2046
cc $(pkg-config --cflags n2ce) loss.c -o all_static -Wl,--whole-archive "$folder/libn2ce.a" -Wl,--no-whole-archive \
    $(pkg-config --static --libs n2ce | sed 's/-ln2ce//') 2>log ||
    { cat log >&2; fail "Libs.private does not name all"; }
./user/with_shared >shared && ./user/with_static >static && cmp shared static

strange=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^n2ce_' || true)
[ -z "$strange" ] || fail "libn2ce.so exports more than n2ce_*: $strange"
for verb in fit score info divergence mi 'test' optimize 'study gaussian' 'study bbo' 'bench step'; do
    page=share/man/man1/n2ce-$(echo "$verb" | tr ' ' -).1
    [ -s "$scratch/usr/$page" ] || fail "$page is missing"
done
for page in share/man/man1/n2ce.1 \
    share/bash-completion/completions/n2ce share/zsh/site-functions/_n2ce; do
    [ -s "$scratch/usr/$page" ] || fail "$page is missing"
done
echo "install: in order"
