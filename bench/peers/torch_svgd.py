"""PyTorch peer of `n2ce bench svgd`: 256 particles, 500 iterations on the ratio network.

    build-bench/bin/python bench/peers/torch_svgd.py

Prints one JSON object. The number of threads is OMP_NUM_THREADS, 2 unless set.
"""
import argparse
import json
import math
import os
import time

import torch

from torch_step import NZ, Ratio, Vae, peak_mb  # sets OMP_NUM_THREADS

PARTICLES, ITERATIONS, STEP_SIZE, CONDITION_WEIGHT = 256, 500, 0.3, 20.0


def score(ratio, decoder, z):
    """Gradient of the unnormalised log-density of z given y = 1."""
    z = z.detach().requires_grad_()
    miss = 1 - decoder(z)[:, -1]
    density = ratio.all_stages(z).sum() - 0.5 * (z**2).sum() - CONDITION_WEIGHT * (miss**2).sum()
    return torch.autograd.grad(density, z)[0]


def middle(values):
    """The median; with an even count the mean of the middle two, unlike torch.median."""
    values = values.sort().values
    return 0.5 * (values[(len(values) - 1) // 2] + values[len(values) // 2])


def direction(z, s):
    n = len(z)
    h2 = middle(torch.pdist(z)) ** 2 / (2 * math.log(n + 1))
    squared = (z**2).sum(dim=1)
    distance2 = (squared[:, None] + squared - 2 * z @ z.T).clamp(min=0)
    kernel = torch.exp(-distance2 / (2 * h2))
    return (kernel @ s + (z * kernel.sum(dim=1, keepdim=True) - kernel @ z) / h2) / n


def sample(ratio, decoder, iterations):
    z = torch.randn(PARTICLES, NZ)
    optimiser = torch.optim.Adam([z], STEP_SIZE, fused=True, maximize=True)
    for _ in range(iterations):
        z.grad = direction(z, score(ratio, decoder, z))
        optimiser.step()
    return z


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    ratio, decoder = Ratio().requires_grad_(False), Vae().decoder.requires_grad_(False)
    sample(ratio, decoder, 5)
    start = time.perf_counter()
    z = sample(ratio, decoder, args.iterations)
    seconds = time.perf_counter() - start
    print(json.dumps({"peer": "torch_eager", "version": torch.__version__, "seconds": seconds,
                      "peak_mb": peak_mb(), "root_mean_square": (z**2).mean().sqrt().item()}))


if __name__ == "__main__":
    main()
