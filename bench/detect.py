#!/usr/bin/env python3
"""Tables with known anomalies: `n2ce detect` against nine detectors of PyOD.

    ./run bench detect [--json] [--data DIR] [--tables a,b] [--seeds K] [--methods a,b]
    ./run bench detect --ablation        what the parts of a score are worth
    ./run bench detect --calibration     p-values of normal rows, and false discoveries

DIR/anomaly, or that of $N2CE_DATA, has a file NAME.npy for each table: rows of features, and last a
column that is 1 for an anomaly. Protocol: by table and seed (0, 1) a random half of the normal rows, at
most 5000, trains; the others and all anomalies test. Everybody sees the same split: PyOD's detectors,
with their defaults (KNN with 5 neighbours, GMM with 5 components), columns that are standardised by
the training rows; n2ce the columns as they are. Nobody sees a label. AUROC and AUPRC (average
precision) over the test rows, and seconds of training and scoring; for n2ce with the start of the
process and files. The program is $N2CE_BIN or build/n2ce.

The rules of n2ce were chosen on the tables marked "chosen"; the means over the others are what to
look at, and "below" is by how much a table is under the median of the nine.

Every result is appended to out/detect/results.jsonl as soon as it is there, and what is there is not
computed again, n2ce's per build. PyOD 3.6.7 is installed into build-detect by ./run.
"""
import argparse
import csv
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "out" / "detect" / "results.jsonl"
CHOSEN = ("Cardiotocography", "Hepatitis", "Ionosphere", "WDBC", "Wilt", "annthyroid", "fault",
          "letter", "optdigits", "shuttle")
PEERS = ("ECOD", "COPOD", "IForest", "KNN", "LOF", "OCSVM", "PCA", "GMM", "INNE")
PARTS = ("near", "margins", "near,margins", "ratio")  # and all of them: n2ce
MOST_ROWS = 5000
WIDTH = 10  # of a column


# ---- data ----------------------------------------------------------------------------------------


def load(folder, table):
    rows = np.load(folder / f"{table}.npy")
    return rows[:, :-1].astype(float), rows[:, -1].astype(int)


def split(x, y, seed):
    """Training rows, test rows, labels of these."""
    normal = np.flatnonzero(y == 0)
    np.random.RandomState(seed).shuffle(normal)
    half = len(normal) // 2
    test = np.concatenate([normal[half:], np.flatnonzero(y == 1)])
    return x[normal[:min(half, MOST_ROWS)]], x[test], y[test]


# ---- detectors -----------------------------------------------------------------------------------


def peer(name, seed):
    from importlib import import_module
    make = getattr(import_module(f"pyod.models.{name.lower()}"), name)
    keywords = {"GMM": {"n_components": 5}}.get(name, {})
    if name in ("IForest", "PCA", "GMM", "INNE"):
        keywords["random_state"] = seed
    return make(**keywords)


def run_peer(name, train, test, seed):
    mean, scale = train.mean(0), train.std(0)
    scale[scale == 0] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peer(name, seed).fit((train - mean) / scale)
        return model.decision_function((test - mean) / scale)


def detect(program, train, test, seed=0, options=()):
    """Scores, p-values and flags."""
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("normal.npy", "rows.npy", "out.csv")]
        np.save(names[0], train)
        np.save(names[1], test)
        subprocess.run([str(program), "detect", "--normal", names[0], names[1], "-o", names[2],
                        "--worst", "0", "-q", "--seed", str(seed), *options],
                       check=True, stdout=subprocess.DEVNULL)
        with open(names[2], newline="") as file:
            rows = list(csv.reader(file))[1:]
    return np.array([row[-3:] for row in rows], dtype=float).T


def run(method, program, train, test, seed):
    """`method` is a peer, or n2ce, or n2ce with parts after a colon."""
    if method in PEERS:
        return run_peer(method, train, test, seed)
    parts = method.partition(":")[2]
    return detect(program, train, test, seed, ["--parts", parts] if parts else [])[0]


def judge(labels, scores):
    from sklearn.metrics import average_precision_score, roc_auc_score
    if not np.isfinite(scores).all():  # as some of PCA's are, where a column is constant
        scores = np.nan_to_num(scores, posinf=np.finfo(float).max)
    return roc_auc_score(labels, scores), average_precision_score(labels, scores)


# ---- results that are there already ----------------------------------------------------------------


def build_of(program):
    return hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()[:16]


def read_cache():
    if not CACHE.exists():
        return {}
    lines = [json.loads(line) for line in CACHE.read_text().splitlines()]
    return {tuple(line["key"]): line for line in lines}


def append(line):
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with CACHE.open("a") as file:
        file.write(json.dumps(line) + "\n")


def measure(args, table, method, seed, build, cache):
    key = (table, method, seed, build if method.startswith("n2ce") else "")
    if key not in cache:
        train, test, labels = split(*load(args.folder, table), seed)
        start = time.perf_counter()
        try:
            auroc, auprc = judge(labels, run(method, args.program, train, test, seed))
        except ValueError as error:  # a peer that a table is too much for
            print(f"{table}, {method}: {error}", file=sys.stderr)
            auroc, auprc = None, None
        cache[key] = {"key": key, "auroc": auroc, "auprc": auprc,
                      "seconds": time.perf_counter() - start}
        append(cache[key])
    return cache[key]


# ---- tables --------------------------------------------------------------------------------------


def mean_of(lines, what):
    values = [line[what] for line in lines if line[what] is not None]
    return float(np.mean(values)) if values else float("nan")


def compare(args, methods):
    """{table: {method: {auroc, auprc, seconds}}}, means over the seeds."""
    build, cache, out = build_of(args.program), read_cache(), {}
    for table in args.tables:
        out[table] = {}
        for method in methods:
            lines = [measure(args, table, method, seed, build, cache) for seed in range(args.seeds)]
            out[table][method] = {what: mean_of(lines, what)
                                  for what in ("auroc", "auprc", "seconds")}
    return out


def print_row(name, values, digits=3):
    cells = (f"{value:.{digits}f}" if np.isfinite(value) else "-" for value in values)
    print(f"{name:26}" + " ".join(f"{cell:>{WIDTH}}" for cell in cells))


def below_median(found):
    """By how much n2ce is under the median peer, the worse of the two measures."""
    return max(float(np.nanmedian([found[peer][what] for peer in PEERS])) - found["n2ce"][what]
               for what in ("auroc", "auprc"))


def print_comparison(found, methods):
    shown = [method.replace("n2ce:", "").replace("margins", "marg.") for method in methods]
    with_peers = all(peer in methods for peer in PEERS) and "n2ce" in methods
    for what in ("auroc", "auprc"):
        print(f"\n{what.upper():26}" + " ".join(f"{name:>{WIDTH}}" for name in shown)
              + ("      below" if with_peers and what == "auprc" else ""))
        for table, by_method in found.items():
            name = table + (", chosen" if table in CHOSEN else "")
            cells = [by_method[method][what] for method in methods]
            print_row(name, cells + ([below_median(by_method)] if with_peers and what == "auprc" else []))
        for name, tables in (("mean", list(found)),
                             ("mean, chosen", [t for t in found if t in CHOSEN]),
                             ("mean, others", [t for t in found if t not in CHOSEN])):
            if tables:
                print_row(name, [np.nanmean([found[t][method][what] for t in tables])
                                 for method in methods])
    print()
    print_row("seconds a table", [np.mean([found[t][m]["seconds"] for t in found]) for m in methods], 1)


# ---- calibration ---------------------------------------------------------------------------------


def normal_rows(args, case, seed, n):
    rng = np.random.default_rng(seed)
    if case == "ties":  # 64 different rows, some of them often
        return rng.binomial(3, 0.3, size=(n, 3)).astype(float)
    if case == "heavy tails":
        return rng.standard_cauchy((n, 4))
    x, y = load(args.folder, case)
    return rng.permutation(x[y == 0])[:n]


def uniformity(args, options):
    """Of 20 seeds: KS of the p-values of 100 normal rows, by those of the others that fit into
    1000. One sample's p-values share their yardstick, so they are not independent: hence few rows to
    many, and the test of all seeds together."""
    from scipy.stats import kstest
    print(f"\n{'p-values of normal rows':26}{'seeds with KS p > 0.01':>24}{'least KS p':>12}"
          f"{'KS p of all':>12}{'  share below 0.01, 0.05, 0.1':>32}")
    for case in ("Cardiotocography", "Pima", "letter", "ties", "heavy tails"):
        found = []
        for seed in range(args.repeats):
            rows = normal_rows(args, case, seed, 1000)
            found.append(detect(args.program, rows[:-100], rows[-100:], seed, options)[1])
        ks = [kstest(p, "uniform").pvalue for p in found]
        p = np.concatenate(found)
        shares = "  ".join(f"{(p <= level).mean():.4f}" for level in (0.01, 0.05, 0.1))
        print(f"{case:26}{sum(k > 0.01 for k in ks):>15} of {len(ks):<6}{min(ks):>12.3f}"
              f"{kstest(p, 'uniform').pvalue:>12.3f}{shares:>32}", flush=True)


def discoveries(args, options, fdr=0.1, repetitions=100):
    """Flags of 200 rows, 20 of them odd, by 400 normal ones: the share of flagged rows that are
    normal, and of odd rows that are flagged."""
    false, power = [], []
    for seed in range(repetitions):
        rng = np.random.default_rng(1000 + seed)
        rows = rng.normal(size=(580, 4)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(4)).T
        odd = rng.normal(size=(20, 4)) + rng.choice([-4, 4], size=(20, 4))
        flag = detect(args.program, rows[:400], np.vstack([rows[400:], odd]), seed,
                      ["--fdr", str(fdr), *options])[2]
        false.append(flag[:180].sum() / max(flag.sum(), 1))
        power.append(flag[180:].mean())
    error = np.std(false) / np.sqrt(repetitions)
    print(f"\nfalse discovery rate at --fdr {fdr}: {np.mean(false):.3f} +- {error:.3f} in the mean over "
          f"{repetitions} repetitions; {np.mean(power):.2f} of the odd rows are flagged")


def calibration(args):
    uniformity(args, [])
    discoveries(args, [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = os.environ.get("N2CE_DATA")
    parser.add_argument("--data", default=data, required=data is None)
    parser.add_argument("--tables")
    parser.add_argument("--methods", default=",".join(("n2ce", *PEERS)))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20, help="seeds of --calibration")
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.folder = pathlib.Path(args.data) / "anomaly"
    args.program = pathlib.Path(os.environ.get("N2CE_BIN") or ROOT / "build" / "n2ce")
    args.tables = (args.tables.split(",") if args.tables
                   else sorted(path.stem for path in args.folder.glob("*.npy")))
    if args.calibration:
        return calibration(args)
    methods = args.methods.split(",")
    if args.ablation:
        methods = [*(f"n2ce:{parts}" for parts in PARTS), "n2ce"]
    found = compare(args, methods)
    if args.json:
        print(json.dumps(found))
    else:
        print_comparison(found, methods)


if __name__ == "__main__":
    main()
