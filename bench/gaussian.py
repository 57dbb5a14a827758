#!/usr/bin/env python3
"""The n = 500 table of the Gaussian study: n2ce against NumPy, timed in one go.

The work is the paper's table: 9 objectives x 100 runs x 150 steps, 500 samples a side in 5
dimensions, all 100 runs vectorised. Two NumPy scripts do it:

  plain   a function of the objective, called nine times; NumPy's default precision
  tuned   all objectives in one loop that share the draws of a step, in float32: the
          same two savings that n2ce makes

    ./run bench gaussian [--json]
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import numpy as np

TARGET = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
MAGNITUDES = [np.inf, 1, 10, 50, 100, 1000, 1e4, 2e4, 1e9]  # infinity is NWJ
N, RUNS, STEPS, STEP_SIZE = 500, 100, 150, 0.2


def gradient(a, magnitude, x_num, x_den):
    """Of the N2CE objective at the parameters a (runs x dim)."""
    total = 0
    for x, is_den in ((x_num, False), (x_den, True)):
        f = (x @ a[:, :, None])[:, :, 0] - 0.5 * (a**2).sum(axis=1)[:, None]
        r = np.exp(f)
        weight = (r if is_den else 1) / (1 + r / a.dtype.type(magnitude))
        moment = (weight[:, None, :] @ x)[:, 0, :] - weight.sum(axis=1)[:, None] * a
        total = total + (-moment if is_den else moment)
    return total / N


def draw(rng, target):
    shape = (RUNS, N, len(target))
    return (target + rng.standard_normal(shape, dtype=target.dtype),
            rng.standard_normal(shape, dtype=target.dtype))


def simulate(magnitude, rng):
    """Mean score of one objective."""
    a, score = np.tile(-TARGET, (RUNS, 1)), 0
    for _ in range(STEPS):
        score = score + ((a - TARGET) ** 2).sum(axis=1)
        a = a + STEP_SIZE * gradient(a, magnitude, *draw(rng, TARGET))
    return score.mean() / STEPS


def plain_table():
    rng = np.random.default_rng(0)
    return np.array([simulate(magnitude, rng) for magnitude in MAGNITUDES])


def tuned_table():
    rng, target = np.random.default_rng(0), TARGET.astype(np.float32)
    a = np.tile(-target, (len(MAGNITUDES), RUNS, 1))
    score = np.zeros((len(MAGNITUDES), RUNS))
    for _ in range(STEPS):
        score += ((a - target) ** 2).sum(axis=2)
        x_num, x_den = draw(rng, target)
        for c, magnitude in enumerate(MAGNITUDES):
            a[c] += np.float32(STEP_SIZE) * gradient(a[c], magnitude, x_num, x_den)
    return score.mean(axis=1) / STEPS


def n2ce_table(program):
    command = [program, "study", "gaussian", "--dim", "5", "--n", str(N), "--runs", str(RUNS),
               "--steps", str(STEPS), "--families", "n2ce,nwj", "--json"]
    rows = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["rows"]
    return np.array([row["mean"] for row in rows])


def measure(repeats, function, *args):
    """Median time and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function(*args)
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/n2ce")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    n2ce_s, ours = measure(7, n2ce_table, args.program)
    tuned_s, tuned = measure(3, tuned_table)
    plain_s, plain = measure(1, plain_table)
    stable = slice(1, 6)  # NWJ and M >= 1e4 have no stable mean over 100 runs
    difference = max(float(np.abs(ours - other)[stable].max()) for other in (plain, tuned))
    result = {"bench": "gaussian", "n2ce_s": n2ce_s, "numpy_s": plain_s,
              "ratio": plain_s / n2ce_s, "numpy_tuned_s": tuned_s,
              "ratio_tuned": tuned_s / n2ce_s, "numpy_version": np.__version__,
              "largest_difference": difference}
    if args.json:
        print(json.dumps(result))
    else:
        print(f"n2ce          {n2ce_s:7.3f} s   median of 7, process start included")
        print(f"NumPy, plain  {plain_s:7.3f} s   {result['ratio']:.1f} times n2ce")
        print(f"NumPy, tuned  {tuned_s:7.3f} s   {result['ratio_tuned']:.1f} times n2ce")
        print(f"largest difference of a mean, M = 1 to 1000: {difference:.4f}")
    return 0 if difference < 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
