"""Files of pictures as arrays."""
import ctypes
import os

import numpy as np

from ._core import Context, lib, run_interruptibly


def _bytes_at(address, shape):
    n = int(np.prod(shape))
    return np.frombuffer(ctypes.string_at(address, n), dtype=np.uint8).reshape(shape).copy()


def read_images(path, *, return_labels=False):
    """The pictures of a file or a folder, as a uint8 array [n, height, width, channels].

    Files are known by what is in them: PNG, IDX (MNIST), CIFAR-10's binary batches, NPY, plain or
    packed by gzip or xz; a folder is its PNGs, in the order of their names. With ``return_labels``
    the answer is (pictures, labels), where labels are None if the file has none."""
    context = Context()
    handle = ctypes.c_void_p()
    name = os.fsencode(path)
    context.check(run_interruptibly(
        context, lambda: lib.n2ce_images_read(context.handle, name, ctypes.byref(handle))))
    try:
        size = (ctypes.c_size_t * 4)()
        lib.n2ce_images_size(handle, size)
        pictures = _bytes_at(lib.n2ce_images_pixels(handle), tuple(size))
        labels = lib.n2ce_images_labels(handle)
        if labels:
            labels = _bytes_at(labels, (size[0],))
    finally:
        lib.n2ce_images_free(handle)
    return (pictures, labels) if return_labels else pictures
