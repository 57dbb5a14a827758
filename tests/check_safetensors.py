#!/usr/bin/env python3
"""check_safetensors.py TEST_SAFETENSORS: our safetensors files against the reference library.

TEST_SAFETENSORS is the program of tests/unit/test_safetensors.c. Its --write makes the known file,
which must load in Python with the same names, values and metadata; its --read must accept the same
content written by Python. Exits with 77 (skipped) without the packages safetensors and numpy.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import safetensors
    from safetensors.numpy import save_file
except ImportError as error:
    print(f"skipped: {error}. Install them with: pip install safetensors numpy")
    sys.exit(77)

METADATA = {"note": 'na\u00efve "quoted" \\ \n\t\x01 \U0001f642', "format": "pt", "": ""}
NAMES = {  # our name: what Python calls it; NumPy has no bfloat16
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}


def known_values(dtype, shape):
    """Element i: in steps of 1/2 from -1, of 1 from -2, or of 1 from 0; as known_value() in C."""
    i = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    if dtype in ("F64", "F32", "F16", "BF16"):
        return i / 2 - 1
    if dtype in ("I64", "I32", "I16", "I8"):
        return i - 2
    return i % 2 if dtype == "BOOL" else i


def known_tensors():
    """name: (dtype, shape)"""
    tensors = {dtype: (dtype, (2, 3)) for dtype in NAMES}
    tensors |= {f"rank/{rank}": ("F32", (1, 2, 1, 2, 1, 2, 1, 2)[:rank]) for rank in range(9)}
    tensors |= {"empty/1": ("F64", (0,)), "empty/3": ("U8", (2, 0, 3))}
    tensors["na\u00efve \u91cd\u307f \U0001f642"] = ("I16", (2, 3))
    tensors['" \\ / \b\f\n\r\t \x01 \x7f'] = ("U8", (2, 3))
    tensors[""] = ("U8", (2, 3))
    return tensors


def known_bytes(dtype, shape):
    values = known_values(dtype, shape)
    if dtype == "BF16":  # the upper half of an F32
        return (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return values.astype(np.dtype(NAMES[dtype])).tobytes()


def check_our_file(path):
    """Byte for byte with the low-level reader, and as arrays."""
    with open(path, "rb") as file:
        content = file.read()
    found = {name: info for name, info in safetensors.deserialize(content)}
    expected = known_tensors()
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name, (dtype, shape) in expected.items():
        info = found[name]
        assert info["dtype"] == dtype, (name, info["dtype"])
        assert tuple(info["shape"]) == shape, (name, info["shape"])
        assert bytes(info["data"]) == known_bytes(dtype, shape), name
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == METADATA, file.metadata()
        for name, (dtype, shape) in expected.items():
            if dtype == "BF16":
                continue
            array = file.get_tensor(name)
            assert array.dtype == np.dtype(NAMES[dtype]) and array.shape == shape, name
            assert np.array_equal(array, known_values(dtype, shape).astype(array.dtype)), name


def spec(dtype, shape, data):
    """A tensor as serialize_file wants it; since 0.8 that is a TensorSpec with an address."""
    if not hasattr(safetensors, "TensorSpec"):
        return {"dtype": NAMES[dtype], "shape": shape, "data": data.tobytes()}
    return safetensors.TensorSpec(dtype=NAMES[dtype], shape=shape, data_ptr=data.ctypes.data,
                                  data_len=data.nbytes)


def write_with_python(path):
    known = known_tensors()
    arrays = {name: np.frombuffer(known_bytes(*what), np.uint8) for name, what in known.items()}
    specs = {name: spec(*what, arrays[name]) for name, what in reversed(known.items())}
    safetensors.serialize_file(specs, path, metadata=METADATA)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        ours = os.path.join(folder, "ours.safetensors")
        theirs = os.path.join(folder, "theirs.safetensors")
        other = os.path.join(folder, "other.safetensors")
        subprocess.run([program, "--write", ours], check=True)
        check_our_file(ours)
        write_with_python(theirs)
        subprocess.run([program, "--read", theirs], check=True)
        # The check can fail: other content is refused.
        save_file({"a": np.zeros(3, np.float32)}, other)
        different = subprocess.run([program, "--read", other], stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        assert different.returncode == 1, "another file was taken for the known one"
    print(f"safetensors {safetensors.__version__}: {len(known_tensors())} tensors agree both ways")


main()
