#!/usr/bin/env python3
"""How often `n2ce test` finds a difference, beside what a practitioner would do in thirty lines: the energy distance
with permuted labels, and a boosted classifier (scikit-learn) trained on one half of the rows and judged on the other.

    ./run bench power [--draws 100] [--only mixture-2,shift-5-of-50] [--json]

Every draw makes two new samples. At a level of 5 % the rows called "none" should be found in 5 of 100 draws.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

PROGRAM = os.environ.get("N2CE_BIN", str(pathlib.Path(__file__).resolve().parent.parent / "build" / "n2ce"))
LEVEL = 0.05


def signs(rng, n, columns):
    return rng.choice([-1.0, 1.0], (n, columns))


def mixture(rng, n, d, columns, at):
    """Two bumps in some columns, with the mean and the variance of a normal."""
    x = rng.standard_normal((n, d))
    x[:, :columns] = at * signs(rng, n, columns) + np.sqrt(1 - at * at) * x[:, :columns]
    return x


def changed(rng, n, d, columns, shift=0.0, scale=1.0):
    x = rng.standard_normal((n, d))
    x[:, :columns] = scale * x[:, :columns] + shift
    return x


def correlated(rng, n, d, rho):
    x = rng.standard_normal((n, d))
    x[:, 1] = rho * x[:, 0] + np.sqrt(1 - rho * rho) * x[:, 1]
    return x


def same_sign(rng, n, d, factors, share):
    """A column whose sign is, in most rows, that of a product of others."""
    x = rng.standard_normal((n, d))
    right = np.where(rng.random(n) < share, 1, -1)
    x[:, factors] = np.abs(x[:, factors]) * np.sign(x[:, :factors].prod(1)) * right
    return x


def normal(rng, n, d):
    return rng.standard_normal((n, d))


# name: rows a side, columns, how the numerator is drawn; the denominator is normal, but where it says otherwise
PROBLEMS = {
    "none, 5 columns": (150, 5, normal),
    "none, whole numbers": (200, 3, lambda rng, n, d: rng.poisson(2, (n, d))),
    "mixture, 2 columns": (300, 2, lambda rng, n, d: mixture(rng, n, d, 2, .95)),
    "mixture in 1 of 5": (300, 5, lambda rng, n, d: mixture(rng, n, d, 1, .9)),
    "shift in 5 of 50": (200, 50, lambda rng, n, d: changed(rng, n, d, 5, shift=.4)),
    "shift in 1 of 20": (300, 20, lambda rng, n, d: changed(rng, n, d, 1, shift=.3)),
    "scale of 5": (200, 5, lambda rng, n, d: changed(rng, n, d, 5, scale=1.2)),
    "scale in 1 of 20": (200, 20, lambda rng, n, d: changed(rng, n, d, 1, scale=1.5)),
    "correlation in 10": (200, 10, lambda rng, n, d: correlated(rng, n, d, .5)),
    "heavy tails": (300, 3, lambda rng, n, d: rng.standard_t(4, (n, d)) / np.sqrt(2)),
    "signs of 2 in 10": (300, 10, lambda rng, n, d: same_sign(rng, n, d, 1, .85)),
    "signs of 3 in 4": (300, 4, lambda rng, n, d: same_sign(rng, n, d, 2, .9)),
}


def draw(name, seed):
    rows, columns, numerator = PROBLEMS[name]
    rng = np.random.default_rng([seed, sorted(PROBLEMS).index(name)])
    num = numerator(rng, rows, columns)
    den = numerator(rng, rows, columns) if name.startswith("none") else normal(rng, rows, columns)
    return num.astype(float), den.astype(float)


def n2ce(num, den, seed, folder):
    np.save(folder + "/num.npy", num)
    np.save(folder + "/den.npy", den)
    command = [PROGRAM, "test", "-n", folder + "/num.npy", "-d", folder + "/den.npy", "--seed", str(seed), "--quiet"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def energy(num, den, seed, _):
    rng, rows = np.random.default_rng(seed), np.vstack([num, den])
    rows = (rows - rows.mean(0)) / rows.std(0)
    distances, weights = cdist(rows, rows), np.full((len(rows), 500), -1 / len(den))
    for k in range(500):
        weights[np.arange(len(num)) if k == 0 else rng.permutation(len(rows))[:len(num)], k] = 1 / len(num)
    statistic = -np.einsum("ik,ik->k", weights, distances @ weights)
    return float((statistic >= statistic[0] - 1e-12).mean())


def boosting(num, den, seed, _):
    rng = np.random.default_rng(seed)
    rows, label = np.vstack([num, den]), np.r_[np.ones(len(num)), np.zeros(len(den))]
    order = rng.permutation(len(rows))
    train, test = order[::2], order[1::2]
    model = HistGradientBoostingClassifier(max_iter=60, early_stopping=False, min_samples_leaf=10)
    score = model.fit(rows[train], label[train]).predict_proba(rows[test])[:, 1]
    ranks = score.argsort().argsort()
    truth = label[test]
    seen = roc_auc_score(truth, ranks)
    draws = [roc_auc_score(rng.permutation(truth), ranks) for _ in range(200)]
    return (1 + sum(value >= seen - 1e-12 for value in draws)) / 201


METHODS = {"n2ce": n2ce, "energy distance": energy, "boosted classifier": boosting}


def measure(name, draws, folder):
    row = {"problem": name, "rows": PROBLEMS[name][0], "columns": PROBLEMS[name][1]}
    for method, test in METHODS.items():
        begin, found = time.perf_counter(), 0
        for seed in range(draws):
            found += test(*draw(name, seed), seed, folder) <= LEVEL
        row[method] = {"found": found / draws, "seconds": (time.perf_counter() - begin) / draws}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--only", help="some problems, by the beginnings of their names, with commas between them")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    wanted = args.only.split(",") if args.only else [""]
    rows = []
    if not args.json:
        print("| | rows a side, columns | " + " | ".join(METHODS) + " |\n|" + "---|" * (2 + len(METHODS)))
    with tempfile.TemporaryDirectory() as folder:
        for name in PROBLEMS:
            if not any(name.startswith(begin) for begin in wanted):
                continue
            row = measure(name, args.draws, folder)
            rows.append(row)
            if not args.json:
                cells = [f"{row[m]['found']:.2f} ({row[m]['seconds']:.2f} s)" for m in METHODS]
                print(f"| {name} | {row['rows']}, {row['columns']} | " + " | ".join(cells) + " |", flush=True)
    if args.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
