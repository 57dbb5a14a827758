"""Patterns of one, two or three columns among others that say nothing, sharp ones mostly. They were written down when trees had come (docs/ratio.md), and one
draw of each was looked at before columns were looked for in more rows and products of columns came into intervals. `ratio.py --group hidden` runs them."""
import functools

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from ratio_fresh import Law, tilted

GRID = (np.arange(1500) + .5) / 1500


def normals(d):
    return Law(lambda rng, n: rng.standard_normal((n, d)), lambda x: -(x ** 2).sum(1) / 2)


def sign(v):
    return np.where(v > 0, 1.0, -1.0)


def step(d, which, share=.76):
    """Normal columns, rows with one sign of a function that is odd in a column seven times as often as those with the other."""
    return tilted(normals(d), lambda x: np.log1p(share * sign(which(x))), np.log1p(share))


def corner(d, at=.3, more=3.0):
    """Rows beyond a corner of the first two columns are three times as many."""
    p = stats.norm.sf(at) ** 2
    rest = np.log((1 - more * p) / (1 - p))
    return tilted(normals(d), lambda x: np.where((x[:, 0] > at) & (x[:, 1] > at), np.log(more), rest), np.log(more))


def ring(d, radius=1.2):
    """A ring in the first two columns, which have the variance 1 and no correlation."""
    angle, width = 2 * np.pi * np.arange(16) / 16, np.sqrt(1 - radius ** 2 / 2)
    centres = radius * np.c_[np.cos(angle), np.sin(angle)]

    def draw(rng, n):
        x = rng.standard_normal((n, d))
        x[:, :2] = centres[rng.integers(16, size=n)] + width * x[:, :2]
        return x

    def log_density(x):
        terms = [stats.norm.logpdf(x[:, :2], c, width).sum(1) for c in centres]
        return logsumexp(terms, axis=0) - np.log(16) + np.log(2 * np.pi) - (x[:, 2:] ** 2).sum(1) / 2
    return Law(draw, log_density)


def hidden_pairs():
    """name: (rows of the numerator, of the denominator, numerator, denominator, options of the program)"""
    return {
        "signs of two in 50": (2000, 2000, step(50, lambda x: x[:, 0] * x[:, 1]), normals(50), ""),
        "signs of three in 10": (2000, 2000, step(10, lambda x: x[:, 0] * x[:, 1] * x[:, 2]), normals(10), ""),
        "stripes in 6": (2500, 2500, step(6, lambda x: np.sin(2.5 * x[:, 0]) * np.sin(2.5 * x[:, 1])), normals(6), ""),
        "corner in 11": (2000, 2000, corner(11), normals(11), ""),
        "ring in 4": (1000, 1000, ring(4), normals(4), ""),
        "ring in 15": (2000, 2000, ring(15), normals(15), ""),
    }


# ---- mutual information: y = g(x) + sd e --------------------------------------------------------------------------

FUNCTIONS = {
    "switch in 12": (2000, 12, lambda x: np.where(x[:, 1] > 0, x[:, 0], -x[:, 0]), .5),
    "signs in 30": (2000, 30, lambda x: sign(x[:, 0] * x[:, 1]), .6),
    "step in 20": (1500, 20, lambda x: 1.5 * (x[:, 0] > .7), .4),
    "wave in 8": (1500, 8, lambda x: np.sin(4 * x[:, 0]), .3),
}


def noisy(g, d, sd):
    def draw(rng, n):
        x = rng.standard_normal((n, d))
        return x, (g(x) + sd * rng.standard_normal(n))[:, None]
    return draw


def noisy_ratio(g, d, sd):
    centres = np.quantile(g(np.random.default_rng(5).standard_normal((20000, d))), GRID)

    def ratio(x, y):
        blocks = np.array_split(y, max(1, len(y) // 500))
        margin = np.concatenate([logsumexp(stats.norm.logpdf(b, centres[None], sd), axis=1) for b in blocks]) - np.log(len(centres))
        return stats.norm.logpdf(y[:, 0], g(x), sd) - margin
    return ratio


def hidden_joints():
    """name: (rows, how to draw, log ratio of rows, options of the program)"""
    return {name: (rows, noisy(g, d, sd), noisy_ratio(g, d, sd), "") for name, (rows, d, g, sd) in FUNCTIONS.items()}


@functools.lru_cache(None)
def mutual_information(name):
    _, draw, ratio, _ = hidden_joints()[name]
    return float(np.mean([ratio(*draw(np.random.default_rng([6, k]), 5000)).mean() for k in range(10)]))
