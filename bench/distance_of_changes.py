#!/usr/bin/env python3
"""What a Frechet distance of pictures sees: real pictures, changed a little, beside others of the same file.

    bench/distance_of_changes.py train.npy --features cifar10_resnet20.f32 [--only noise,heun] [--program build/n2ce]

The first N pictures [10000] against the next N, changed: noise, blur, contrast, colours, mirror images;
and what a sampler of Heun's kind makes of a normal distribution with the power spectrum of the pictures
when its denoiser is perfect (its mistake in variance, frequency by frequency). Needs numpy.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np

LEVELS = (80.0, 0.002, 7.0)  # EDM's: most, least, power
COLOURS = np.array([[1, 1, 1], [1, -1, 0], [1, 1, -2]]) / np.sqrt([[3], [2], [6]])


def variance_made(variance, steps, second):
    """As a share of the variance, by a rule of second order (EDM's algorithm 3)."""
    most, least, power = LEVELS
    root = np.linspace(most ** (1 / power), least ** (1 / power), steps)
    sigma = np.append(root**power, 0)
    x = np.full(variance.shape, most)
    for a, b in zip(sigma[:-1], sigma[1:]):
        slope = x * a / (variance + a * a)
        if b == 0:
            x = x - a * slope
            continue
        middle = a + second * (b - a)
        u = x + (middle - a) * slope
        other = u * middle / (variance + middle * middle)
        x = x + (b - a) * ((1 - 0.5 / second) * slope + 0.5 / second * other)
    return x * x / variance


def spectrum(x):
    return np.fft.fft2(x @ COLOURS.T, axes=(1, 2), norm="ortho")


def sampled(x, mean, power, steps, second):
    gain = np.sqrt(variance_made(power, steps, second))
    return np.fft.ifft2(spectrum(x - mean) * gain, axes=(1, 2), norm="ortho").real @ COLOURS + mean


def blurred(x, share):
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    around = wide[:, :-2, 1:-1] + wide[:, 2:, 1:-1] + wide[:, 1:-1, :-2] + wide[:, 1:-1, 2:]
    return (1 - share) * x + share * around / 4


def changes(x, mean, power):
    """Names, and what makes the pictures."""
    noise = np.random.default_rng(1).standard_normal(x.shape)
    own = x.mean((1, 2), keepdims=True)
    yield "nothing", lambda: x
    yield "mirror images", lambda: x[:, :, ::-1]
    for sd in (0.01, 0.02, 0.03, 0.05):
        yield f"noise of {sd}", lambda sd=sd: x + sd * noise
    for share in (0.02, 0.05, 0.1, -0.05):
        yield f"blur of {share}", lambda share=share: blurred(x, share)
    yield "contrast of 0.95", lambda: own + (x - own) * 0.95
    yield "brighter by 0.03", lambda: x + 0.03
    yield "redder by 0.02", lambda: x + np.array([0.02, 0, 0])
    for steps, second in ((12, 1), (18, 1), (36, 1), (18, 0.6)):
        yield (f"heun, {steps} steps, second look at {second}",
               lambda steps=steps, second=second: sampled(x, mean, power, steps, second))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", help="an array of bytes, [n, side, side, 3]")
    parser.add_argument("--features", required=True)
    parser.add_argument("--program", default="build/n2ce")
    parser.add_argument("--number", type=int, default=10000)
    parser.add_argument("--only", default="", help="names that begin so, separated by commas")
    args = parser.parse_args()
    bytes_of = np.load(args.pictures)
    x = bytes_of / 127.5 - 1
    mean = x.mean(0)
    power = np.mean([(abs(spectrum(part - mean)) ** 2).mean(0) for part in np.array_split(x, 20)], axis=0)
    n = args.number
    with tempfile.TemporaryDirectory() as folder:
        real, made = os.path.join(folder, "real.npy"), os.path.join(folder, "made.npy")
        np.save(real, bytes_of[:n])
        for name, make in changes(x[n:2 * n], mean, power):
            if not name.startswith(tuple(args.only.split(","))):
                continue
            np.save(made, np.clip(np.floor(make() * 127.5 + 128), 0, 255).astype(np.uint8))
            answer = subprocess.run([args.program, "compare", real, made, "--features", args.features, "--json"],
                                    capture_output=True, text=True, check=True)
            d = json.loads(answer.stdout)["distance"]
            print(f"{name:34s} {d['frechet']:.4f}, of means {d['frechet_of_means']:.4f}, "
                  f"precision {d['precision']:.3f}, recall {d['recall']:.3f}", flush=True)


if __name__ == "__main__":
    main()
