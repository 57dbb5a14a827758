#!/bin/sh
# check_packages.sh DIST: installs the packages of package.sh in bare roots of Debian and uses them there. The
# Debian package and the wheel find a root without compiler; the tarball one with a compiler and cmake. The
# program's words and Python's numbers are those of the build outside. Needs root, debootstrap and, the first
# time, a mirror: the roots are kept in build-package. Exits with 77 (skipped) where a root cannot be made.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
dist=$(cd "$1" && pwd)
work=$checkout/build-package
outside=$work/build/n2ce
deb=$(ls "$dist"/n2ce_*.deb) wheel=$(ls "$dist"/n2ce-*.whl) tarball=$(ls "$dist"/n2ce-*.tar.gz)
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
PATH=$PATH:/usr/sbin:/sbin
scratch=$(mktemp -d "$work/bare.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

fail() {
    printf 'check_packages: %s\n' "$*" >&2
    exit 1
}
skip() {
    printf 'skipped: packages in a bare root: %s\n' "$*"
    exit 77
}

# make_root NAME PACKAGE,...: the smallest Debian with these packages, in $work/NAME; kept for the next time.
make_root() {
    grep -qsx "$2" "$work/$1/packages" && return
    rm -rf "${work:?}/$1" "$scratch/root"
    debootstrap --variant=minbase --include="$2" "$(. /etc/os-release && echo "$VERSION_CODENAME")" \
        "$scratch/root" >"$scratch/log" 2>&1 || skip "debootstrap failed: $(tail -n 1 "$scratch/log")"
    rm -rf "$scratch/root"/var/cache/apt/archives/*.deb
    echo "$2" >"$scratch/root/packages"
    mv "$scratch/root" "$work/$1"
}

# use_root NAME: a copy of it to be spoilt, with the samples in it, as $root.
use_root() {
    root=$scratch/$1
    cp -a --reflink=auto "$work/$1" "$root"
    mkdir "$root/data"
    cp "$scratch"/*.csv "$scratch/outside.txt" "$root/data"
}

inside() { chroot "$root" "$@"; }
divergence_inside() { inside sh -c 'cd /data && '"$1"' divergence --num new.csv --den old.csv --threads 2'; }

check_deb() {
    use_root bare
    ! inside sh -c 'command -v cc gcc clang' || fail "the bare root has a compiler"
    cp "$deb" "$root/n2ce.deb"
    inside dpkg -i /n2ce.deb >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "dpkg refuses the package"; }
    divergence_inside n2ce | cmp - "$scratch/outside.txt" || fail "the Debian package computes something else"
    inside ldconfig -p | grep -q 'libn2ce\.so\.0' || fail "the linker does not find libn2ce.so.0"
    for file in share/man/man1/n2ce-divergence.1.gz share/bash-completion/completions/n2ce include/n2ce.h; do
        [ -s "$root/usr/$file" ] || fail "/usr/$file is missing"
    done
    inside dpkg -r n2ce >/dev/null 2>&1
    left=$(find "$root/usr" -name '*n2ce*')
    [ -z "$left" ] || fail "dpkg -r leaves $left"
    rm -rf "$root"
    echo "Debian package: in order"
}

check_wheel() {
    use_root bare
    cp "$wheel" "$checkout/packaging/use_wheel.py" "$root/data"
    inside sh -c 'python3 -m venv --system-site-packages /venv && cd /data &&
        /venv/bin/pip install --no-index --quiet ./*.whl && /venv/bin/python use_wheel.py' ||
        fail "the wheel does not work"
    rm -rf "$root"
    echo "wheel: in order"
}

check_tarball() {
    use_root bare-compiler
    tar -xzf "$tarball" -C "$root/data"
    inside sh -c 'cd /data/n2ce-* && cmake -G Ninja -B build -DN2CE_TESTS=OFF && cmake --build build &&
        cmake --install build' >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log" >&2; fail "the tarball does not build"; }
    divergence_inside /usr/local/bin/n2ce | cmp - "$scratch/outside.txt" || fail "what the tarball makes computes something else"
    rm -rf "$root"
    echo "tarball: in order"
}

[ "$(id -u)" -eq 0 ] || skip "needs root"
command -v debootstrap >/dev/null || skip "needs debootstrap"
needed=$(dpkg-deb -f "$deb" Depends | sed 's/ *([^)]*)//g; s/ //g')
make_root bare "python3-numpy,python3-venv,$needed"
make_root bare-compiler gcc,libc6-dev,cmake,ninja-build

cd "$scratch"
"$outside" study draw shifted-2d --num new_all.csv --den old_all.csv >/dev/null
for side in new old; do
    head -n 301 "${side}_all.csv" >"$side.csv"
    rm "${side}_all.csv"
done
"$outside" divergence --num new.csv --den old.csv --threads 2 >outside.txt
check_deb
check_wheel
check_tarball
