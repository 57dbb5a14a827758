"""Samples for the library: a pointer, a type and strides, without a copy where that is possible."""
import ctypes

import numpy as np

from ._library import Matrix

_TYPES = {np.dtype(name): code for code, name in
          enumerate(("float64", "float32", "int64", "int32", "uint8"))}


def as_samples(values, name, flat_is_column=True):
    """A 2-D array that the library can read where it lies.

    float64, float32, int64, int32, uint8 and bool arrays with any strides are used as they are;
    every other type is converted to float64, which is a copy. A 1-D array is one column, or
    refused if not ``flat_is_column``.
    """
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} is sparse; n2ce takes dense arrays: use {name}.toarray().")
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values; leave these rows out, or fill them in.")
    array = _of_known_type(np.asarray(values), name)
    if array.ndim == 1 and flat_is_column:
        array = array.reshape(-1, 1)
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimension(s); Expected 2D array, one sample a "
                         "row. Reshape your data with array.reshape(-1, 1) if it is one column, "
                         "array.reshape(1, -1) if it is one row.")
    for count, what in zip(array.shape, ("sample", "feature")):
        if count == 0:
            raise ValueError(f"{name} has 0 {what}(s) (shape={array.shape}) while a minimum of 1 "
                             "is required.")
    return array


def column_names(values):
    """The names of a data frame's columns if all are texts, else None."""
    columns = getattr(values, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(columns, dtype=object)


def check_same_columns(num, den):
    """Refuses data frames whose columns have other names, or another order: what is compared would be
    different things, as in files."""
    names = [getattr(values, "columns", None) for values in (num, den)]
    if any(columns is None for columns in names) or list(names[0]) == list(names[1]):
        return
    raise ValueError(f"num has the columns {list(names[0])} and den has {list(names[1])}; they must be the "
                     "same, in the same order.")


def _of_known_type(array, name):
    if np.iscomplexobj(array):
        raise ValueError(f"Complex data not supported: {name} is {array.dtype}.")
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if array.dtype not in _TYPES:
        array = array.astype(np.float64)
    # Unaligned values cannot be read in place; strides of 0 and 0 mean "dense" to the library.
    if not array.flags.aligned or (array.size > 1 and not any(array.strides)):
        array = array.copy()
    return array


def matrix(array):
    """The n2ce_matrix of an array from as_samples(); keep the array while it is used."""
    return Matrix(array.ctypes.data, _TYPES[array.dtype], *array.shape, *array.strides)


def matrices(arrays):
    return (Matrix * len(arrays))(*(matrix(array) for array in arrays))


def pointer(array, kind):
    return array.ctypes.data_as(ctypes.POINTER(kind))
