#!/usr/bin/env python3
"""Tables of designs with a known truth: `n2ce optimize` against chance and against the best rows.

    ./run bench optimize [--json] [--tables a,b] [--seeds K] [--seed S] [--options "--prior gaussian"]

Every table is drawn here, by its name and the seed, from a function that the program never sees: it
gets rows and noisy values as a CSV file, and all its defaults. Its 256 proposals are then worth what
the function says, without noise, beside 256 designs by chance within the ranges of the columns, and
beside the 256 best rows tried again. Higher is better; `n2ce` has to be above both, in the best and in
the median. The program is $N2CE_BIN or build/n2ce. Nothing but Python is needed.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNT = 256


class Column:
    """A number ("real", "whole") or a category, with its range or its levels."""

    def __init__(self, name, kind, low=0.0, high=1.0, levels=()):
        self.name, self.kind, self.low, self.high, self.levels = name, kind, low, high, levels

    def draw(self, rng):
        if self.kind == "category":
            return rng.choice(self.levels)
        if self.kind == "whole":
            return rng.randint(int(self.low), int(self.high))
        return round(rng.uniform(self.low, self.high), 4)

    def read(self, text):
        return text if self.kind == "category" else float(text)

    def unit(self, value):
        return (value - self.low) / (self.high - self.low)


def columns_of(rng, reals, wholes, categories):
    out = []
    for i in range(reals):
        low = rng.uniform(-50, 50)
        out.append(Column(f"x{i}", "real", round(low, 2), round(low + rng.uniform(1, 100), 2)))
    for i in range(wholes):
        out.append(Column(f"n{i}", "whole", 0, rng.randint(5, 40)))
    for i in range(categories):
        out.append(Column(f"c{i}", "category", levels=[chr(97 + k) * 2 for k in range(rng.randint(3, 8))]))
    return out


class Truth:
    """Peaks along numbers, effects of levels, and products of pairs of columns."""

    def __init__(self, rng, columns, pairs):
        self.columns = columns
        self.peak = [rng.uniform(0.1, 0.9) for _ in columns]
        self.weight = [rng.expovariate(1) for _ in columns]
        self.level = [{v: rng.gauss(0, 0.5) for v in c.levels} for c in columns]
        some = range(len(columns))
        self.pairs = [(*rng.sample(some, 2), rng.gauss(0, 1.5)) for _ in range(pairs)]

    def part(self, j, value):
        if self.columns[j].kind == "category":
            return self.level[j][value]
        return 0.5 - 4 * (self.columns[j].unit(value) - self.peak[j]) ** 2

    def __call__(self, row):
        part = [self.part(j, v) for j, v in enumerate(row)]
        return (sum(w * p for w, p in zip(self.weight, part)) +
                sum(w * part[i] * part[j] for i, j, w in self.pairs))


class Table:
    def __init__(self, columns, truth, rows, noise, draw=None):
        self.columns, self.truth, self.rows, self.noise = columns, truth, rows, noise
        self.draw = draw or (lambda rng: [c.draw(rng) for c in columns])


def gauss(sd):
    return lambda rng, y: y + rng.gauss(0, sd)


def plain(rng, reals, wholes, categories, pairs, rows, noise):
    columns = columns_of(rng, reals, wholes, categories)
    return Table(columns, Truth(rng, columns, pairs), rows, noise)


def mixed(rng):
    return plain(rng, 5, 2, 2, 6, 5000, gauss(0.5))


def noisy(rng):
    return plain(rng, 4, 1, 2, 4, 4000, gauss(4))


def wide(rng):
    return plain(rng, 20, 5, 5, 20, 20000, gauss(1))


def levels(rng):
    return plain(rng, 1, 0, 12, 20, 8000, gauss(0.5))


def small(rng):
    return plain(rng, 5, 1, 2, 4, 1000, gauss(0.5))


def heavy(rng):
    """The logarithm is what is simple, and one value in fifty is off by a factor of e^6."""
    t = plain(rng, 5, 1, 2, 4, 5000, None)
    inner = t.truth
    t.truth = lambda row: math.exp(0.7 * inner(row))
    t.noise = lambda r, y: y * math.exp(r.gauss(0, 0.3) + (6 * r.choice([-1, 1]) if r.random() < 0.02 else 0))
    return t


def recipe(rng):
    """Shares of a mixture: they add up to 100, most are 0, and what does not add up is worthless."""
    parts = 12
    columns = [Column(f"p{i}", "real", 0, 100) for i in range(parts)]
    good = [rng.gauss(0, 1) for _ in range(parts)]
    pairs = [(*rng.sample(range(parts), 2), rng.gauss(0, 12)) for _ in range(16)]

    def truth(row):
        share = [v / 100 for v in row]
        off = sum(share) - 1
        return (sum(g * s for g, s in zip(good, share)) - 40 * off * off +
                sum(w * share[i] * share[j] for i, j, w in pairs))

    def draw(r):
        used = r.sample(range(parts), r.randint(2, 5))
        size = {i: r.expovariate(1) for i in used}
        total = sum(size.values())
        return [round(100 * size[i] / total, 1) if i in size else 0.0 for i in range(parts)]

    return Table(columns, truth, 6000, gauss(0.1), draw)


TABLES = {f.__name__: f for f in (mixed, noisy, wide, levels, small, heavy, recipe)}


def write_csv(path, table, rows, values):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow([c.name for c in table.columns] + ["y"])
        for row, y in zip(rows, values):
            out.writerow(list(row) + [repr(y)])


def run_program(table, rows, values, seed, options):
    with tempfile.TemporaryDirectory() as folder:
        given, got = os.path.join(folder, "designs.csv"), os.path.join(folder, "proposals.csv")
        write_csv(given, table, rows, values)
        program = os.environ.get("N2CE_BIN", str(ROOT / "build" / "n2ce"))
        start = time.monotonic()
        subprocess.run([program, "optimize", given, "--maximize", "y", "-q", str(COUNT), "--seed", str(seed),
                        "-o", got] + options, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        with open(got, newline="") as f:
            found = [[c.read(row[c.name]) for c in table.columns] for row in csv.DictReader(f)]
    return found, seconds


def judge(table, rows):
    worth = [table.truth(row) for row in rows]
    return max(worth), statistics.median(worth)


def run_table(name, seed, options):
    rng = random.Random(f"{name} {seed}")
    table = TABLES[name](rng)
    rows = [table.draw(rng) for _ in range(table.rows)]
    values = [table.noise(rng, table.truth(row)) for row in rows]
    found, seconds = run_program(table, rows, values, seed, options)
    best = sorted(range(len(rows)), key=lambda i: -values[i])[:COUNT]
    chance = [[c.draw(rng) for c in table.columns] for _ in range(COUNT)]
    return {"table": name, "seed": seed, "rows": table.rows, "columns": len(table.columns),
            "n2ce": judge(table, found), "random": judge(table, chance),
            "best rows": judge(table, [rows[i] for i in best]),
            "distinct": len({tuple(row) for row in found}), "seconds": round(seconds, 1)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tables", default=",".join(TABLES))
    p.add_argument("--seeds", type=int, default=2)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--options", default="", help="more options of n2ce optimize")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    below = 0
    if not a.json:
        print("table    seed    rows x columns   n2ce             best rows        random           distinct  s")
    for name in a.tables.split(","):
        for seed in range(a.seed, a.seed + a.seeds):
            r = run_table(name, seed, a.options.split())
            others = [r["best rows"], r["random"]]
            below += any(r["n2ce"][k] <= o[k] for o in others for k in range(2))
            if a.json:
                print(json.dumps(r), flush=True)
                continue
            shown = "".join(f"{m:7.2f} {d:7.2f}  " for m, d in [r["n2ce"]] + others)
            print(f"{name:8} {seed:4} {r['rows']:7} x {r['columns']:<7}  {shown} {r['distinct']:6} {r['seconds']:6.0f}",
                  flush=True)
    if below:
        print(f"{below} of the runs are not above both.", file=sys.stderr)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
