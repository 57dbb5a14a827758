"""JAX peer of `n2ce bench step`: the training step of the paper's offline optimisation.

    build-bench/bin/python bench/peers/jax_step.py [--M 100]
    ... --device cuda [--precision tf32|float32]

Prints one JSON object. XLA takes as many threads as the process may use cores. On a GPU 50 steps
are one scan.
"""
import argparse
import json
import math
import os
import resource
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("JAX_PLATFORMS", "cuda" if "cuda" in sys.argv else "cpu")

import jax
import jax.numpy as jnp

NZ, WIDTH, BLOCKS, STAGES = 20, 128, 16, 7
BATCH, FEATURES = 128, 87  # 86 of a design and its value
SLOPE, CLIP = 0.2, 100.0
SIGMA2 = jnp.array([0.01, 0.3237, 0.5165, 0.6322, 0.7132, 0.7734, 0.9997, 1.0])
RATIO_OPTIMISER = {"rate": 5e-5, "beta1": 0.9, "beta2": 0.999}
VAE_OPTIMISER = {"rate": 1e-4, "beta1": 0.5, "beta2": 0.999}


# ---- layers -------------------------------------------------------------------------------------


def leaky_relu(x):
    return jax.nn.leaky_relu(x, SLOPE)


def new_stack(key, *sizes):
    """PyTorch's default initialisation."""
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        key, for_w, for_b = jax.random.split(key, 3)
        bound = 1 / math.sqrt(inputs)
        layers.append((jax.random.uniform(for_w, (inputs, outputs), minval=-bound, maxval=bound),
                       jax.random.uniform(for_b, (outputs,), minval=-bound, maxval=bound)))
    return layers


def linear(layer, x):
    return x @ layer[0] + layer[1]


def stack(layers, x):
    for layer in layers[:-1]:
        x = leaky_relu(linear(layer, x))
    return linear(layers[-1], x)


# ---- networks -----------------------------------------------------------------------------------


def new_ratio(key):
    keys = jax.random.split(key, 4 + BLOCKS)
    return {"stage": new_stack(keys[0], WIDTH, WIDTH, WIDTH),
            "input": new_stack(keys[1], NZ, WIDTH, WIDTH),
            "join": new_stack(keys[2], 2 * WIDTH, WIDTH)[0],
            "out": new_stack(keys[3], WIDTH, 1)[0],
            "blocks": [new_stack(k, WIDTH, WIDTH)[0] for k in keys[4:]]}


def stage_table():
    angle = jnp.arange(STAGES)[:, None] * 10000.0 ** (-jnp.arange(0, WIDTH, 2) / WIDTH)
    return jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=2).reshape(STAGES, WIDTH)


def ratio(p, z, k):
    """f(z, k). The stage network sees the 7 rows of its table, not a row for every sample."""
    h = jnp.concatenate([stack(p["input"], z), stack(p["stage"], stage_table())[k]], axis=1)
    h = linear(p["join"], leaky_relu(h))
    for block in p["blocks"]:
        h = h + linear(block, leaky_relu(h))
    return linear(p["out"], leaky_relu(h))[:, 0]


def all_stages(p, z):
    """sum_k f(z, k)."""
    k = jnp.tile(jnp.arange(STAGES), len(z))
    return ratio(p, jnp.repeat(z, STAGES, axis=0), k).reshape(-1, STAGES).sum(axis=1)


def new_vae(key):
    keys = jax.random.split(key, 4)
    return {"trunk": new_stack(keys[0], FEATURES, 128, 128),
            "mean": new_stack(keys[1], 128, NZ)[0], "logvar": new_stack(keys[2], 128, NZ)[0],
            "decoder": new_stack(keys[3], NZ, 128, 64, 32, 32, FEATURES)}


def encode(p, x, eps):
    h = leaky_relu(stack(p["trunk"], x))
    mean, logvar = linear(p["mean"], h), linear(p["logvar"], h)
    return mean, logvar, mean + eps * jnp.exp(0.5 * logvar)


# ---- the step -----------------------------------------------------------------------------------


def pairs(key, z, magnitude):
    """Numerator and denominator samples of a random stage per datum."""
    for_k, for_num, for_den = jax.random.split(key, 3)
    k = jax.random.randint(for_k, (len(z),), 0, STAGES)
    s = SIGMA2[k + 1][:, None]
    numerator = jnp.sqrt(1 - s) * jax.random.normal(for_num, z.shape) + jnp.sqrt(s) * z
    s = jnp.tile(SIGMA2[k], magnitude)[:, None]
    noise = jax.random.normal(for_den, (magnitude * len(z), NZ))
    denominator = jnp.sqrt(1 - s) * noise + jnp.sqrt(s) * jnp.tile(z, (magnitude, 1))
    return jnp.concatenate([numerator, denominator]), jnp.tile(k, magnitude + 1)


def ratio_loss(p, points, k, magnitude):
    f = ratio(p, points, k) - math.log(magnitude)
    log_sigmoid = jax.nn.log_sigmoid
    return -(log_sigmoid(f[:BATCH]).mean() + magnitude * log_sigmoid(-f[BATCH:]).mean())


def vae_loss(p, ratio_parameters, x, eps):
    mean, logvar, z = encode(p, x, eps)
    reconstruction = ((stack(p["decoder"], z) - x) ** 2).sum() / len(x)
    kl = -0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum(axis=1).mean()
    return 50 * reconstruction + 0.75 * (kl - all_stages(ratio_parameters, z).mean())


def adam(p, gradient, moments, t, rate, beta1, beta2, clip=CLIP):
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradient)))
    scale = jnp.minimum(1.0, clip / (norm + 1e-6))
    first = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * scale * g, moments[0], gradient)
    second = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * (scale * g) ** 2, moments[1],
                          gradient)

    def moved(value, m, v):
        return value - rate * m / (1 - beta1**t) / (jnp.sqrt(v / (1 - beta2**t)) + 1e-8)

    return jax.tree.map(moved, p, first, second), (first, second)


def no_moments(p):
    return jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p)


def new_state():
    of_ratio, of_vae = new_ratio(jax.random.key(0)), new_vae(jax.random.key(1))
    return {"ratio": of_ratio, "ratio_moments": no_moments(of_ratio), "vae": of_vae,
            "vae_moments": no_moments(of_vae), "t": jnp.float32(0), "key": jax.random.key(2)}


def step(state, x, magnitude):
    key, for_eps, for_pairs = jax.random.split(state["key"], 3)
    t, vae = state["t"] + 1, state["vae"]
    eps = jax.random.normal(for_eps, (BATCH, NZ))
    points, k = pairs(for_pairs, encode(vae, x, eps)[2], magnitude)
    loss, gradient = jax.value_and_grad(ratio_loss)(state["ratio"], points, k, magnitude)
    new, moments = adam(state["ratio"], gradient, state["ratio_moments"], t, **RATIO_OPTIMISER)
    gradient = jax.grad(vae_loss)(vae, new, x, eps)
    vae, vae_moments = adam(vae, gradient, state["vae_moments"], t, **VAE_OPTIMISER)
    return {"ratio": new, "ratio_moments": moments, "vae": vae, "vae_moments": vae_moments,
            "t": t, "key": key}, loss


# ---- timing -------------------------------------------------------------------------------------


def several(state, x, magnitude, number):
    """`number` steps in one call, and the last loss."""
    if number == 1:
        return step(state, x, magnitude)
    state, losses = jax.lax.scan(lambda s, _: step(s, x, magnitude), state, None, length=number)
    return state, losses[-1]


def timed(magnitude, seconds, at_once, warm_up=3):
    """Mean seconds of a step, their number, and the first and last loss."""
    x, state = jax.random.uniform(jax.random.key(3), (BATCH, FEATURES)), new_state()
    run = jax.jit(lambda state, x, magnitude: several(state, x, magnitude, at_once),
                  static_argnums=2, donate_argnums=0)
    state, loss = run(state, x, magnitude)
    first = float(loss)
    for _ in range(warm_up - 1):
        state, loss = run(state, x, magnitude)
    loss.block_until_ready()
    start, steps, spent = time.perf_counter(), 0, 0.0
    while spent < seconds or steps < 3:
        state, loss = run(state, x, magnitude)
        loss.block_until_ready()
        steps += at_once
        spent = time.perf_counter() - start
    return spent / steps, steps, first, float(loss)


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--M", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3.0, help="of timing, at least")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["tf32", "float32"], default="tf32",
                        help="of products on a GPU")
    args = parser.parse_args()
    if args.device == "cuda":
        names = {"tf32": "tensorfloat32", "float32": "float32"}
        jax.config.update("jax_default_matmul_precision", names[args.precision])
    seconds, steps, first, last = timed(args.M, args.seconds, 50 if args.device == "cuda" else 1)
    print(json.dumps({"peer": "jax", "version": jax.__version__, "M": args.M, "ms": 1e3 * seconds,
                      "steps": steps, "peak_mb": peak_mb(), "first_loss": first,
                      "last_loss": last}))


if __name__ == "__main__":
    main()
