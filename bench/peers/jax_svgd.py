"""JAX peer of `n2ce bench svgd`: 256 particles, 500 iterations on the ratio network.

    build-bench/bin/python bench/peers/jax_svgd.py

Prints one JSON object; compilation is not timed. XLA takes as many threads as the process may use
cores.
"""
import argparse
import json
import math
import time

from jax_step import NZ, adam, all_stages, new_ratio, new_vae, no_moments, peak_mb, stack

import jax
import jax.numpy as jnp
import numpy as np

PARTICLES, ITERATIONS, STEP_SIZE, CONDITION_WEIGHT = 256, 500, 0.3, 20.0
PAIRS = np.triu_indices(PARTICLES, 1)


def log_density(z, ratio, decoder):
    """Summed over the particles, unnormalised, given y = 1."""
    miss = 1 - stack(decoder, z)[:, -1]
    return all_stages(ratio, z).sum() - 0.5 * (z**2).sum() - CONDITION_WEIGHT * (miss**2).sum()


def direction(z, s):
    n = len(z)
    squared = (z**2).sum(axis=1)
    distance2 = jnp.maximum(squared[:, None] + squared - 2 * z @ z.T, 0)
    h2 = jnp.median(jnp.sqrt(distance2[PAIRS])) ** 2 / (2 * math.log(n + 1))
    kernel = jnp.exp(-distance2 / (2 * h2))
    return (kernel @ s + (z * kernel.sum(axis=1, keepdims=True) - kernel @ z) / h2) / n


def iteration(state, ratio, decoder):
    z, moments, t = state
    phi = direction(z, jax.grad(log_density)(z, ratio, decoder))
    z, moments = adam(z, -phi, moments, t + 1, STEP_SIZE, 0.9, 0.999, clip=math.inf)
    return z, moments, t + 1


@jax.jit
def sample(z, ratio, decoder, iterations):
    state = z, no_moments(z), jnp.float32(0)
    return jax.lax.fori_loop(0, iterations, lambda _, s: iteration(s, ratio, decoder), state)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    args = parser.parse_args()
    ratio, decoder = new_ratio(jax.random.key(0)), new_vae(jax.random.key(1))["decoder"]
    z = jax.random.normal(jax.random.key(2), (PARTICLES, NZ))
    sample(z, ratio, decoder, 5).block_until_ready()
    start = time.perf_counter()
    z = sample(z, ratio, decoder, args.iterations).block_until_ready()
    seconds = time.perf_counter() - start
    print(json.dumps({"peer": "jax", "version": jax.__version__, "seconds": seconds,
                      "peak_mb": peak_mb(), "root_mean_square": float(jnp.sqrt((z**2).mean()))}))


if __name__ == "__main__":
    main()
