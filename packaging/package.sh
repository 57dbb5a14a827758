#!/bin/sh
# package.sh DIST: a source tarball, a Debian package and a Python wheel of the last commit, in the folder
# DIST. Tarball first; the others are built from what is in it, in build-package. The same commit, tools
# and folder give the same bytes: every time stamp is the commit's. Without CUDA: who has a GPU builds.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
dist=$(cd "$1" && pwd)
cd "$checkout"
git rev-parse -q --verify HEAD >/dev/null || {
    echo "package: packages are made of a commit, and this is not a git checkout." >&2
    exit 1
}
git diff --quiet HEAD || echo "package: changes that are not committed are not in the packages" >&2

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
version=$(git show HEAD:include/n2ce.h | sed -n 's/#define N2CE_VERSION_[A-Z]* //p' | paste -sd.)
name=n2ce-$version
work=$checkout/build-package
source=$work/$name
build=$work/build
multiarch=$(cc -print-multiarch)

# run_logged COMMAND...: quiet unless it fails.
run_logged() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        exit 1
    }
}

rm -rf "$source"
mkdir -p "$work"
git archive --prefix="$name/" HEAD | gzip -9n >"$dist/$name.tar.gz"
tar -xzf "$dist/$name.tar.gz" -C "$work"
# build_with FLAGS: builds, with flags for linking the shared library.
build_with() {
    run_logged cmake -G Ninja -S "$source" -B "$build" -DN2CE_TESTS=OFF -DN2CE_WERROR=OFF -DN2CE_CUDA=off \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="-ffile-prefix-map=$source=." \
        -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$multiarch" -DCMAKE_SHARED_LINKER_FLAGS="$1"
    run_logged cmake --build "$build"
}

. "$source/packaging/make_deb.sh"
. "$source/packaging/make_wheel.sh"
make_deb
make_wheel
