#!/usr/bin/env python3
"""Tables of designs with a known truth: `n2ce optimize` against what an engineer would do without it.

    ./run bench optimize [--quick] [--kept] [--fresh] [--later] [--last] [--json] [--tables a,b] [--seeds K] [--seed S] [--count Q] [--data DIR]
                         [--methods n2ce,random,...] [--options "--prior gaussian"] [--summary]

Tables are those of bench/tables/designs.py: hills, ripples, curved valleys, monotone formulas, mixed columns, recipes;
4 to 30 columns, 300 to 20,000 rows, noise up to that of the signal, and the best 0 to 40 % of the rows hidden. With
--data, whose folder `anomaly` has NAME.npy, also real ones, of which a forest on all rows is the judge. A method sees
rows and noisy values, and proposes Q designs (128); they are worth what the truth says: 0 is a row by chance and 1 the best
of all rows. Beside n2ce, with its defaults: random designs, the best rows tried again, and the methods of
bench/peers/sklearn_designs.py. The last lines are mean ranks over the tables (1 is best) of the best and of the median
proposal, how often n2ce's best is below that of random designs, and how its predictions fare: the mean of achieved
minus predicted in standard deviations of the seen values, and how often the 80 % interval of the mean covers.

Every result is kept in out/optimize/results.jsonl as soon as it is there, n2ce's per build and options, and is not
computed again: the run may be stopped, or made in parts. --summary computes nothing. The program is $N2CE_BIN or
build/n2ce.
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

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "out" / "optimize" / "results.jsonl"
sys.path[:0] = [str(ROOT / "bench" / "tables"), str(ROOT / "bench" / "peers")]
import designs as tables  # noqa: E402
import sklearn_designs as peers  # noqa: E402

METHODS = ("n2ce", "random", "top-offline") + peers.METHODS


# ---- methods ---------------------------------------------------------------------------------------------


def write_csv(path, table):
    """Levels as texts, the rest as numbers."""
    kinds = [s[0] for s in table.space]
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow([f"x{j}" for j in range(len(kinds))] + ["y"])
        for row, y in zip(table.seen, table.values):
            out.writerow([f"level{int(v)}" if k == "level" else int(v) if k == "whole" else f"{v:.10g}"
                          for k, v in zip(kinds, row)] + [repr(float(y))])


def write_bounds(path, table):
    """The ranges are known to all."""
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        for j, s in enumerate(table.space):
            if s[0] != "level":
                out.writerow([f"x{j}", f"{s[1]:.10g}", f"{s[2]:.10g}"])


def run_program(program, table, count, seed, options):
    """Designs, and what the program says of them."""
    with tempfile.TemporaryDirectory() as folder:
        given, bounds, got = (os.path.join(folder, n) for n in ("designs.csv", "bounds.csv", "proposals.csv"))
        write_csv(given, table)
        write_bounds(bounds, table)
        told = subprocess.run([program, "optimize", given, "--maximize", "y", "-Q", str(count), "--seed", str(seed),
                               "--bounds", bounds, "-o", got, "--json"] + options,
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with open(got, newline="") as f:
            rows = [[float(row[f"x{j}"].removeprefix("level")) for j in range(len(table.space))]
                    for row in csv.DictReader(f)]
    return np.array(rows), json.loads(told.stdout)


def propose(method, program, table, count, seed, options):
    if method == "n2ce":
        return run_program(program, table, count, seed, options)
    if method == "random":
        return table.chance(count), {}
    if method == "top-offline":
        return table.seen[np.argsort(-table.values, kind="stable")[:count]], {}
    return peers.propose(method, table.space, table.seen, table.values, count, seed), {}


def measure(key, a):
    table = tables.make(key["table"], key["seed"], a.data)
    start = time.monotonic()
    rows, told = propose(key["method"], a.program, table, a.count, key["seed"], a.options.split())
    seconds = time.monotonic() - start
    worth = table.truth(rows)
    out = dict(key, max=float(table.scale(worth.max())), median=float(table.scale(np.median(worth))),
               distinct=len(np.unique(rows, axis=0)), seconds=round(seconds, 1))
    if told:
        out["bias"] = float((worth.mean() - np.mean(told["predicted"])) / table.spread)
        expected = told.get("expected")
        if expected:
            out["covered"] = bool(expected["low"] <= worth.mean() <= expected["high"])
            out["half_width"] = (expected["high"] - expected["low"]) / 2 / table.spread
        out["predicted"], out["achieved"] = float(np.mean(told["predicted"])), float(worth.mean())
        out["told"] = {k: told["model"].get(k) for k in ("r2", "forest_share", "process_share", "structure", "scale",
                                                         "ambition", "cut", "narrow", "outdone", "trials")}
    return out


# ---- results that are there already --------------------------------------------------------------------


def text_of(value):
    return hashlib.sha256(value).hexdigest()[:12]


def key_of(name, seed, method, a):
    """What a result depends on."""
    made = b"".join((ROOT / "bench" / "tables" / n).read_bytes() for n in ("designs.py", "formulas.py", "formulas_later.py",
                                                                "formulas_last.py"))
    if method == "n2ce":
        made += pathlib.Path(a.program).read_bytes() + a.options.encode()
    elif method in peers.METHODS:
        made += (ROOT / "bench" / "peers" / "sklearn_designs.py").read_bytes()
    return {"table": name, "seed": seed, "method": method, "count": a.count, "made": text_of(made)}


def identity(r):
    return tuple(r[k] for k in ("table", "seed", "method", "count", "made"))


def read_cache(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return {identity(r): r for r in map(json.loads, lines)}


def result_of(key, cache, a):
    if identity(key) not in cache and not a.summary:
        a.cache.parent.mkdir(parents=True, exist_ok=True)
        cache[identity(key)] = result = measure(key, a)
        with open(a.cache, "a") as f:
            f.write(json.dumps(result) + "\n")
    return cache.get(identity(key))


# ---- what is said -----------------------------------------------------------------------------------------


def ranks(row, what):
    """1 is best; those that are equal share."""
    values = {m: r[what] for m, r in row.items()}
    return {m: 1 + sum(o > v for o in values.values()) + 0.5 * (sum(o == v for o in values.values()) - 1)
            for m, v in values.items()}


def say_row(name, seed, row, methods):
    cells = "".join(f"{row[m]['max']:7.2f} {row[m]['median']:6.2f} " if m in row else " " * 15 for m in methods)
    print(f"{name:18}{seed:4} {cells}{row.get('n2ce', {}).get('seconds', 0):6.0f}", flush=True)


def say_predictions(ours):
    known = [r for r in ours if "bias" in r]
    if not known:
        return
    bias = [r["bias"] for r in known]
    print(f"achieved - predicted, in standard deviations: {np.mean(bias):+.3f} (tables: {np.std(bias):.3f})", end="")
    covered = [r["covered"] for r in known if "covered" in r]
    if covered:
        print(f"; the 80 % interval covers in {100 * np.mean(covered):.0f} % of {len(covered)} tables, "
              f"half width {np.median([r['half_width'] for r in known if 'covered' in r]):.2f}", end="")
    print()


def say_summary(rows, methods):
    whole = {at: row for at, row in rows.items() if all(m in row for m in methods)}
    if not whole:
        return 0
    for what in ("max", "median"):
        mean = {m: np.mean([ranks(row, what)[m] for row in whole.values()]) for m in methods}
        print(f"mean rank of the {what:7}", " ".join(f"{m} {v:.2f} " for m, v in sorted(mean.items(), key=lambda p: p[1])))
    below = [at for at, r in whole.items() if "n2ce" in r and "random" in r and r["n2ce"]["max"] < r["random"]["max"]]
    print(f"{len(whole)} tables; n2ce's best below that of random designs in {len(below)}:", *below)
    say_predictions([row["n2ce"] for row in whole.values() if "n2ce" in row])
    return len(below)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tables", help="names, comma separated; default: all")
    p.add_argument("--quick", action="store_true", help="eight tables, one seed")
    p.add_argument("--kept", action="store_true", help="the tables that no setting was chosen on")
    p.add_argument("--fresh", action="store_true", help="those that were written when all settings stood")
    p.add_argument("--later", action="store_true", help="those that were written after these, to judge predictions")
    p.add_argument("--last", action="store_true", help="the last: nothing was chosen on any draw of them")
    p.add_argument("--data", type=pathlib.Path, help="folder with real tables, in its folder anomaly")
    p.add_argument("--methods", default=",".join(METHODS))
    p.add_argument("--count", type=int, default=128)
    p.add_argument("--seeds", type=int)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--options", default="", help="more options of n2ce optimize")
    p.add_argument("--program", default=os.environ.get("N2CE_BIN", str(ROOT / "build" / "n2ce")))
    p.add_argument("--cache", type=pathlib.Path, default=CACHE)
    p.add_argument("--summary", action="store_true", help="what is known already")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    names = list(tables.LAST if a.last else tables.LATER if a.later else tables.FRESH if a.fresh else tables.KEPT if a.kept else tables.QUICK if a.quick else tables.TABLES)
    names += [f"real-{t}" for t in tables.REAL] if a.data and not (a.quick or a.kept or a.fresh or a.later or a.last) else []
    a.tables = a.tables.split(",") if a.tables else names
    a.seeds = a.seeds or (1 if a.quick else 2)
    return a


def main():
    a = arguments()
    methods, cache, rows = a.methods.split(","), read_cache(a.cache), {}
    if not a.json:
        print(f"{'table':18}seed " + "".join(f"{m:>14} " for m in methods) + "    s")
    for name in a.tables:
        for seed in range(a.seed, a.seed + a.seeds):
            found = {m: result_of(key_of(name, seed, m, a), cache, a) for m in methods}
            rows[name, seed] = row = {m: r for m, r in found.items() if r}
            if a.json:
                for r in row.values():
                    print(json.dumps(r), flush=True)
            elif row:
                say_row(name, seed, row, methods)
    below = 0 if a.json else say_summary(rows, methods)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
