"""Files of pictures as arrays."""
import gzip
import tempfile
import unittest
from pathlib import Path

import numpy as np

import n2ce


def idx(pictures):
    head = bytes([0, 0, 8, pictures.ndim])
    return head + b"".join(int(n).to_bytes(4, "big") for n in pictures.shape) + pictures.tobytes()


class Images(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "pictures"

    def test_idx(self):
        pictures = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
        self.path.write_bytes(idx(pictures))
        read = n2ce.read_images(self.path)
        self.assertEqual((read.shape, read.dtype), ((2, 3, 4, 1), np.uint8))
        np.testing.assert_array_equal(read[..., 0], pictures)
        read[0] = 0  # it is the caller's

    def test_planes_of_npy(self):
        pictures = np.random.default_rng(0).integers(0, 256, (5, 3, 6, 7)).astype(np.uint8)
        with self.path.open("wb") as file:
            np.save(file, pictures)
        read = n2ce.read_images(str(self.path))
        np.testing.assert_array_equal(read, pictures.transpose(0, 2, 3, 1))

    def test_labels_of_cifar(self):
        planes = np.random.default_rng(1).integers(0, 256, (4, 3, 32, 32)).astype(np.uint8)
        self.path.write_bytes(b"".join(bytes([k]) + planes[k].tobytes() for k in range(4)))
        pictures, labels = n2ce.read_images(self.path, return_labels=True)
        np.testing.assert_array_equal(pictures, planes.transpose(0, 2, 3, 1))
        self.assertEqual(labels.tolist(), [0, 1, 2, 3])

    def test_without_labels(self):
        self.path.write_bytes(idx(np.zeros((2, 3, 4), np.uint8)))
        self.assertIsNone(n2ce.read_images(self.path, return_labels=True)[1])

    def test_no_pictures(self):
        with self.assertRaises(n2ce.FileProblem):
            n2ce.read_images(self.path)
        self.path.write_bytes(idx(np.zeros((2, 3, 4), np.uint8))[:-1])
        with self.assertRaisesRegex(n2ce.BadData, "cut short"):
            n2ce.read_images(self.path)

    def test_packed(self):
        self.path.write_bytes(gzip.compress(idx(np.full((2, 2, 2), 7, np.uint8))))
        try:
            self.assertTrue((n2ce.read_images(self.path) == 7).all())
        except n2ce.BadData as error:
            self.assertIn("without zlib", str(error))


if __name__ == "__main__":
    unittest.main()
