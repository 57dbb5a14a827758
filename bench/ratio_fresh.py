"""Problems that were added after the first constants of the program were chosen: mixtures, heavy tails, bounded supports, rings and moons, counts, categories,
angles, unequal samples, many columns with few rows, products hidden among many columns. `ratio.py --group fresh` runs them. They are no longer
unseen: t against Laplace, arcsine, t in 20 and 100 columns, Weibull and Dirichlet prompted parts of the program later on."""
import functools

import numpy as np
from scipy.special import logsumexp
from scipy import stats


class Law:
    """draw(rng, n) and, up to what both laws of a problem have in common, log_density(x)."""

    def __init__(self, draw, log_density):
        self.draw, self.log_density = draw, log_density


def columns(*kinds):
    """Independent columns, each by a distribution of scipy.stats."""
    def log_density(x):
        return sum((k.logpdf if hasattr(k.dist, "pdf") else k.logpmf)(x[:, j]) for j, k in enumerate(kinds))
    return Law(lambda rng, n: np.column_stack([k.rvs(n, random_state=rng) for k in kinds]).astype(float), log_density)


def mixture(weights, centres, widths):
    weights, centres, widths = np.asarray(weights), np.asarray(centres, float), np.asarray(widths, float)
    d = centres.shape[1]

    def draw(rng, n):
        which = rng.choice(len(weights), n, p=weights)
        return centres[which] + widths[which][:, None] * rng.standard_normal((n, d))

    def log_density(x):
        return logsumexp([np.log(w) - ((x - c) ** 2).sum(1) / (2 * s * s) - d * np.log(s * np.sqrt(2 * np.pi)) for w, c, s in
                          zip(weights, centres, widths)], axis=0)
    return Law(draw, log_density)


def ring(shape, mean):
    """Radii by a gamma distribution, every angle alike; the part 1 / 2 pi r cancels."""
    radius = stats.gamma(shape, scale=mean / shape)

    def draw(rng, n):
        r, angle = radius.rvs(n, random_state=rng), rng.uniform(0, 2 * np.pi, n)
        return np.c_[r * np.cos(angle), r * np.sin(angle)]
    return Law(draw, lambda x: radius.logpdf(np.hypot(x[:, 0], x[:, 1])))


def moon(turned):
    angle = np.pi * (np.arange(20) + .5) / 20
    x, y = np.cos(angle), np.sin(angle)
    return mixture(np.full(20, .05), np.c_[1 - x, .4 - y] if turned else np.c_[x, y], np.full(20, .3))


def tilted(base, log_tilt, top):
    """base times exp(log_tilt), which is at most top and has the mean 1 under base."""
    def draw(rng, n):
        rows = []
        while sum(map(len, rows)) < n:
            x = base.draw(rng, 2 * n)
            rows.append(x[np.log(rng.uniform(size=len(x))) < log_tilt(x) - top])
        return np.vstack(rows)[:n]
    return Law(draw, lambda x: base.log_density(x) + log_tilt(x))


def with_zeros(share, scale):
    """Two columns that are 0 with a probability, else exponential."""
    positive = stats.expon(scale=scale)

    def draw(rng, n):
        return np.where(rng.uniform(size=(n, 2)) < share, 0, positive.rvs((n, 2), random_state=rng))

    def log_density(x):
        return np.where(x == 0, np.log(share), np.log(1 - share) + positive.logpdf(x)).sum(1)
    return Law(draw, log_density)


def rounded(mean, sd, step):
    law = stats.norm(mean, sd)
    return Law(lambda rng, n: step * np.round(law.rvs((n, 2), random_state=rng) / step),
               lambda x: np.log(law.cdf(x + step / 2) - law.cdf(x - step / 2)).sum(1))


def levels(table):
    """Two columns of levels with a table of probabilities."""
    p = np.asarray(table, float) / np.sum(table)

    def draw(rng, n):
        return np.c_[np.unravel_index(rng.choice(p.size, n, p=p.ravel()), p.shape)].astype(float)
    return Law(draw, lambda x: np.log(p[x[:, 0].astype(int), x[:, 1].astype(int)]))


def dirichlet(alpha):
    """The first of its columns but one, so that none is a function of the others."""
    def log_density(x):
        return stats.dirichlet(alpha).logpdf(np.c_[x, 1 - x.sum(1)].T)
    return Law(lambda rng, n: rng.dirichlet(alpha, n)[:, :-1], log_density)


def normal(d, mean=0.0, sd=1.0):
    return columns(*[stats.norm(mean, sd)] * d)


def signs_of_two(x):
    return np.log(2) - np.logaddexp(0, -3 * x[:, 0] * x[:, 1])


def fresh_pairs():
    """name: (rows of the numerator, of the denominator, numerator, denominator, options of the program)"""
    t = stats.t
    return {
        "unequal mixture": (1500, 1500, mixture([.5, .3, .2], [[0, 0], [2, 1], [-1, 2]], [.5, .7, .4]),
                            mixture([.3, .7], [[.5, .5], [0, 2]], [1, .8]), ""),
        "mixtures in 3": (1000, 1000, mixture([.5, .5], [[1, 1, 0], [-1, -1, 0]], [.8, .8]),
                          mixture([.5, .5], [[1, -1, 0], [-1, 1, 0]], [.8, .8]), ""),
        "t against Laplace": (1000, 1000, columns(*[t(3)] * 4), columns(*[stats.laplace(.3, 1.2)] * 4), ""),
        "t of 1.5 degrees": (1000, 1000, columns(t(1.5), t(1.5)), columns(t(1.5, .7), t(1.5, .7)), ""),
        "t in 20": (1500, 1500, columns(*[t(4, .15)] * 20), columns(*[t(4)] * 20), ""),
        "same t": (800, 800, columns(*[t(2)] * 4), columns(*[t(2)] * 4), ""),
        "gamma": (1000, 1000, columns(*[stats.gamma(2)] * 3), columns(*[stats.gamma(3, scale=.8)] * 3), ""),
        "Weibull": (1000, 1000, columns(stats.weibull_min(1.7)), columns(stats.expon()), ""),
        "arcsine": (1000, 1000, columns(*[stats.beta(.6, .6)] * 2), columns(*[stats.beta(1.5, 1.5)] * 2), ""),
        "Dirichlet": (1000, 1000, dirichlet([2, 3, 4]), dirichlet([1, 1, 1]), ""),
        "rings": (1000, 1000, ring(20, 1.5), ring(8, 2), ""),
        "other moons": (1000, 1000, moon(False), moon(True), ""),
        "counts": (1000, 1000, columns(*[stats.poisson(3)] * 3), columns(*[stats.nbinom(4, 4 / 7)] * 3), ""),
        "levels": (1000, 1000, levels([[4, 1, 2], [1, 3, 1], [2, 1, 5], [1, 1, 1]]), levels([[2, 2, 2], [1, 2, 2], [3, 2, 2], [1, 2, 1]]),
                   "--categorical 0,1"),
        "zeros": (1000, 1000, with_zeros(.3, 1), with_zeros(.5, 1.3), ""),
        "rounded": (1000, 1000, rounded(.4, 1, .5), rounded(0, 1.2, .5), ""),
        "angles": (1000, 1000, columns(stats.vonmises(2), stats.vonmises(1)), columns(stats.vonmises(1, np.pi), stats.vonmises(1, 1.5)), ""),
        "200 against 4000": (200, 4000, mixture([.5, .5], [[1, 0], [-1, 0]], [.5, .5]), normal(2, 0, 1.1), ""),
        "4000 against 200": (4000, 200, mixture([.5, .5], [[1, 0], [-1, 0]], [.6, .6]), normal(2, 0, 1.1), ""),
        "t in 100": (500, 500, columns(*[t(5, .1)] * 100), columns(*[t(5)] * 100), ""),
        "signs in 50": (2000, 2000, tilted(normal(50), signs_of_two, np.log(2)), normal(50), ""),
        "mixed kinds": (1000, 1000, columns(stats.lognorm(1), stats.poisson(4), stats.bernoulli(.3)),
                        columns(stats.lognorm(.8, scale=1.4), stats.poisson(5), stats.bernoulli(.5)), ""),
    }


# ---- mutual information: draw(rng, n) -> x, y; the log ratio of rows ----------------------------------------------

def student_pair(rng, n, df=3, rho=.5):
    e = rng.standard_normal((n, 2))
    e[:, 1] = rho * e[:, 0] + np.sqrt(1 - rho ** 2) * e[:, 1]
    both = e / np.sqrt(rng.chisquare(df, (n, 1)) / df)
    return both[:, :1], both[:, 1:]


def student_ratio(x, y, df=3, rho=.5):
    joint = stats.multivariate_t([0, 0], [[1, rho], [rho, 1]], df).logpdf(np.c_[x, y])
    return joint - stats.t(df).logpdf(x[:, 0]) - stats.t(df).logpdf(y[:, 0])


def gamma_rate(rng, n):
    """y is exponential with the rate x, which has a gamma distribution: y alone is Lomax."""
    x = rng.gamma(2, size=(n, 1))
    return x, rng.exponential(size=(n, 1)) / x


def gamma_rate_ratio(x, y):
    return (np.log(x) - x * y - stats.lomax(2).logpdf(y))[:, 0]


def box(rng, n):
    x = rng.uniform(size=(n, 1))
    return x, x + .5 * rng.uniform(size=(n, 1))


def box_ratio(x, y):
    share = np.minimum(y, 1) - np.maximum(y - .5, 0)
    return -np.log(share[:, 0])


def angle_pair(rng, n):
    x = rng.uniform(-np.pi, np.pi, (n, 1))
    return x, (x + rng.vonmises(0, 4, (n, 1)) + np.pi) % (2 * np.pi) - np.pi


def angle_ratio(x, y):
    return (stats.vonmises(4).logpdf(y - x) + np.log(2 * np.pi))[:, 0]


LEVEL_MEANS = np.array([-2, -.5, 0, 1, 2.5])


def level_pair(rng, n):
    x = rng.integers(5, size=(n, 1)).astype(float)
    return x, LEVEL_MEANS[x.astype(int)] + .6 * rng.standard_normal((n, 1))


def level_ratio(x, y):
    own = stats.norm(LEVEL_MEANS[x[:, 0].astype(int)], .6).logpdf(y[:, 0])
    return own - logsumexp(stats.norm(LEVEL_MEANS[None], .6).logpdf(y), axis=1) + np.log(5)


def poisson_pair(rng, n):
    x = rng.gamma(3, size=(n, 1))
    return x, rng.poisson(x).astype(float)


def poisson_ratio(x, y):
    return (stats.poisson(x).logpmf(y) - stats.nbinom(3, .5).logpmf(y))[:, 0]


def hidden_product(rng, n):
    """y is x_1 x_2 with noise, among 50 columns of x."""
    x = rng.standard_normal((n, 50))
    return x, x[:, :1] * x[:, 1:2] + .4 * rng.standard_normal((n, 1))


PRODUCTS = np.prod(np.random.default_rng(5).standard_normal((2, 4000)), axis=0)


def hidden_product_ratio(x, y):
    own = stats.norm(x[:, 0] * x[:, 1], .4).logpdf(y[:, 0])
    blocks = np.array_split(y[:, 0], max(1, len(y) // 2000))
    margin = np.concatenate([logsumexp(stats.norm(PRODUCTS[None], .4).logpdf(b[:, None]), axis=1) for b in blocks])
    return own - margin + np.log(len(PRODUCTS))


def wide_gauss(rng, n, rho=.3):
    x = rng.standard_normal((n, 20))
    return x, rho * x.sum(1, keepdims=True) / np.sqrt(20) + np.sqrt(1 - rho ** 2) * rng.standard_normal((n, 1))


def wide_gauss_ratio(x, y, rho=.3):
    mean = rho * x.sum(1) / np.sqrt(20)
    return stats.norm(mean, np.sqrt(1 - rho ** 2)).logpdf(y[:, 0]) - stats.norm.logpdf(y[:, 0])


def unrelated(rng, n):
    both = rng.standard_t(2.5, (n, 12))
    return both[:, :8], both[:, 8:]


def fresh_joints():
    """name: (rows, how to draw, log ratio of rows, options of the program)"""
    return {
        "t copula": (1000, student_pair, student_ratio, ""),
        "gamma rate": (1000, gamma_rate, gamma_rate_ratio, ""),
        "box": (1000, box, box_ratio, ""),
        "angle pair": (1000, angle_pair, angle_ratio, ""),
        "level pair": (1000, level_pair, level_ratio, "--categorical 0"),
        "Poisson pair": (1000, poisson_pair, poisson_ratio, ""),
        "product in 50": (3000, hidden_product, hidden_product_ratio, ""),
        "gauss 20 + 1": (600, wide_gauss, wide_gauss_ratio, ""),
        "unrelated": (800, unrelated, lambda x, y: np.zeros(len(x)), ""),
    }


@functools.lru_cache(None)
def mutual_information(name):
    _, draw, ratio, _ = fresh_joints()[name]
    n = 20_000 if "product" in name else 1_000_000
    return float(ratio(*draw(np.random.default_rng(3), n)).mean())
