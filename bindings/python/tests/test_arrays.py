"""What happens to arrays on their way into the library."""
import ctypes
import unittest

import numpy as np

from n2ce._arrays import as_samples, matrix


def read(m):
    """The numbers of an n2ce_matrix, read as the library does: pointer, type, strides."""
    kinds = (ctypes.c_double, ctypes.c_float, ctypes.c_int64, ctypes.c_int32, ctypes.c_uint8)
    return [[kinds[m.type].from_address(m.data + i * m.row_stride + j * m.col_stride).value
             for j in range(m.cols)] for i in range(m.rows)]


class Samples(unittest.TestCase):
    def test_no_copy_of_known_types_with_any_strides(self):
        for dtype in "f8", "f4", "i8", "i4", "u1", "?":
            whole = np.arange(24).reshape(6, 4).astype(dtype)
            for view in (whole, whole.T, whole[::2], whole[:, 1:3], whole[::-1, ::-2],
                         np.asfortranarray(whole), whole[:1], whole[:, :1]):
                samples = as_samples(view, "x")
                self.assertTrue(np.shares_memory(samples, view), (dtype, view.strides))
                self.assertEqual(read(matrix(samples)), view.astype(float).tolist())

    def test_other_types_are_converted(self):
        for dtype in "f2", "i2", "u2", "u4", "u8", ">f8", ">i4", object:
            samples = as_samples(np.arange(6).reshape(3, 2).astype(dtype), "x")
            self.assertEqual(samples.dtype, np.float64)
            self.assertEqual(read(matrix(samples)), [[0, 1], [2, 3], [4, 5]])
        self.assertEqual(read(matrix(as_samples([[1, 2.5]], "x"))), [[1, 2.5]])

    def test_memory_that_cannot_be_read_in_place(self):
        """Unaligned numbers; and one number repeated, whose strides 0 and 0 would mean "dense"."""
        unaligned = np.frombuffer(b"x" + np.arange(4.0).tobytes(), np.uint8)[1:].view("f8")
        self.assertEqual(read(matrix(as_samples(unaligned, "x"))), [[0], [1], [2], [3]])
        self.assertEqual(read(matrix(as_samples(np.broadcast_to(7.0, (2, 2)), "x"))), [[7, 7]] * 2)
        rows = np.broadcast_to(np.arange(2.0), (3, 2))
        self.assertEqual(read(matrix(as_samples(rows, "x"))), [[0, 1]] * 3)

    def test_one_dimension_is_one_column(self):
        column = np.arange(6.0)[::2]
        self.assertEqual(read(matrix(as_samples(column, "x"))), [[0], [2], [4]])
        self.assertTrue(np.shares_memory(as_samples(column, "x"), column))
        with self.assertRaisesRegex(ValueError, "Reshape your data"):
            as_samples(column, "x", flat_is_column=False)

    def test_read_only_arrays(self):
        array = np.arange(4.0).reshape(2, 2)
        array.flags.writeable = False
        self.assertTrue(np.shares_memory(as_samples(array, "x"), array))

    def test_refused(self):
        class Sparse:
            def toarray(self):
                return np.eye(2)

        for values, kind, message in (
                (np.eye(2) * 1j, ValueError, "Complex data not supported: x is complex128"),
                (np.zeros((2, 2, 2)), ValueError, "x has 3 dimension"),
                (np.zeros((0, 2)), ValueError, r"x has 0 sample\(s\) \(shape=\(0, 2\)\)"),
                (np.zeros((2, 0)), ValueError, r"x has 0 feature\(s\) \(shape=\(2, 0\)\)"),
                (np.ma.masked_less(np.eye(2), 0.5), ValueError, "x has masked values"),
                ([["a", "b"]], ValueError, "could not convert string"),
                (Sparse(), TypeError, r"x is sparse; .* use x.toarray\(\)")):
            with self.assertRaisesRegex(kind, message):
                as_samples(values, "x")


if __name__ == "__main__":
    unittest.main()
