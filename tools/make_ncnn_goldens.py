#!/usr/bin/env python3
"""Writes tests/golden/tiny_ncnn_fp16.bin and tiny_ncnn.param, and prints the numbers of
tests/unit/test_ncnn_net.c: what NumPy computes in float64, layer by layer, from ncnn's files.

    python3 tools/make_ncnn_goldens.py tests/golden [squeezenet_v1.1_ncnn_fp16.bin]

With the weights of a network, its features of two pictures besides.
"""
import sys

import numpy as np

LAYERS = """7767517
12 13
Input data 0 1 data 0=19 1=19 2=3
Convolution conv1 1 1 data conv1 0=4 1=3 3=2 5=1 6=108 9=1
Pooling pool1 1 1 conv1 pool1 1=3 2=2
Convolution squeeze 1 1 pool1 squeeze 0=2 1=1 5=1 6=8 9=1
Split split 1 2 squeeze squeeze_0 squeeze_1
Convolution one 1 1 squeeze_0 one 0=3 1=1 5=1 6=6 9=1
Convolution three 1 1 squeeze_1 three 0=3 1=3 4=1 5=1 6=54 9=1
Concat concat 2 1 one three concat
Pooling pool2 1 1 concat pool2 1=3 2=2
Convolution last 1 1 pool2 last 0=5 1=1 5=1 6=30 9=1
Pooling mean 1 1 last mean 0=1 4=1
Softmax prob 1 1 mean prob
"""


def pictures(n, side):
    i, r, s, c = np.ogrid[:n, :side, :side, :3]
    return ((r * (7 + i) + s * (11 + 2 * c) + i * i * 5 + r * s * (1 + c)) % 256).astype(np.uint8)


def parse(text):
    for line in text.splitlines()[2:]:
        words = line.split()
        n_in, n_out = int(words[2]), int(words[3])
        blobs, rest = words[4:4 + n_in + n_out], words[4 + n_in + n_out:]
        yield words[0], blobs[:n_in], blobs[n_in:], {int(k): int(v) for k, v in (w.split("=") for w in rest)}


def convolve(x, kernel, bias, stride, padding):
    out, _, k, _ = kernel.shape
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (k, k), (1, 2))[:, ::stride, ::stride]
    y = np.tensordot(kernel, windows, ((1, 2, 3), (0, 3, 4)))
    return np.maximum(y + bias[:, None, None], 0)


def largest(x):
    side = -(-(x.shape[1] - 3) // 2) + 1
    x = np.pad(x, ((0, 0), (0, 2 * side + 1 - x.shape[1]), (0, 2 * side + 1 - x.shape[2])))
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2].max((3, 4))


def apply(layers, weights, rgb):
    """Features and probabilities of a picture [side, side, 3] of bytes."""
    at, blobs, seen = 0, {}, None
    for kind, ins, outs, p in parse(layers):
        x = [blobs[name] for name in ins]
        if kind == "Input":
            y = rgb[:, :, ::-1].transpose(2, 0, 1).astype(float) - np.array([104, 117, 123.])[:, None, None]
        elif kind == "Convolution":
            assert weights[at:at + 4] == b"\x47\x6b\x30\x01"
            kernel = np.frombuffer(weights, "<f2", p[6], at + 4).astype(float)
            at += 4 + (2 * p[6] + 3) // 4 * 4
            bias = np.frombuffer(weights, "<f4", p[0], at).astype(float)
            at += 4 * p[0]
            seen = x[0].mean((1, 2))
            y = convolve(x[0], kernel.reshape(p[0], -1, p[1], p[1]), bias, p.get(3, 1), p.get(4, 0))
        elif kind == "Pooling":
            y = x[0].mean((1, 2)) if p.get(4) else largest(x[0])
        elif kind == "Concat":
            y = np.concatenate(x)
        elif kind == "Softmax":
            y = np.exp(x[0] - x[0].max())
            y /= y.sum()
        else:
            y = x[0]
        blobs.update((name, y) for name in outs)
    assert at == len(weights)
    return seen, y


def tiny_weights():
    rng, parts = np.random.default_rng(7), []
    for kind, _, _, p in parse(LAYERS):
        if kind == "Convolution":
            scale = .02 if p[6] == 108 else .5
            half = (rng.standard_normal(p[6]) * scale + scale / 4).astype("<f2").tobytes()
            parts += [b"\x47\x6b\x30\x01", half, bytes(-len(half) % 4),
                      (rng.standard_normal(p[0]) * .1).astype("<f4").tobytes()]
    return b"".join(parts)


def show(name, rows):
    print(name, "{" + ", ".join("{" + ", ".join("%.9g" % v for v in row) + "}" for row in rows) + "}")


def main(folder, network=None):
    weights = tiny_weights()
    with open(folder + "/tiny_ncnn_fp16.bin", "wb") as file:
        file.write(weights)
    with open(folder + "/tiny_ncnn.param", "w", encoding="ascii") as file:
        file.write(LAYERS)
    results = [apply(LAYERS, weights, rgb) for rgb in pictures(3, 19)]
    show("tiny features", [r[0] for r in results])
    show("tiny probabilities", [r[1] for r in results])
    if network:
        with open(network, "rb") as file:
            weights = file.read()
        with open(network.replace("_fp16.bin", ".param"), encoding="ascii") as file:
            layers = file.read()
        results = [apply(layers, weights, rgb) for rgb in pictures(2, 227)]
        show("features", [r[0][:8] for r in results])
        show("the likeliest class, and its probability", [(r[1].argmax(), r[1].max()) for r in results])


if __name__ == "__main__":
    main(*sys.argv[1:])
