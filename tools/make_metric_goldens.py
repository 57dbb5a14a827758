#!/usr/bin/env python3
"""Writes tests/golden/tiny_resnet.f32 and its list, and prints the numbers of tests/unit/test_metric.c and
tests/unit/test_feature_net.c: what NumPy and PyTorch compute, in float64.

    python3 tools/make_metric_goldens.py tests/golden [cifar10_resnet20.f32]

With the weights of a network, its features of two pictures besides. Points and pictures are made from
formulas on both sides.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

EPS = 1e-5


def pictures(n, side):
    i, r, s, c = np.ogrid[:n, :side, :side, :3]
    return ((r * (7 + i) + s * (11 + 2 * c) + i * i * 5 + r * s * (1 + c)) % 256).astype(np.uint8)


def points(n, d, phase):
    i, k = np.ogrid[:n, :d]
    return (((i * i * 7 + i * k * 13 + k * k * 3 + phase) % 101) / np.float32(101)).astype(np.float32).astype(float)


def batch_norm(w, x, name):
    return F.batch_norm(x, w[name + ".running_mean"], w[name + ".running_var"], w[name + ".weight"],
                        w[name + ".bias"], False, 0, EPS)


def block(w, x, name, stride):
    kernel = w[name + ".conv1.weight"]
    y = F.relu(batch_norm(w, F.conv2d(x, kernel, stride=stride, padding=1), name + ".bn1"))
    y = batch_norm(w, F.conv2d(y, w[name + ".conv2.weight"], padding=1), name + ".bn2")
    if stride == 2:
        pad = len(kernel) // 4
        x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, pad, pad))
    return F.relu(y + x)


def apply(w, rgb):
    x = (torch.tensor(rgb).double() / 255 - torch.tensor([.485, .456, .406])) / torch.tensor([.229, .224, .225])
    h = F.relu(batch_norm(w, F.conv2d(x.permute(0, 3, 1, 2), w["conv1.weight"], padding=1), "bn1"))
    for group in 1, 2, 3:
        count = sum(name.startswith(f"layer{group}.") and name.endswith(".conv1.weight") for name in w)
        for b in range(count):
            h = block(w, h, f"layer{group}.{b}", 2 if group > 1 and b == 0 else 1)
    features = h.mean((2, 3))
    return features.numpy(), F.softmax(F.linear(features, w["linear.weight"], w["linear.bias"]), 1).numpy()


def load(path):
    numbers, w = np.fromfile(path, "<f4"), {}
    with open(path[:-4] + "_manifest.txt", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            name, shape, offset, count = line.split()
            first = int(offset) // 4
            array = numbers[first:first + int(count)].reshape([int(v) for v in shape.split("x")])
            w[name] = torch.tensor(array).double()
    return w


def tiny_network(channels=2, classes=3):
    rng, arrays = np.random.default_rng(5), []

    def conv(name, cout, cin):
        arrays.append((name + ".weight", rng.standard_normal((cout, cin, 3, 3)) * (2 / (9 * cin))**.5))

    def norm(name, c):
        arrays.append((name + ".weight", rng.uniform(.5, 1.5, c)))
        arrays.append((name + ".bias", rng.standard_normal(c) * .3))
        arrays.append((name + ".running_mean", rng.standard_normal(c) * .3))
        arrays.append((name + ".running_var", rng.uniform(.5, 2, c)))

    conv("conv1", channels, 3)
    norm("bn1", channels)
    for group in 1, 2, 3:
        before, channels = channels, channels if group == 1 else 2 * channels
        conv(f"layer{group}.0.conv1", channels, before)
        norm(f"layer{group}.0.bn1", channels)
        conv(f"layer{group}.0.conv2", channels, channels)
        norm(f"layer{group}.0.bn2", channels)
    arrays.append(("linear.weight", rng.standard_normal((classes, channels))))
    arrays.append(("linear.bias", rng.standard_normal(classes)))
    return arrays


def write(path, arrays):
    offset, lines = 0, ["# name shape(PyTorch order, OIHW for conv) offset_bytes count\n"]
    with open(path, "wb") as file:
        for name, array in arrays:
            file.write(array.astype("<f4").tobytes())
            lines.append(f"{name} {'x'.join(map(str, array.shape))} {offset} {array.size}\n")
            offset += 4 * array.size
    with open(path[:-4] + "_manifest.txt", "w", encoding="ascii") as file:
        file.writelines(lines)


def frechet(a, b):
    cov_a, cov_b = np.cov(a.T), np.cov(b.T)
    values, v = np.linalg.eigh(cov_a)
    root = (v * np.sqrt(np.maximum(values, 0))) @ v.T
    both = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ cov_b @ root), 0)).sum()
    return ((a.mean(0) - b.mean(0))**2).sum() + np.trace(cov_a) + np.trace(cov_b) - 2 * both


def precision_recall(real, made, k):
    def distances(x, y):
        return ((x[:, None] - y[None])**2).sum(2)

    def share(x, y):
        return (distances(x, y) <= np.sort(distances(y, y), 1)[:, k]).any(1).mean()

    return share(made, real), share(real, made)


def kid(x, y):
    def kernel(u, v):
        return (u @ v.T / u.shape[1] + 1)**3

    def among(u):
        k = kernel(u, u)
        return (k.sum() - np.trace(k)) / (len(u) * (len(u) - 1))

    return among(x) + among(y) - 2 * kernel(x, y).mean()


def show(title, rows):
    print(title)
    for row in rows:
        print("    {" + ", ".join(f"{v:.9g}" for v in row) + "},")


def main():
    tiny = os.path.join(sys.argv[1], "tiny_resnet.f32")
    write(tiny, tiny_network())
    features, classes = apply(load(tiny), pictures(3, 32))
    show("tiny network: features", features)
    show("tiny network: probabilities", classes)
    if len(sys.argv) > 2:
        features, classes = apply(load(sys.argv[2]), pictures(2, 32))
        show(sys.argv[2] + ": first features", features[:, :8])
        show(sys.argv[2] + ": probabilities", classes)
    a, b = points(40, 5, 0), 1.25 * points(30, 5, 17)
    print(f"Frechet distance {frechet(a, b):.15g}, of few {frechet(points(4, 9, 0), points(6, 9, 17)):.15g}")
    print("precision and recall", *precision_recall(a, b, 3))
    print(f"KID {kid(a, b):.12g}")


main()
