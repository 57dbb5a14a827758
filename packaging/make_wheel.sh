# make_wheel, for package.sh: the Python package with the shared library inside, and beside it libpng, zlib
# and liblzma, so that nothing but the C library is needed where it is installed.

# The first Python with what bindings/python/setup.py needs.
python_for_wheels() {
    for python in "${PYTHON:-python3}" /usr/bin/python3; do
        "$python" -c 'import setuptools, wheel' 2>/dev/null && echo "$python" && return
    done
    echo "package: the wheel needs Python's setuptools and wheel (Debian: python3-setuptools, python3-wheel)." >&2
    return 1
}

# "manylinux_2_35_x86_64", say: the oldest C library that has all functions these libraries call.
platform_of() {
    newest=$(objdump -T "$@" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
    echo "manylinux_$(echo "${newest#GLIBC_}" | tr . _)_$(uname -m)"
}

# All that the library needs, but for the C library's own.
gather_libraries() {
    rm -rf "$1"
    mkdir "$1"
    cp "$build/libn2ce.so" "$1"
    ldd "$build/libn2ce.so" | awk '$2 == "=>" && $1 !~ /^lib(c|m|pthread)\.so/ {print $1, $3}' |
        while read -r soname path; do cp -L "$path" "$1/$soname"; done
    strip --strip-unneeded "$1"/*
}

make_wheel() (
    python=$(python_for_wheels)
    libraries=$work/wheel
    # It looks for the others beside itself, and they do too.
    build_with "-Wl,--disable-new-dtags,-rpath,'\$ORIGIN'"
    gather_libraries "$libraries"
    rm -f "$dist/$name"-*.whl
    cd "$source/bindings/python"
    cp "$source/LICENSE" .
    export N2CE_LIBRARY="$libraries"
    run_logged "$python" -c "import sys, setuptools.build_meta as build
build.build_wheel(sys.argv[1], {'--build-option': ['--plat-name=' + sys.argv[2]]})" \
        "$dist" "$(platform_of "$libraries"/*)"
)
