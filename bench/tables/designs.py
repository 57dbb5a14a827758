"""Tables of designs whose truth is known: functions drawn by a name and a seed, and real tables.

    table = make("bumps-6", seed)     or make("real-Wilt", seed, folder of data)
    table.space                       ("number", low, high), ("whole", low, high) or ("level", n) a column
    table.seen, table.values          rows as a program may see them: the best, by their noisy values, are hidden
    table.truth(rows)                 what rows are worth, without noise
    table.scale(worth)                0: a row by chance, 1: the best row of all, hidden ones too

A real table has no function: a forest on all of its rows, hidden ones too, says what a row is worth. The value is one
of its columns, as the name says, and the others are the design.
"""
import math
import zlib

import numpy as np
from formulas import FORMULAS
from formulas_last import LAST as LAST_FORMULAS
from formulas_later import LATER as LATER_FORMULAS


class Table:
    def __init__(self, space, truth, rows, noisy, hidden, rng):
        self.space, self.truth = space, truth
        worth = truth(rows)
        values = noisy(rng, worth)
        order = np.argsort(-values, kind="stable")
        seen = np.sort(order[int(hidden * len(rows)):])
        self.seen, self.values = rows[seen], values[seen]
        self.middle, self.best, self.hidden = worth.mean(), worth.max(), hidden
        self.spread = self.values.std()
        self.rng = rng

    def scale(self, worth):
        return (worth - self.middle) / (self.best - self.middle)

    def chance(self, n):
        out = []
        for s in self.space:
            if s[0] == "number":
                out.append(self.rng.uniform(s[1], s[2], n))
            else:
                out.append(self.rng.integers(0, s[1], n) if s[0] == "level" else self.rng.integers(s[1], s[2] + 1, n))
        return np.column_stack(out).astype(float)


# ---- functions of numbers in the unit cube ---------------------------------------------------------------


def monotone(rng, d):
    """Powers of shifted columns, a few of which matter, over one plus others: flows, circuits, pistons."""
    power = rng.permutation(rng.uniform(0.6, 1.2, d) * 0.5 ** np.arange(d)) * rng.choice([-1, 1], d)
    shift, weight = rng.uniform(0.4, 1.5, d), rng.uniform(0, 1, d) ** 4
    up = rng.random(d) < 0.5

    def truth(u):
        top = np.exp((np.log(u + shift) * power).sum(1))
        return top / (1 + (np.where(up, u, 1 - u) * weight).sum(1))

    return truth


def bumps(rng, d):
    """A few hills of different heights, narrow along some columns."""
    n = rng.integers(3, 7)
    centre, height = rng.uniform(0.1, 0.9, (n, d)), np.sort(rng.uniform(0.5, 3, n))
    narrow = rng.choice([0.3, 1.0, 3.0, 8.0], (n, d)) * min(1, 8 / d)

    def truth(u):
        away = ((u[:, None, :] - centre) ** 2 * narrow).sum(2)
        return (height * np.exp(-away)).sum(1)

    return truth


def ripples(rng, d):
    """A bowl with waves on it."""
    peak, weight = rng.uniform(0.15, 0.85, d), rng.uniform(0.3, 1, d)
    often, deep = rng.uniform(2, 5), rng.uniform(0.02, 0.12)

    def truth(u):
        away = u - peak
        return -(weight * away ** 2).sum(1) + deep * np.cos(2 * math.pi * often * away).sum(1) / math.sqrt(d)

    return truth


def valleys(rng, d):
    """A curved ridge: each column must fit the square of the one before; values fall off steeply."""
    order, wide, steep = rng.permutation(d), rng.uniform(1.2, 2.0), rng.uniform(3, 30)

    def truth(u):
        v = (2 * u[:, order] - 1) * wide
        off = v[:, 1:] - v[:, :-1] ** 2
        return -(steep * off ** 2 + (v[:, :-1] - 1) ** 2).sum(1)

    return truth


def waves(rng, d):
    """Half of the columns do nothing; sines of products, squares and lines of the others."""
    live = rng.permutation(d)[:max(3, d // 2)]
    pairs = [(*rng.choice(live, 2, replace=False), rng.uniform(1, 3)) for _ in range(len(live))]
    line, square = rng.normal(0, 1, d), rng.normal(0, 2, d)

    def truth(u):
        y = sum(np.sin(math.pi * u[:, i] * u[:, j] * w) for i, j, w in pairs)
        return y + u[:, live] @ line[live] * 0.7 + ((u[:, live] - 0.5) ** 2) @ square[live]

    return truth


def network(rng, d):
    """A small network by chance."""
    a, b = rng.normal(0, 2.5 / math.sqrt(d), (d, 12)), rng.normal(0, 1, 12)
    c, e = rng.normal(0, 1 / math.sqrt(12), (12, 6)), rng.normal(0, 1, 6)

    def truth(u):
        return np.tanh(2 * np.tanh((2 * u - 1) @ a + b) @ c) @ e

    return truth


def steps(rng, d):
    """Thresholds of single columns and of pairs: nothing is smooth."""
    cut, size = rng.uniform(0.15, 0.85, (4, d)), rng.normal(0, 1, (4, d))
    pairs = [(*rng.choice(d, 2, replace=False), *rng.uniform(0.2, 0.8, 2), rng.normal(0, 1.5)) for _ in range(2 * d)]

    def truth(u):
        y = ((u[:, None, :] > cut) * size).sum((1, 2))
        return y + sum(w * ((u[:, i] > s) & (u[:, j] > t)) for i, j, s, t, w in pairs)

    return truth


def field(rng, d):
    """A draw of a smooth random field, rougher along some columns."""
    often = rng.normal(0, 1, (400, d)) * rng.choice([0.5, 1.5, 3.0], d) * min(1, math.sqrt(6 / d))
    phase = rng.uniform(0, 2 * math.pi, 400)

    def truth(u):
        return np.cos(u @ often.T + phase).sum(1) * math.sqrt(2 / 400)

    return truth


def skewed(rng, d):
    """The exponential of such a field: most values are small."""
    inner = field(rng, d)
    return lambda u: np.exp(0.5 * inner(u))


def functions(rng, family, d, rows, noise, hidden):
    """Columns of several units; noise in standard deviations of the truth."""
    inner = family(rng, d)
    low = rng.uniform(-50, 50, d) * (rng.random(d) < 0.7)
    wide = 10 ** rng.uniform(-1, 2.5, d)
    u = rng.random((rows, d))
    x = low + wide * u
    sd = inner(u).std()
    return Table([("number", a, a + w) for a, w in zip(low, wide)], lambda v: inner((v - low) / wide), x,
                 lambda r, y: y + noise * sd * r.normal(size=len(y)), hidden, rng)


def formula(rng, name, d, rows, noise, hidden):
    """One of formulas.py; the columns beyond its own do nothing."""
    return functions(rng, lambda r, n: {**FORMULAS, **LATER_FORMULAS, **LAST_FORMULAS}[name], d, rows, noise, hidden)


# ---- columns of several kinds -------------------------------------------------------------------------------


def mixed(rng, numbers, wholes, levels, pairs, rows, noise, hidden):
    """Peaks along numbers, effects of levels, and products of pairs of columns."""
    space = [("number", 0.0, 10 ** rng.uniform(-1, 2)) for _ in range(numbers)]
    space += [("whole", 0, int(rng.integers(5, 41))) for _ in range(wholes)]
    space += [("level", int(rng.integers(3, 9))) for _ in range(levels)]
    n = len(space)
    peak, weight = rng.uniform(0.1, 0.9, n), rng.exponential(1, n)
    effect = [rng.normal(0, 0.5, s[1] if s[0] == "level" else 1) for s in space]
    both = [(*rng.choice(n, 2, replace=False), rng.normal(0, 1.5)) for _ in range(pairs)]

    def part(j, v):
        if space[j][0] == "level":
            return effect[j][v.astype(int)]
        return 0.5 - 4 * ((v - space[j][1]) / (space[j][2] - space[j][1]) - peak[j]) ** 2

    def truth(x):
        parts = [part(j, x[:, j]) for j in range(n)]
        return sum(w * p for w, p in zip(weight, parts)) + sum(w * parts[i] * parts[j] for i, j, w in both)

    shell = Table.__new__(Table)
    shell.space, shell.rng = space, rng
    x = shell.chance(rows)
    sd = truth(x).std()
    return Table(space, truth, x, lambda r, y: y + noise * sd * r.normal(size=len(y)), hidden, rng)


def heavy(rng, *rest):
    """The logarithm is what is simple, and one value in fifty is off by a factor of e^6."""
    t = mixed(rng, 5, 1, 2, 4, 4000, 0, 0.0)
    inner, sd = t.truth, t.values.std()

    def noisy(r, y):
        wild = 6 * r.choice([-1, 1], len(y)) * (r.random(len(y)) < 0.02)
        return y * np.exp(r.normal(0, 0.3, len(y)) + wild)

    return Table(t.space, lambda x: np.exp(1.5 * inner(x) / sd), t.seen, noisy, 0.0, rng)


def recipe(rng, parts, rows, noise, hidden):
    """Shares of a mixture: they add up to 100, most are 0, and what does not add up is worthless."""
    good = rng.normal(0, 1, parts)
    pairs = [(*rng.choice(parts, 2, replace=False), rng.normal(0, 12)) for _ in range(16)]
    x = np.zeros((rows, parts))
    for row in x:
        used = rng.choice(parts, rng.integers(2, 6), replace=False)
        size = rng.exponential(1, len(used))
        row[used] = np.round(100 * size / size.sum(), 1)

    def truth(v):
        share = v / 100
        off = share.sum(1) - 1
        return share @ good - 40 * off ** 2 + sum(w * share[:, i] * share[:, j] for i, j, w in pairs)

    return Table([("number", 0.0, 100.0)] * parts, truth, x,
                 lambda r, y: y + noise * r.normal(size=len(y)), hidden, rng)


# ---- real tables ---------------------------------------------------------------------------------------------


def real(rng, folder, name, column, hidden):
    from sklearn.ensemble import RandomForestRegressor
    rows = np.load(folder / "anomaly" / f"{name}.npy")[:, :-1].astype(float)
    rows = rows[rng.permutation(len(rows))[:6000]]
    y, x = rows[:, column], np.delete(rows, column, 1)
    x = x[:, x.std(0) > 0]
    forest = RandomForestRegressor(100, random_state=0).fit(x, y)
    space = [("whole" if (c == np.round(c)).all() else "number", c.min(), c.max()) for c in x.T]
    return Table(space, forest.predict, x, lambda r, worth: y, hidden, rng)


def shipped(rng, name, column, hidden):
    """A table that comes with scikit-learn; the value is its target, or one of its columns."""
    import sklearn.datasets
    from sklearn.ensemble import RandomForestRegressor
    given = getattr(sklearn.datasets, f"load_{name}")()
    x, y = given.data.astype(float), given.target.astype(float)
    if column >= 0:
        y, x = x[:, column], np.delete(x, column, 1)
    forest = RandomForestRegressor(100, random_state=0).fit(x, y)
    space = [("whole" if (c == np.round(c)).all() else "number", c.min(), c.max()) for c in x.T]
    return Table(space, forest.predict, x, lambda r, worth: y, hidden, rng)


# ---- the tables by their names ---------------------------------------------------------------------------------

TABLES = {
    "monotone-6": (functions, monotone, 6, 2000, 0.05, 0.2),
    "monotone-8": (functions, monotone, 8, 2000, 0.05, 0.2),
    "monotone-10": (functions, monotone, 10, 500, 0.1, 0.3),
    "monotone-7": (functions, monotone, 7, 5000, 0.0, 0.1),
    "monotone-15": (functions, monotone, 15, 1000, 0.5, 0.2),
    "bumps-4": (functions, bumps, 4, 300, 0.05, 0.2),
    "bumps-6": (functions, bumps, 6, 2000, 0.05, 0.2),
    "bumps-9": (functions, bumps, 9, 10000, 0.2, 0.1),
    "bumps-7": (functions, bumps, 7, 1000, 1.0, 0.2),
    "ripples-10": (functions, ripples, 10, 2000, 0.05, 0.2),
    "ripples-5": (functions, ripples, 5, 1000, 0.0, 0.05),
    "ripples-20": (functions, ripples, 20, 20000, 0.1, 0.2),
    "ripples-8": (functions, ripples, 8, 400, 0.2, 0.4),
    "valleys-4": (functions, valleys, 4, 500, 0.05, 0.2),
    "valleys-8": (functions, valleys, 8, 2000, 0.05, 0.2),
    "valleys-30": (functions, valleys, 30, 5000, 0.1, 0.3),
    "valleys-12": (functions, valleys, 12, 3000, 1.0, 0.2),
    "waves-5": (functions, waves, 5, 1000, 0.1, 0.2),
    "waves-10": (functions, waves, 10, 2000, 0.05, 0.2),
    "waves-20": (functions, waves, 20, 8000, 0.5, 0.1),
    "mixed": (mixed, 5, 2, 2, 6, 5000, 0.3, 0.0),
    "mixed-hidden": (mixed, 4, 2, 2, 6, 2000, 0.1, 0.2),
    "levels": (mixed, 1, 0, 12, 20, 6000, 0.2, 0.1),
    "heavy": (heavy,),
    "recipe": (recipe, 12, 5000, 0.1, 0.1),
}
# No setting of the program was chosen on these.
KEPT = {
    "borehole": (formula, "borehole", 8, 2000, 0.05, 0.2),
    "circuit": (formula, "circuit", 6, 1000, 0.1, 0.3),
    "piston": (formula, "piston", 7, 2000, 0.05, 0.2),
    "wing": (formula, "wing", 10, 5000, 0.3, 0.1),
    "arm": (formula, "arm", 8, 4000, 0.1, 0.2),
    "hartmann": (formula, "hartmann", 6, 2000, 0.05, 0.2),
    "hartmann-few": (formula, "hartmann", 6, 400, 0.2, 0.1),
    "ackley": (formula, "ackley", 10, 2000, 0.05, 0.2),
    "rastrigin": (formula, "rastrigin", 5, 3000, 0.1, 0.1),
    "rosenbrock": (formula, "rosenbrock", 6, 2000, 0.05, 0.2),
    "rosenbrock-wide": (formula, "rosenbrock", 20, 5000, 0.1, 0.3),
    "friedman": (formula, "friedman", 10, 600, 0.3, 0.4),
    "friedman-noisy": (formula, "friedman", 15, 2000, 1.0, 0.2),
    "levy": (formula, "levy", 8, 1000, 0.0, 0.2),
    "borehole-many": (formula, "borehole", 30, 20000, 0.5, 0.05),
    "circuit-noisy": (formula, "circuit", 10, 3000, 1.0, 0.2),
    "diabetes": (shipped, "diabetes", -1, 0.3),
    "wine": (shipped, "wine", 0, 0.3),
    "breast-cancer": (shipped, "breast_cancer", 3, 0.3),
    "breast-texture": (shipped, "breast_cancer", 1, 0.3),
}
# Written when all rules stood, for judging only.
FRESH = {
    "spill": (formula, "spill", 4, 2000, 0.05, 0.2),
    "sulfur": (formula, "sulfur", 9, 2000, 0.05, 0.2),
    "column": (formula, "column", 7, 2000, 0.05, 0.2),
    "beam": (formula, "beam", 5, 1000, 0.1, 0.3),
    "reducer": (formula, "reducer", 7, 2000, 0.05, 0.2),
    "reactor": (formula, "reactor", 5, 600, 0.2, 0.1),
    "currin": (formula, "currin", 4, 500, 0.1, 0.2),
    "welch": (formula, "welch", 20, 2000, 0.05, 0.2),
    "welch-noisy": (formula, "welch", 20, 5000, 0.7, 0.1),
    "styblinski": (formula, "styblinski", 6, 2000, 0.05, 0.2),
    "griewank": (formula, "griewank", 5, 3000, 0.1, 0.05),
    "michalewicz": (formula, "michalewicz", 5, 2000, 0.05, 0.2),
    "zakharov": (formula, "zakharov", 8, 2000, 0.05, 0.2),
    "sobol": (formula, "sobol", 8, 2000, 0.05, 0.2),
    "sobol-few": (formula, "sobol", 10, 400, 0.3, 0.4),
    "ishigami": (formula, "ishigami", 3, 1000, 0.3, 0.2),
    "styblinski-all": (formula, "styblinski", 5, 1500, 0.2, 0.0),
    "sulfur-noisy": (formula, "sulfur", 12, 3000, 1.0, 0.0),
    "mixed-fresh": (mixed, 3, 3, 3, 8, 3000, 0.2, 0.2),
    "mixed-few": (mixed, 4, 1, 2, 5, 500, 0.3, 0.1),
}
# Written later still, for judging predictions.
LATER = {
    "schwefel": (formula, "schwefel", 5, 2000, 0.05, 0.2),
    "shekel": (formula, "shekel", 4, 1500, 0.1, 0.0),
    "trid": (formula, "trid", 6, 2000, 0.05, 0.3),
    "dixon": (formula, "dixon", 6, 1000, 0.1, 0.2),
    "powell": (formula, "powell", 8, 3000, 0.05, 0.2),
    "goldstein": (formula, "goldstein", 4, 800, 0.2, 0.1),
    "camel": (formula, "camel", 3, 400, 0.2, 0.2),
    "colville": (formula, "colville", 5, 1500, 0.3, 0.3),
    "salomon": (formula, "salomon", 5, 2500, 0.1, 0.1),
    "vessel": (formula, "vessel", 6, 1000, 0.1, 0.2),
    "exchanger": (formula, "exchanger", 6, 600, 0.3, 0.2),
    "enzyme": (formula, "enzyme", 6, 2000, 0.05, 0.05),
    "growth": (formula, "growth", 7, 2000, 0.2, 0.1),
    "solar": (formula, "solar", 5, 1000, 0.05, 0.2),
    "pump": (formula, "pump", 6, 1500, 0.5, 0.1),
    "tablet": (formula, "tablet", 6, 800, 0.1, 0.2),
    "alloy": (formula, "alloy", 8, 3000, 0.3, 0.2),
    "lens": (formula, "lens", 5, 2000, 0.2, 0.05),
    "network-8": (functions, network, 8, 2000, 0.1, 0.2),
    "network-15": (functions, network, 15, 4000, 0.5, 0.2),
    "steps-8": (functions, steps, 8, 2000, 0.1, 0.2),
    "field-5": (functions, field, 5, 700, 0.1, 0.2),
    "field-10": (functions, field, 10, 3000, 0.3, 0.1),
    "skewed-6": (functions, skewed, 6, 1500, 0.1, 0.2),
    "mixed-later": (mixed, 4, 2, 3, 8, 1500, 0.5, 0.1),
}
# The last: written before the predictions that they judge.
LAST = {
    "park": (formula, "park", 5, 1000, 0.1, 0.2),
    "franke": (formula, "franke", 4, 500, 0.1, 0.2),
    "langermann": (formula, "langermann", 4, 1500, 0.2, 0.1),
    "alpine": (formula, "alpine", 5, 2500, 0.1, 0.1),
    "qing": (formula, "qing", 6, 2000, 0.05, 0.2),
    "bratley": (formula, "bratley", 8, 1000, 0.3, 0.2),
    "tilted": (formula, "tilted", 7, 800, 0.05, 0.3),
    "fermenter": (formula, "fermenter", 6, 2000, 0.1, 0.2),
    "catalyst": (formula, "catalyst", 6, 1500, 0.2, 0.1),
    "turbine": (formula, "turbine", 5, 1000, 0.1, 0.2),
    "spring": (formula, "spring", 5, 2000, 0.3, 0.2),
    "welded": (formula, "welded", 4, 600, 0.1, 0.3),
    "crop": (formula, "crop", 8, 3000, 0.2, 0.1),
    "synergy": (formula, "synergy", 4, 400, 0.4, 0.2),
    "queue": (formula, "queue", 6, 1200, 0.1, 0.0),
    "filter": (formula, "filter", 5, 2500, 0.1, 0.2),
    "fin": (formula, "fin", 6, 1000, 0.5, 0.1),
    "polymer": (formula, "polymer", 7, 2000, 0.1, 0.2),
    "sharpe": (formula, "sharpe", 6, 1500, 0.7, 0.1),
    "switches": (formula, "switches", 10, 4000, 0.2, 0.2),
}
REAL = {"Wilt": 0, "fault": 24, "Cardiotocography": 7, "magic.gamma": 0, "letter": 3, "Pima": 1, "pendigits": 5,
        "annthyroid": 1}
QUICK = ("monotone-8", "monotone-10", "bumps-4", "bumps-6", "ripples-10", "valleys-8", "waves-10", "mixed-hidden")


def make(name, seed, folder=None):
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if name.startswith("real-"):
        return real(rng, folder, name[5:], REAL[name[5:]], 0.3)
    maker, *rest = {**TABLES, **KEPT, **FRESH, **LATER, **LAST}[name]
    return maker(rng, *rest)
