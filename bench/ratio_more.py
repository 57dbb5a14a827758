"""More problems with known truths, drawn by numpy alone. Those of `DEVELOPED` were looked at while tails, maps of columns and intervals were worked on; those
of `KEPT` were written down at the same time and run when that was done. `ratio.py --group developed` and `--group kept` run them."""
import functools

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from ratio_fresh import Law, mixture


def columns(*kinds):
    """Independent columns: (draw(rng, n), a frozen distribution of scipy.stats)."""
    def log_density(x):
        return sum((law.logpdf if hasattr(law.dist, "pdf") else law.logpmf)(x[:, j]) for j, (_, law) in enumerate(kinds))
    return Law(lambda rng, n: np.column_stack([np.asarray(draw(rng, n), float) for draw, _ in kinds]), log_density)


def gauss(mean=0.0, sd=1.0):
    return lambda rng, n: mean + sd * rng.standard_normal(n), stats.norm(mean, sd)


def gamma(shape, scale=1.0):
    return lambda rng, n: rng.gamma(shape, scale, n), stats.gamma(shape, scale=scale)


def lomax(shape, scale=1.0):
    return lambda rng, n: scale * rng.pareto(shape, n), stats.lomax(shape, scale=scale)


def beta(a, b):
    return lambda rng, n: rng.beta(a, b, n), stats.beta(a, b)


def lognormal(mean, sd):
    return lambda rng, n: rng.lognormal(mean, sd, n), stats.lognorm(sd, scale=np.exp(mean))


def gumbel(loc, scale=1.0):
    return lambda rng, n: rng.gumbel(loc, scale, n), stats.gumbel_r(loc, scale)


def logistic(loc=0.0, scale=1.0):
    return lambda rng, n: rng.logistic(loc, scale, n), stats.logistic(loc, scale)


def laplace(loc=0.0, scale=1.0):
    return lambda rng, n: rng.laplace(loc, scale, n), stats.laplace(loc, scale)


def student(df, loc=0.0, scale=1.0):
    return lambda rng, n: loc + scale * rng.standard_t(df, n), stats.t(df, loc, scale)


def poisson(mean):
    return lambda rng, n: rng.poisson(mean, n), stats.poisson(mean)


def binomial(trials, p):
    return lambda rng, n: rng.binomial(trials, p, n), stats.binom(trials, p)


def geometric(p):
    return lambda rng, n: rng.geometric(p, n), stats.geom(p)


def power_normal(power):
    """Density exp(-|x|^power), up to a constant: x is a power of a gamma variable, with a sign."""
    def draw(rng, n):
        return rng.choice([-1, 1], n) * rng.gamma(1 / power, size=n) ** (1 / power)
    return draw, stats.gennorm(power)


def log_logistic(shape, scale=1.0):
    return lambda rng, n: scale * np.exp(rng.logistic(0, 1 / shape, n)), stats.fisk(shape, scale=scale)


def kumaraswamy(a, b):
    """On (0, 1), with closed forms: F = 1 - (1 - x^a)^b."""
    class Density:
        class dist:
            pdf = None

        @staticmethod
        def logpdf(x):
            return np.log(a * b) + (a - 1) * np.log(x) + (b - 1) * np.log1p(-x ** a)
    return lambda rng, n: (1 - (1 - rng.uniform(size=n)) ** (1 / b)) ** (1 / a), Density


def skew_normal(slant):
    share = slant / np.sqrt(1 + slant * slant)

    def draw(rng, n):
        return share * np.abs(rng.standard_normal(n)) + np.sqrt(1 - share ** 2) * rng.standard_normal(n)
    return draw, stats.skewnorm(slant)


def zero_inflated(share, mean):
    class Density:
        class dist:
            pass

        @staticmethod
        def logpmf(x):
            return np.logaddexp(np.log(share) + np.where(x == 0, 0, -np.inf), np.log1p(-share) + stats.poisson(mean).logpmf(x))
    return lambda rng, n: rng.poisson(mean, n) * (rng.uniform(size=n) > share), Density


def cardioid(loc, share):
    """An angle with density (1 + share cos(x - loc)) / 2 pi."""
    class Density:
        class dist:
            pdf = None

        @staticmethod
        def logpdf(x):
            return np.log1p(share * np.cos(x - loc)) - np.log(2 * np.pi)

    def draw(rng, n):
        x, keep = rng.uniform(-np.pi, np.pi, 4 * n + 100), rng.uniform(size=4 * n + 100)
        return x[keep * (1 + share) < 1 + share * np.cos(x - loc)][:n]
    return draw, Density


def table_law(p):
    """Columns of levels with an array of probabilities."""
    p = np.asarray(p, float) / np.sum(p)

    def draw(rng, n):
        return np.stack(np.unravel_index(rng.choice(p.size, n, p=p.ravel()), p.shape), 1).astype(float)
    return Law(draw, lambda x: np.log(p[tuple(x.astype(int).T)]))


def random_table(seed, shape, sharp):
    return np.exp(sharp * np.random.default_rng(seed).standard_normal(shape))


def angle_law(kappa):
    """Two angles, the second near the first; kappa 0: independent."""
    def draw(rng, n):
        x = rng.uniform(-np.pi, np.pi, n)
        y = x + rng.vonmises(0, kappa, n) if kappa > 0 else rng.uniform(-np.pi, np.pi, n)
        return np.c_[x, (y + np.pi) % (2 * np.pi) - np.pi]
    return Law(draw, lambda x: stats.vonmises(kappa).logpdf(x[:, 1] - x[:, 0]) if kappa > 0 else np.full(len(x), -np.log(2 * np.pi)))


def spiral(turned):
    at = np.linspace(.5, 3 * np.pi, 40)
    angle = at + (np.pi if turned else 0)
    centres = np.c_[at * np.cos(angle), at * np.sin(angle)] / 4
    return mixture(np.full(40, 1 / 40), centres, np.full(40, .3))


def pinwheel(arms, turn):
    """Arms that lie along rays from the middle."""
    angle = turn + 2 * np.pi * np.arange(arms) / arms
    steps = np.linspace(.6, 2.4, 7)
    centres = np.concatenate([np.c_[s * np.cos(angle + .2 * s), s * np.sin(angle + .2 * s)] for s in steps])
    return mixture(np.full(len(centres), 1 / len(centres)), centres, np.full(len(centres), .32))


def mixed_table(rate, slope):
    """Exponential x, normal y around a line in ln x, yes or no by y."""
    def draw(rng, n):
        x = rng.exponential(1 / rate, n)
        y = slope * np.log(x) + rng.standard_normal(n)
        return np.c_[x, y, rng.uniform(size=n) < 1 / (1 + np.exp(-y))]

    def log_density(x):
        y = x[:, 1]
        return (np.log(rate) - rate * x[:, 0] + stats.norm.logpdf(y - slope * np.log(x[:, 0]))
                - np.where(x[:, 2] > 0, np.logaddexp(0, -y), np.logaddexp(0, y)))
    return Law(draw, log_density)


def two_scales(d, share, wide):
    return mixture([1 - share, share], np.zeros((2, d)), [.8, wide])


def exclusive_or(d):
    """Normal columns, the first two with a product of one sign more often."""
    def draw(rng, n):
        x = rng.standard_normal((n, d))
        wrong = rng.uniform(size=n) > 1 / (1 + np.exp(-2.5 * np.sign(x[:, 0] * x[:, 1])))
        x[wrong, 0] *= -1
        return x
    share = 1 / (1 + np.exp(-2.5))
    return Law(draw, lambda x: stats.norm.logpdf(x).sum(1) + np.log(2 * np.where(x[:, 0] * x[:, 1] > 0, share, 1 - share)))


def developed_pairs():
    """name: (rows of the numerator, of the denominator, numerator, denominator, options of the program)"""
    return {
        "mixtures in 4": (1500, 1500, mixture([.4, .3, .3], [[0, 0, 0, 0], [2, 0, 1, 0], [0, 2, 0, -1]], [.7, .9, .6]),
                          mixture([.6, .4], [[1, 1, 0, 0], [0, 0, 1, 1]], [1, .8]), ""),
        "Lomax": (1000, 1000, columns(*[lomax(3)] * 3), columns(*[lomax(4, 1.5)] * 3), ""),
        "betas": (1000, 1000, columns(beta(2, 5), beta(5, 2), beta(3, 3)), columns(beta(1.5, 2), beta(2, 1.5), beta(1.2, 1.2)), ""),
        "gamma against lognormal": (1000, 1000, columns(*[gamma(1.5)] * 2), columns(*[lognormal(.1, .9)] * 2), ""),
        "lognormal against gamma": (1000, 1000, columns(*[lognormal(0, .7)] * 3), columns(*[gamma(2, .7)] * 3), ""),
        "Gumbel": (1200, 1200, columns(*[gumbel(-.3)] * 5), columns(*[logistic(0, .8)] * 5), ""),
        "small counts": (1000, 1000, columns(geometric(.3), geometric(.4), binomial(10, .4)), columns(geometric(.4), geometric(.3), binomial(10, .5)), ""),
        "levels in 3": (800, 800, table_law(random_table(1, (5, 3, 4), .6)), table_law(random_table(2, (5, 3, 4), .4)), "--categorical 0,1,2"),
        "angles that follow": (1000, 1000, angle_law(1.5), angle_law(0), ""),
        "300 against 3000": (300, 3000, columns(*[student(5)] * 4), columns(*[gauss(.2, 1.3)] * 4), ""),
        "3000 against 300": (3000, 300, columns(*[gamma(3, .5)] * 3), columns(*[gamma(2)] * 3), ""),
        "logistic in 60": (400, 400, columns(*[logistic(.25 if j < 30 else 0, .6) for j in range(60)]), columns(*[logistic(0, .6)] * 60), ""),
        "spirals": (1500, 1500, spiral(False), spiral(True), ""),
        "mixed table": (1500, 1500, mixed_table(1, .6), mixed_table(.7, .2), ""),
        "t of 2.5": (1000, 1000, columns(*[student(2.5)] * 2), columns(*[student(2.5, .3, 1.6)] * 2), ""),
        "Laplace against normal": (1000, 1000, columns(*[laplace(0, .8)] * 3), columns(*[gauss(0, 1.3)] * 3), ""),
        "powers": (1000, 1000, columns(*[power_normal(1.5)] * 3), columns(*[power_normal(3)] * 3), ""),
        "exponential": (1000, 1000, columns(*[gamma(1)] * 4), columns(*[gamma(1, 1.6)] * 4), ""),
    }


def kept_pairs():
    return {
        "chi squares": (1200, 1200, columns(*[gamma(1.5, 2)] * 4), columns(*[gamma(2.5, 1.5)] * 4), ""),
        "log-logistic": (1000, 1000, columns(*[log_logistic(3)] * 2), columns(*[lognormal(.2, .7)] * 2), ""),
        "Kumaraswamy": (1000, 1000, columns(*[kumaraswamy(2, 3)] * 3), columns(*[beta(1.2, 1.2)] * 3), ""),
        "skew normals": (1000, 1000, columns(*[skew_normal(3)] * 5), columns(*[gauss(.6, .9)] * 5), ""),
        "pinwheels": (1500, 1500, pinwheel(3, 0), pinwheel(3, np.pi / 3), ""),
        "zero-inflated": (1000, 1000, columns(*[zero_inflated(.3, 3)] * 3), columns(*[poisson(2.4)] * 3), ""),
        "levels in 4": (1000, 1000, table_law(random_table(3, (3, 3, 2, 4), .5)), table_law(random_table(4, (3, 3, 2, 4), .5)), "--categorical 0-3"),
        "cardioids": (1000, 1000, columns(cardioid(0, .8), cardioid(1, .6), cardioid(2, .5)), columns(*[cardioid(3, .4)] * 3), ""),
        "500 against 2500": (500, 2500, columns(*[laplace(0, 1)] * 3), columns(*[logistic(.3, .8)] * 3), ""),
        "t in 80": (500, 500, columns(*[student(6, .12)] * 80), columns(*[student(6)] * 80), ""),
        "exclusive or in 20": (2000, 2000, exclusive_or(20), columns(*[gauss()] * 20), ""),
        "two scales": (1000, 1000, two_scales(3, .3, 2), two_scales(3, .6, 1.4), ""),
        "Frechet": (1000, 1000, columns(*[(lambda rng, n: rng.exponential(size=n) ** (-1 / 3.0), stats.invweibull(3))] * 2),
                    columns(*[(lambda rng, n: 1.2 * rng.exponential(size=n) ** (-1 / 2.5), stats.invweibull(2.5, scale=1.2))] * 2), ""),
    }


# ---- mutual information: draw(rng, n) -> x, y; the log ratio of rows ----------------------------------------------

def clayton(rng, n, theta=2.0):
    common = rng.gamma(1 / theta, size=(n, 1))
    u = (1 + rng.exponential(size=(n, 2)) / common) ** (-1 / theta)
    return u[:, :1], u[:, 1:]


def clayton_ratio(x, y, theta=2.0):
    u, v = x[:, 0], y[:, 0]
    return np.log(1 + theta) - (1 + theta) * np.log(u * v) - (2 + 1 / theta) * np.log(u ** -theta + v ** -theta - 1)


GRID = (np.arange(1500) + .5) / 1500


def margin_of(y, log_given, blocks=500):
    """log of the mean over a grid of quantiles of x of p(y|x), for each y."""
    parts = [logsumexp(log_given(b[:, None]), axis=1) - np.log(len(GRID)) for b in np.array_split(y, max(1, len(y) // blocks))]
    return np.concatenate(parts)


def multiplied(rng, n):
    """y = x e^(.5 e), x exponential."""
    x = rng.exponential(size=(n, 1))
    return x, x * np.exp(.5 * rng.standard_normal((n, 1)))


def multiplied_ratio(x, y):
    log_x = np.log(stats.expon.ppf(GRID))
    log_y = np.log(y[:, 0])
    return stats.norm.logpdf(log_y, np.log(x[:, 0]), .5) - margin_of(log_y, lambda v: stats.norm.logpdf(v, log_x[None], .5))


def yes_or_no(rng, n):
    x = rng.standard_normal((n, 4))
    return x, (rng.uniform(size=(n, 1)) < 1 / (1 + np.exp(-3 * x[:, :1] * x[:, 1:2]))).astype(float)


def yes_or_no_ratio(x, y):
    return np.log(2) - np.logaddexp(0, -3 * x[:, 0] * x[:, 1] * (2 * y[:, 0] - 1))


def sum_in_30(rng, n):
    """y = |x_1| + .5 x_2 + .6 e, among 30 columns of x."""
    x = rng.standard_normal((n, 30))
    return x, np.abs(x[:, :1]) + .5 * x[:, 1:2] + .6 * rng.standard_normal((n, 1))


def sum_in_30_ratio(x, y):
    half = stats.halfnorm.ppf(GRID)
    own = stats.norm.logpdf(y[:, 0], np.abs(x[:, 0]) + .5 * x[:, 1], .6)
    return own - margin_of(y[:, 0], lambda v: stats.norm.logpdf(v, half[None], np.sqrt(.61)))


def heavy_noise(rng, n):
    x = rng.standard_normal((n, 1))
    return x, x + .5 * rng.standard_t(2, (n, 1))


def heavy_noise_ratio(x, y):
    at = stats.norm.ppf(GRID)
    own = stats.t.logpdf((y[:, 0] - x[:, 0]) / .5, 2)
    return own - margin_of(y[:, 0], lambda v: stats.t.logpdf((v - at[None]) / .5, 2))


CORNERS = np.array([[-2, 0], [0, -1.5], [1.5, 1.5], [2, -1]])


def corners(rng, n):
    both = CORNERS[rng.integers(4, size=n)] + .6 * rng.standard_normal((n, 2))
    return both[:, :1], both[:, 1:]


def corners_ratio(x, y):
    terms = [stats.norm.logpdf(v, CORNERS[:, k][None], .6) for k, v in enumerate((x, y))]
    return logsumexp(terms[0] + terms[1], axis=1) - logsumexp(terms[0], axis=1) - logsumexp(terms[1], axis=1) + np.log(4)


def thinned(rng, n):
    x = rng.poisson(4, (n, 1))
    return x.astype(float), rng.binomial(x, .6).astype(float)


def thinned_ratio(x, y):
    return (stats.binom.logpmf(y, x, .6) - stats.poisson.logpmf(y, 2.4))[:, 0]


def scaled_noise(rng, n):
    """y is gamma with shape 2 and the scale x, which is lognormal."""
    x = rng.lognormal(0, .8, (n, 1))
    return x, x * rng.gamma(2, size=(n, 1))


def scaled_noise_ratio(x, y):
    log_scale = np.log(stats.lognorm.ppf(GRID, .8))
    log_y = np.log(y[:, 0])

    def given(v, log_x):
        return 2 * (v - log_x) - np.exp(v - log_x) - gammaln(2)
    return given(log_y, np.log(x[:, 0])) - margin_of(log_y, lambda v: given(v, log_scale[None]))


def developed_joints():
    """name: (rows, how to draw, log ratio of rows, options of the program)"""
    return {
        "Clayton": (1000, clayton, clayton_ratio, ""),
        "multiplied": (1000, multiplied, multiplied_ratio, ""),
        "yes or no": (2000, yes_or_no, yes_or_no_ratio, "--categorical 4"),
        "sum in 30": (2500, sum_in_30, sum_in_30_ratio, ""),
        "heavy noise": (1000, heavy_noise, heavy_noise_ratio, ""),
        "corners": (1000, corners, corners_ratio, ""),
        "thinned": (1000, thinned, thinned_ratio, ""),
        "scaled noise": (1000, scaled_noise, scaled_noise_ratio, ""),
    }


def frank(rng, n, theta=6.0):
    """Frank's copula with exponential margins."""
    u, w = rng.uniform(size=(2, n, 1))
    v = -np.log1p(w * np.expm1(-theta) / (w + (1 - w) * np.exp(-theta * u))) / theta
    return -np.log(u), -np.log(v)


def frank_ratio(x, y, theta=6.0):
    u, v = np.exp(-x[:, 0]), np.exp(-y[:, 0])
    whole = -np.expm1(-theta)
    return np.log(theta * whole) - theta * (u + v) - 2 * np.log(whole - np.expm1(-theta * u) * np.expm1(-theta * v))


def shaped_gamma(rng, n):
    x = rng.uniform(1, 5, (n, 1))
    return x, rng.gamma(x)


def shaped_gamma_ratio(x, y):
    at, log_y = 1 + 4 * GRID, np.log(y[:, 0])

    def given(v, shape):
        return shape * v - np.exp(v) - gammaln(shape)
    return given(log_y, x[:, 0]) - margin_of(log_y, lambda v: given(v, at[None]))


def cosine(rng, n):
    x = rng.uniform(-np.pi, np.pi, (n, 1))
    return x, np.cos(2 * x) + .4 * rng.standard_normal((n, 1))


def cosine_ratio(x, y):
    at = np.cos(2 * np.pi * GRID)
    return stats.norm.logpdf(y[:, 0], np.cos(2 * x[:, 0]), .4) - margin_of(y[:, 0], lambda v: stats.norm.logpdf(v, at[None], .4))


RATES = np.array([1.0, 3.0, 6.0, 10.0])


def counts_of_levels(rng, n):
    x = rng.integers(4, size=(n, 1))
    return x.astype(float), rng.poisson(RATES[x]).astype(float)


def counts_of_levels_ratio(x, y):
    own = stats.poisson.logpmf(y[:, 0], RATES[x[:, 0].astype(int)])
    return own - logsumexp(stats.poisson.logpmf(y, RATES[None]), axis=1) + np.log(4)


def quotient_in_15(rng, n):
    """y = 2 x_1 / (1 + x_2^2) + .4 e, among 15 columns of x."""
    x = rng.standard_normal((n, 15))
    return x, 2 * x[:, :1] / (1 + x[:, 1:2] ** 2) + .4 * rng.standard_normal((n, 1))


QUOTIENTS = 2 / (1 + stats.norm.ppf(GRID) ** 2)


def quotient_in_15_ratio(x, y):
    own = stats.norm.logpdf(y[:, 0], 2 * x[:, 0] / (1 + x[:, 1] ** 2), .4)
    return own - margin_of(y[:, 0], lambda v: stats.norm.logpdf(v, 0, np.sqrt(QUOTIENTS[None] ** 2 + .16)))


def kept_joints():
    return {
        "Frank": (1000, frank, frank_ratio, ""),
        "shaped gamma": (1000, shaped_gamma, shaped_gamma_ratio, ""),
        "cosine": (1000, cosine, cosine_ratio, ""),
        "counts of levels": (1000, counts_of_levels, counts_of_levels_ratio, "--categorical 0"),
        "quotient in 15": (2500, quotient_in_15, quotient_in_15_ratio, ""),
    }


@functools.lru_cache(None)
def mutual_information(name):
    _, draw, ratio, _ = {**developed_joints(), **kept_joints()}[name]
    return float(np.mean([ratio(*draw(np.random.default_rng([3, k]), 10_000)).mean() for k in range(10)]))
