"""Uses the installed Python package, with NumPy alone, beside new.csv, old.csv and what `n2ce divergence` said
of them in outside.txt: the same numbers, a model that scores, a PNG by the libraries that came along."""
import struct
import zlib

import numpy

import n2ce

new, old = (numpy.loadtxt(name, delimiter=",", skiprows=1) for name in ("new.csv", "old.csv"))
kl = n2ce.kl_divergence(new, old)
said = next(line for line in open("outside.txt") if line.startswith("KL(num || den)"))
assert f"{kl.value:.4f}" == said.split()[3], (kl, said)

scores = n2ce.DensityRatio().fit_samples(new, old).score_samples(new)
assert scores.shape == (len(new),) and abs(scores.mean() - kl.value) < 1, scores.mean()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


with open("grey.png", "wb") as file:  # two pixels, 10 and 200
    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 0, 0, 0, 0))
               + chunk(b"IDAT", zlib.compress(b"\x00\x0a\xc8")) + chunk(b"IEND", b""))
assert n2ce.read_images("grey.png").ravel().tolist() == [10, 200]
