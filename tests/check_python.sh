#!/bin/sh
# check_python.sh SOURCE LIBRARY: the tests of bindings/python with this build's shared library, in the first
# of $PYTHON, python3, the benchmarks' environment and the system's python3 that has NumPy. Exits with 77 (skipped) if none has. The
# tests that need scikit-learn, PyTorch or JAX are skipped where these are missing.
set -eu
source=$1 library=$2
for python in "${PYTHON:-python3}" "$source/build-bench/bin/python" /usr/bin/python3 ""; do
    "$python" -c 'import numpy' 2>/dev/null && break
done
[ -n "$python" ] || {
    echo "skipped: the Python binding needs python3 with NumPy; pip install numpy"
    exit 77
}

export N2CE_LIBRARY="$library" PYTHONPATH="$source/bindings/python" PYTHONDONTWRITEBYTECODE=1
cd "$source/bindings/python/tests"
exec "$python" -m unittest discover -v
