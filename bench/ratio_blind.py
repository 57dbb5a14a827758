"""Problems of the group `blind` of bench/ratio.py: made by someone who did not know how the program works, to judge it, and run
before anybody looked (docs/ratio.md). blind_pairs(): name: (rows, rows, law, law, options); blind_joints(): name: (rows, how to
draw, log ratio of rows, options)."""
import functools
import itertools

import numpy as np
from scipy import stats
from scipy.special import expit, gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

MANY = 2_000_000


class Law:
    """draw(rng, n) and, up to what both laws of a problem have in common, log_density(x)."""

    def __init__(self, draw, log_density):
        self.draw, self.log_density = draw, log_density


LOG2PI = np.log(2 * np.pi)


def lnorm(x, m=0.0, s=1.0):
    return -.5 * ((x - m) / s) ** 2 - np.log(s) - .5 * LOG2PI


def lt(x, df):
    return gammaln((df + 1) / 2) - gammaln(df / 2) - .5 * np.log(df * np.pi) - (df + 1) / 2 * np.log1p(x * x / df)


def mixture(weights, centres, widths):
    """Gaussians of their own widths (a number or one a column)."""
    weights, centres = np.asarray(weights, float), np.asarray(centres, float)
    widths = np.asarray(widths, float)
    widths = widths[:, None] * np.ones_like(centres) if widths.ndim == 1 else widths

    def draw(rng, n):
        which = rng.choice(len(weights), n, p=weights)
        return centres[which] + widths[which] * rng.standard_normal((n, centres.shape[1]))

    def log_density(x):
        return logsumexp([np.log(w) + lnorm(x, c, s).sum(1) for w, c, s in zip(weights, centres, widths)], axis=0)
    return Law(draw, log_density)


# ---- pairs ------------------------------------------------------------------------------------------------------

def cauchy(loc, scale, d):
    return Law(lambda r, n: loc + scale * r.standard_t(1, (n, d)), lambda x: -np.log1p(((x - loc) / scale) ** 2).sum(1) - d * np.log(scale))


def triangular(peak, d):
    return Law(lambda r, n: r.triangular(0, peak, 1, (n, d)),
               lambda x: np.log(np.where(x < peak, 2 * x / peak, 2 * (1 - x) / (1 - peak))).sum(1))


def truncnormal(mean, sd, d):
    a, b = ndtr(-mean / sd), ndtr((1 - mean) / sd)
    return Law(lambda r, n: mean + sd * ndtri(a + (b - a) * r.uniform(size=(n, d))),
               lambda x: (lnorm(x, mean, sd) - np.log(b - a)).sum(1))


def uniform(d):
    return Law(lambda r, n: r.uniform(size=(n, d)), lambda x: np.zeros(len(x)))


def thinned_uniform(d, density, top):
    """density(x) with respect to the uniform law, at most top."""
    def draw(r, n):
        rows = np.zeros((0, d))
        while len(rows) < n:
            x = r.uniform(size=(int(top * n) + 100, d))
            rows = np.vstack([rows, x[r.uniform(size=len(x)) * top < density(x)]])
        return rows[:n]
    return Law(draw, lambda x: np.log(density(x)))


def disc_density(x):
    inside = ((x[:, :2] - .5) ** 2).sum(1) < .35 ** 2
    area = np.pi * .35 ** 2
    return np.where(inside, 2, (1 - 2 * area) / (1 - area))


def board_density(x, k=5):
    dark = (np.floor(k * x[:, 0]) + np.floor(k * x[:, 1])) % 2 == 0
    share = 13 / 25
    return np.where(dark, 1.75, (1 - 1.75 * share) / (1 - share))


def winding(kappa):
    """A radius, an angle that turns with it (kappa > 0), and three t columns."""
    def draw(r, n):
        radius = r.gamma(9, 1 / 3, n)
        angle = 2 * radius + r.vonmises(0, kappa, n) if kappa else r.uniform(0, 2 * np.pi, n)
        return np.c_[radius * np.cos(angle), radius * np.sin(angle), r.standard_t(3, (n, 3))]

    def log_density(x):
        if not kappa:
            return np.zeros(len(x))
        return kappa * np.cos(np.arctan2(x[:, 1], x[:, 0]) - 2 * np.hypot(x[:, 0], x[:, 1])) - np.log(np.i0(kappa))
    return Law(draw, log_density)


CELL_MEANS = np.array([[8, 1, 4, .5, 2, 6], [2, 5, 4, 3, .5, 7]], float)


def cells(share, dropout, size=1.5):
    """Two kinds of cells, six zero-inflated negative binomial genes."""
    def draw(r, n):
        kind = (r.uniform(size=n) > share).astype(int)
        x = r.poisson(r.gamma(size, CELL_MEANS[kind] / size))
        return (x * (r.uniform(size=x.shape) > dropout)).astype(float)

    def log_density(x):
        parts = []
        for m, w in zip(CELL_MEANS, (share, 1 - share)):
            p = size / (size + m)
            nb = gammaln(x + size) - gammaln(size) - gammaln(x + 1) + size * np.log(p) + x * np.log1p(-p)
            both = np.log1p(-dropout) + nb
            parts.append(np.log(w) + np.where(x == 0, np.logaddexp(np.log(dropout), both), both).sum(1))
        return np.logaddexp(*parts)
    return Law(draw, log_density)


def patients(p, shape, slope, sd):
    """A level of six, a gamma number by level, a normal number that follows the first by level."""
    p, shape, slope, sd = (np.asarray(v, float) for v in (p, shape, slope, sd))

    def draw(r, n):
        level = r.choice(6, n, p=p)
        dose = r.gamma(shape[level])
        return np.c_[level, dose, slope[level] * np.log(dose) + sd[level] * r.standard_normal(n)]

    def log_density(x):
        level, log_dose = x[:, 0].astype(int), np.log(x[:, 1])
        k = shape[level]
        return np.log(p[level]) + (k - 1) * log_dose - x[:, 1] - gammaln(k) + lnorm(x[:, 2], slope[level] * log_dose, sd[level])
    return Law(draw, log_density)


def torus(k1, k2, tie, turn=2.5):
    """The sine model of two angles, shifted and wrapped into (-pi, pi]."""
    def energy(a, b):
        return k1 * np.cos(a) + k2 * np.cos(b) + tie * np.sin(a) * np.sin(b)
    g = np.linspace(-np.pi, np.pi, 801)[:-1]
    grid = energy(g[:, None], g[None])
    top, log_z = grid.max(), logsumexp(grid) - 2 * np.log(800) + 2 * LOG2PI

    def draw(r, n):
        rows = np.zeros((0, 2))
        while len(rows) < n:
            x = r.uniform(-np.pi, np.pi, (4 * n + 100, 2))
            rows = np.vstack([rows, x[np.log(r.uniform(size=len(x))) < energy(*x.T) - top]])
        return (rows[:n] + turn + np.pi) % (2 * np.pi) - np.pi
    return Law(draw, lambda x: energy(*(x - turn).T) - log_z)


def heavy(d, df=4, scale=1.3):
    return Law(lambda r, n: scale * r.standard_t(df, (n, d)), lambda x: lt(x / scale, df).sum(1) - d * np.log(scale))


def clusters():
    c = np.random.default_rng(101).standard_normal((3, 6)) * 1.1
    s = np.random.default_rng(102).uniform(.5, 1.1, (3, 6))
    return mixture([.5, .3, .2], c, s)


BANANA = Law(lambda r, n: (lambda a, b, c: np.c_[a, .6 * a * a - .6 + .5 * b, .5 * a * (.6 * a * a - .6 + .5 * b) + .8 * c])(*r.standard_normal((3, n))),
             lambda x: lnorm(x[:, 0]) + lnorm(x[:, 1], .6 * x[:, 0] ** 2 - .6, .5) + lnorm(x[:, 2], .5 * x[:, 0] * x[:, 1], .8))
PLAIN = Law(lambda r, n: np.array([1.1, 1.1, 1.2]) * r.standard_normal((n, 3)), lambda x: lnorm(x, 0, np.array([1.1, 1.1, 1.2])).sum(1))

LOADINGS = .25 * np.random.default_rng(103).choice([-1, 1], 100) * np.random.default_rng(104).uniform(.5, 1.5, 100)


def factor():
    size = (LOADINGS ** 2).sum()
    return Law(lambda r, n: r.standard_normal((n, 100)) + r.standard_normal((n, 1)) * LOADINGS,
               lambda x: -.5 * (x ** 2).sum(1) + .5 * (x @ LOADINGS) ** 2 / (1 + size) - .5 * np.log1p(size))


def white(d):
    return Law(lambda r, n: r.standard_normal((n, d)), lambda x: -.5 * (x ** 2).sum(1))


def series(memory, d=15, df=4):
    """An autoregression with t innovations, or white t noise of the same variance; the first column begins the series."""
    sd = 1 / np.sqrt(1 - memory ** 2)

    def draw(r, n):
        x = r.standard_t(df, (n, d))
        x[:, 0] *= sd
        for j in range(1, d):
            x[:, j] += memory * x[:, j - 1]
        return x

    def log_density(x):
        return lt(x[:, 0] / sd, df) - np.log(sd) + sum(lt(x[:, j] - memory * x[:, j - 1], df) for j in range(1, d))
    return Law(draw, log_density), Law(lambda r, n: sd * r.standard_t(df, (n, d)), lambda x: lt(x / sd, df).sum(1) - d * np.log(sd))


def experts(sign):
    def draw(r, n):
        x = r.standard_normal((n, 4))
        first = r.uniform(size=n) < expit(sign * 4 * x[:, 0])
        return np.c_[x, np.where(first, 1.5 * x[:, 1], -1.5 * x[:, 2]) + .6 * r.standard_normal(n)]

    def log_density(x):
        g, y = sign * 4 * x[:, 0], x[:, 4]
        return np.logaddexp(-np.logaddexp(0, -g) + lnorm(y, 1.5 * x[:, 1], .6), -np.logaddexp(0, g) + lnorm(y, -1.5 * x[:, 2], .6))
    return Law(draw, log_density)


def spectrum(share):
    """Mass with a falling background on (1, 5) and a narrow peak, an angle's cosine, a transverse momentum, one column of noise."""
    total = np.exp(-.8) - np.exp(-4.0)

    def draw(r, n):
        s = r.uniform(size=n) < share
        mass = np.where(s, 2.3 + .06 * r.standard_normal(n), -np.log(np.exp(-.8) - total * r.uniform(size=n)) / .8)
        cosine = np.where(s, np.sign(r.uniform(-1, 1, n)) * r.uniform(size=n) ** (1 / 3), r.uniform(-1, 1, n))
        momentum = np.where(s, r.lognormal(3.5, .4, n), r.lognormal(3, .6, n))
        return np.c_[mass, cosine, momentum, r.standard_normal(n)]

    def log_density(x):
        m, c, p = x[:, 0], x[:, 1], np.log(x[:, 2])
        back = np.where((m > 1) & (m < 5), np.log(.8) - .8 * m - np.log(total), -np.inf) - np.log(2) + lnorm(p, 3, .6)
        if not share:
            return back
        peak = lnorm(m, 2.3, .06) + np.log(1.5) + 2 * np.log(np.abs(c)) + lnorm(p, 3.5, .4)
        return np.logaddexp(np.log1p(-share) + back, np.log(share) + peak)
    return Law(draw, log_density)


STATES = np.array(list(itertools.product([-1, 1], repeat=12)), float)


def ising(tie, seed):
    r = np.random.default_rng(seed)
    field = .4 * r.standard_normal(12)
    j = tie * r.choice([-1, 1], 12) * r.uniform(.5, 1.2, 12)
    energy = STATES @ field + (STATES * np.roll(STATES, 1, 1)) @ j
    logp = energy - logsumexp(energy)
    p = np.exp(logp)

    def log_density(x):
        return logp[((x > 0) @ (1 << np.arange(11, -1, -1))).astype(int)]
    return Law(lambda r, n: STATES[r.choice(4096, n, p=p / p.sum())], log_density)


def bits(d, share):
    def draw(r, n):
        x = r.integers(2, size=(n, d))
        want = r.uniform(size=n) < share
        x[:, 4] = (x[:, 9] + x[:, 16] + want) % 2
        return x.astype(float)
    return Law(draw, lambda x: np.log(2 * np.where((x[:, 4] + x[:, 9] + x[:, 16]) % 2 == 1, share, 1 - share)))


TURN = np.linalg.qr(np.random.default_rng(105).standard_normal((10, 10)))[0]


def turned_moon(second):
    at = np.pi * (np.arange(25) + .5) / 25
    x, y = np.cos(at) - .5, np.sin(at) - .25
    flat = mixture(np.full(25, .04), 1.4 * (np.c_[-x, -y] if second else np.c_[x, y]), np.full(25, .65 if second else .5))
    return Law(lambda r, n: np.c_[flat.draw(r, n), r.standard_normal((n, 8))] @ TURN.T, lambda x: flat.log_density(x @ TURN[:, :2]))


ROOT3 = np.linalg.cholesky(.5 * np.eye(3) + .5)
ROOT3B = np.linalg.cholesky(.4 * np.eye(3) + .6)


def pareto_copula(df):
    """Pareto margins of index 1.5; a t copula, or a Gaussian one (df 0). Densities relative to the margins."""
    def draw(r, n):
        if df:
            z = r.standard_normal((n, 3)) @ ROOT3.T / np.sqrt(r.chisquare(df, (n, 1)) / df)
            upper = stdtr(df, -z)
        else:
            upper = ndtr(-(r.standard_normal((n, 3)) @ ROOT3B.T))
        return upper ** (-1 / 1.5)

    def log_density(x):
        upper = np.clip(x ** -1.5, 1e-300, 1 - 1e-16)
        if df:
            z = -stdtrit(df, upper)
            q = (np.linalg.solve(ROOT3, z.T) ** 2).sum(0)
            joint = (gammaln((df + 3) / 2) - gammaln(df / 2) - 1.5 * np.log(df * np.pi) - np.log(np.diag(ROOT3)).sum()
                     - (df + 3) / 2 * np.log1p(q / df))
            return joint - lt(z, df).sum(1)
        z = -ndtri(upper)
        return -.5 * (np.linalg.solve(ROOT3B, z.T) ** 2).sum(0) - np.log(np.diag(ROOT3B)).sum() + .5 * (z ** 2).sum(1)
    return Law(draw, log_density)


ODD = Law(lambda r, n: np.c_[r.standard_t(1, n), np.where(r.uniform(size=n) < .4, 0, r.lognormal(0, 1.5, n)), r.choice(4, n, p=[.6, .2, .15, .05]),
                             r.negative_binomial(.8, .1, n)], lambda x: np.zeros(len(x)))


def blind_pairs():
    ar, noise = series(.5)
    order = [3, 0, 5, 1, 4, 2]
    kind = dict(p=np.array([.3, .25, .2, .12, .08, .05]), shape=np.array([1, 2, 3, 4, 2, 5.]), slope=np.array([1, -1, .5, 0, 1.5, -.5]),
                sd=np.array([.5, .7, .4, 1, .6, .5]))
    other = {k: v[order] if k in ("p",) else v for k, v in kind.items()}
    other["p"] = .5 * other["p"] + .5 / 6
    other["slope"], other["shape"] = np.array([.6, -.6, .9, .3, .8, -.2]), np.array([1.5, 2, 2.5, 3, 2.5, 4.5])
    other["sd"] = np.array([.6, .7, .6, .9, .7, .6])
    return {
        "scattered outliers": (2000, 2000, mixture([.94, .06], np.zeros((2, 3)), [1, 8]), mixture([.99, .01], [[.3, 0, 0]] * 2, [1.05, 8]), ""),
        "Cauchy in 4": (1500, 1500, cauchy(.5, 1.5, 4), cauchy(0, 1, 4), ""),
        "triangular vs truncated": (1000, 1000, triangular(.3, 3), truncnormal(.55, .4, 3), ""),
        "disc in 6": (2000, 2000, thinned_uniform(6, disc_density, 2), uniform(6), ""),
        "checkerboard": (3000, 3000, thinned_uniform(2, board_density, 1.75), uniform(2), ""),
        "winding spiral in 5": (3000, 3000, winding(3), winding(0), ""),
        "cells": (1500, 1500, cells(.3, .15), cells(.65, .3), ""),
        "patients": (1200, 1200, patients(**kind), patients(**other), "--categorical 0"),
        "torus": (1000, 1000, torus(1.5, 1, 2), torus(.6, .4, 0), ""),
        "clusters 300 v 5000": (300, 5000, clusters(), heavy(6), ""),
        "banana 5000 v 300": (5000, 300, BANANA, PLAIN, ""),
        "factor in 100": (500, 500, factor(), white(100), ""),
        "AR(1) t in 15": (1500, 1500, ar, noise, ""),
        "experts": (2000, 2000, experts(1), experts(-1), ""),
        "bump hunt": (5000, 5000, spectrum(.07), spectrum(0), ""),
        "Ising": (1000, 1000, ising(.3, 106), ising(0, 107), ""),
        "parity of 3 in 25": (4000, 4000, bits(25, .9), bits(25, .5), ""),
        "turned moons in 10": (2000, 2000, turned_moon(False), turned_moon(True), ""),
        "Pareto copulas": (1500, 1500, pareto_copula(3), pareto_copula(0), ""),
        "same odd 300 v 5000": (300, 5000, ODD, ODD, "--categorical 2"),
    }


# ---- mutual information: draw(rng, n) -> x, y; ratio(x, y) ---------------------------------------------------------

def t_shape(d, rho):
    s = np.eye(2 * d)
    s[np.arange(d), d + np.arange(d)] = s[d + np.arange(d), np.arange(d)] = rho
    return s


def t_law(shape, df):
    d, root = len(shape), np.linalg.cholesky(shape)
    const = gammaln((df + d) / 2) - gammaln(df / 2) - d / 2 * np.log(df * np.pi) - np.log(np.diag(root)).sum()
    return lambda z: const - (df + d) / 2 * np.log1p((np.linalg.solve(root, z.T) ** 2).sum(0) / df)


def t_joint(d, rho, df, there, back):
    shape = t_shape(d, rho)
    root, whole, part = np.linalg.cholesky(shape), t_law(shape, df), t_law(np.eye(d), df)

    def draw(r, n):
        z = r.standard_normal((n, 2 * d)) @ root.T / np.sqrt(r.chisquare(df, (n, 1)) / df)
        return there(z[:, :d]), there(z[:, d:])

    def ratio(x, y):
        x, y = back(x), back(y)
        return whole(np.c_[x, y]) - part(x) - part(y)
    return draw, ratio


def turn_plane(z, i, j, speed):
    angle = speed * (z ** 2).sum(1)
    out = z.copy()
    out[:, i], out[:, j] = np.cos(angle) * z[:, i] - np.sin(angle) * z[:, j], np.sin(angle) * z[:, i] + np.cos(angle) * z[:, j]
    return out


RHO3 = np.array([.75, .75, 0])


def spiral_joint(r, n):
    x = r.standard_normal((n, 3))
    y = RHO3 * x + np.sqrt(1 - RHO3 ** 2) * r.standard_normal((n, 3))
    return ndtr(turn_plane(x, 0, 1, 1 / 3)), turn_plane(y, 1, 2, 1 / 3) ** 3


def spiral_joint_ratio(x, y):
    x, y = turn_plane(ndtri(x), 0, 1, -1 / 3), turn_plane(np.cbrt(y), 1, 2, -1 / 3)
    return (lnorm(y, RHO3 * x, np.sqrt(1 - RHO3 ** 2)) - lnorm(y)).sum(1)


AT = np.linspace(1, 4 * np.pi, 60)
CURVE = np.c_[AT * np.cos(AT), AT * np.sin(AT)] / 5


def curve(r, n):
    z = CURVE[r.integers(60, size=n)] + .22 * r.standard_normal((n, 2))
    return np.exp(z[:, :1]), z[:, 1:] ** 3


def curve_ratio(x, y):
    a, b = (lnorm(v, CURVE[:, k][None], .22) for k, v in enumerate((np.log(x), np.cbrt(y))))
    return logsumexp(a + b, axis=1) - logsumexp(a, axis=1) - logsumexp(b, axis=1) + np.log(60)


def joe(r, n, theta=3.0):
    """Joe's copula, exponential x and Pareto y of index 1.2; by inversion of v given u (a = 1 - u, b = 1 - v)."""
    a, w = r.uniform(size=n), r.uniform(size=n)
    low, high = np.full(n, 1e-18), np.ones(n)
    for _ in range(70):
        b = np.sqrt(low * high)
        at, bt = a ** theta, b ** theta
        below = (at + bt - at * bt) ** (1 / theta - 1) * a ** (theta - 1) * (1 - bt)     # P(V < 1 - b | u)
        low, high = np.where(below > w, b, low), np.where(below > w, high, b)
    return -np.log(a)[:, None], (b ** (-1 / 1.2))[:, None]


def joe_ratio(x, y, theta=3.0):
    a, b = np.exp(-x[:, 0]), y[:, 0] ** -1.2
    at, bt = a ** theta, b ** theta
    s = at + bt - at * bt
    return (1 / theta - 2) * np.log(s) + (theta - 1) * np.log(a * b) + np.log(theta - 1 + s)


def clayton(r, n, theta=1.5):
    u = (1 + r.exponential(size=(n, 5)) / r.gamma(1 / theta, size=(n, 1))) ** (-1 / theta)
    z = ndtri(u)
    return z[:, :3], np.exp(z[:, 3:])


def log_clayton(u, theta=1.5):
    d = u.shape[1]
    return (np.log1p(theta * np.arange(d)).sum() - (1 + theta) * np.log(u).sum(1)
            - (d + 1 / theta) * np.log((u ** -theta).sum(1) - d + 1))


def clayton_ratio(x, y):
    u, v = ndtr(x), ndtr(np.log(y))
    return log_clayton(np.c_[u, v]) - log_clayton(u) - log_clayton(v)


def loud_xor(r, n):
    x = r.standard_normal((n, 12))
    return x, (np.where(x[:, 2] * x[:, 7] > 0, 1.5, .4) * r.standard_normal(n))[:, None]


def loud_xor_ratio(x, y):
    y = y[:, 0]
    return lnorm(y, 0, np.where(x[:, 2] * x[:, 7] > 0, 1.5, .4)) - np.logaddexp(lnorm(y, 0, 1.5), lnorm(y, 0, .4)) + np.log(2)


def bit_xor(r, n):
    x = r.uniform(size=(n, 40))
    y = ((x[:, 11] > .5) ^ (x[:, 30] > .5)) ^ (r.uniform(size=n) < .1)
    return x, y[:, None].astype(float)


def bit_xor_ratio(x, y):
    same = ((x[:, 11] > .5) ^ (x[:, 30] > .5)) == (y[:, 0] > .5)
    return np.log(2 * np.where(same, .9, .1))


def log_classes(x):
    f = np.c_[2 * np.sin(2 * x[:, 0]), x[:, 1] ** 2 - 1, 1.5 * x[:, 0] * x[:, 2], np.zeros(len(x))]
    return f - logsumexp(f, axis=1, keepdims=True)


CLASS_SHARE = np.mean([np.exp(log_classes(np.random.default_rng([108, k]).standard_normal((500_000, 3)))).mean(0) for k in range(8)], axis=0)


def classes(r, n):
    x = r.standard_normal((n, 8))
    return x, (r.uniform(size=(n, 1)) > np.exp(log_classes(x)).cumsum(1)[:, :3]).sum(1, keepdims=True).astype(float)


def classes_ratio(x, y):
    k = y[:, 0].astype(int)
    return log_classes(x)[np.arange(len(x)), k] - np.log(CLASS_SHARE)[k]


def table_of(log_given, centres, grid):
    """log of the mean over centres of p(y|centre), tabulated over a grid of y."""
    return np.concatenate([logsumexp(log_given(g[:, None], centres[None]), axis=1) for g in np.array_split(grid, 40)]) - np.log(len(centres))


LOG_GRID = np.linspace(-16, 4.5, 6000)
UNIT = (np.arange(4000) + .5) / 4000


def lgamma3(log_y, log_scale):
    return 3 * (log_y - log_scale) - np.exp(log_y - log_scale) - gammaln(3)


SPECKLE_TABLE = table_of(lgamma3, np.log(1.05 + np.sin(4 * np.pi * UNIT)), LOG_GRID)


def speckle(r, n):
    """y = (1.05 + sin 2 x_1) times a gamma variable; three more columns of x."""
    x = np.c_[r.uniform(-np.pi, np.pi, n), r.standard_normal((n, 3))]
    return x, ((1.05 + np.sin(2 * x[:, 0])) * r.gamma(3, size=n))[:, None]


def speckle_ratio(x, y):
    ly = np.log(y[:, 0])
    return lgamma3(ly, np.log(1.05 + np.sin(2 * x[:, 0]))) - np.interp(ly, LOG_GRID, SPECKLE_TABLE)


def log_zinb(y, mean, size=2.0, zero=.3):
    p = size / (size + mean)
    nb = np.log1p(-zero) + gammaln(y + size) - gammaln(size) - gammaln(y + 1) + size * np.log(p) + y * np.log1p(-p)
    return np.where(y == 0, np.logaddexp(np.log(zero), nb), nb)


EXPOSURE_TABLE = table_of(log_zinb, stats.lognorm(1.0, scale=3).ppf((np.arange(8000) + .5) / 8000), np.arange(4000.0))


def exposure(r, n):
    x = r.lognormal(np.log(3), 1, (n, 1))
    y = r.poisson(r.gamma(2, x / 2)) * (r.uniform(size=(n, 1)) > .3)
    return x, y.astype(float)


def exposure_ratio(x, y):
    return log_zinb(y[:, 0], x[:, 0]) - EXPOSURE_TABLE[np.minimum(y[:, 0], 3999).astype(int)]


STAIRS = np.array([3, 0, 6, 2, 7, 4, 1, 5]) / 2


def stairs(r, n):
    x = r.uniform(size=(n, 1))
    return x, STAIRS[np.floor(8 * x).astype(int)] + .2 * r.standard_normal((n, 1))


def stairs_ratio(x, y):
    return lnorm(y[:, 0], STAIRS[np.floor(8 * x[:, 0]).astype(int)], .2) - logsumexp(lnorm(y, STAIRS[None], .2), axis=1) + np.log(8)


def future(r, n):
    z = r.standard_normal((n, 15))
    for j in range(1, 15):
        z[:, j] = .8 * z[:, j - 1] + .6 * z[:, j]
    return z[:, :10] ** 3, z[:, 10:] ** 3


def future_ratio(x, y):
    a, b = np.cbrt(x[:, 9]), np.cbrt(y[:, 0])
    return lnorm(b, .8 * a, .6) - lnorm(b)


def nothing(r, n):
    x = np.exp(1.2 * (r.standard_normal((n, 20)) * .7 + .7 * r.standard_normal((n, 1))))
    return x, r.poisson(r.gamma(.7, 4, (n, 1)), (n, 3)).astype(float)


def blind_joints():
    return {
        "t in 3 + 3, cdf": (2000, *t_joint(3, .5, 3, lambda z: ndtr(z / 3), lambda u: 3 * ndtri(u)), ""),
        "t in 5 + 5, cubes": (3000, *t_joint(5, .4, 2, lambda z: z ** 3, np.cbrt), ""),
        "spirals in 3 + 3, mapped": (3000, spiral_joint, spiral_joint_ratio, ""),
        "spiral curve, mapped": (1500, curve, curve_ratio, ""),
        "Joe": (1500, joe, joe_ratio, ""),
        "Clayton in 3 + 2": (1500, clayton, clayton_ratio, ""),
        "loud xor in 12": (3000, loud_xor, loud_xor_ratio, ""),
        "bit xor in 40": (4000, bit_xor, bit_xor_ratio, ""),
        "classes of 8": (1500, classes, classes_ratio, "--categorical 8"),
        "speckle": (1000, speckle, speckle_ratio, ""),
        "exposure, 400 rows": (400, exposure, exposure_ratio, ""),
        "stairs": (800, stairs, stairs_ratio, ""),
        "past and future": (1500, future, future_ratio, ""),
        "nothing in 20 + 3": (500, nothing, lambda x, y: np.zeros(len(x)), ""),
    }


@functools.lru_cache(None)
def mutual_information(name):
    _, draw, ratio, _ = blind_joints()[name]
    said = np.concatenate([ratio(*draw(np.random.default_rng([4, k]), MANY // 20)) for k in range(20)])
    return float(said[np.isfinite(said)].mean())  # the normal cdf of a large number is 1
