"""Problems to judge by, written down without a look at what the program says of them and dealt out in turn: those of the group `later` were run before the
last changes of intervals and verdicts, those of `judged` when they were done. `ratio.py --group later` and `--group judged` run them.
Mixtures and shells in several columns, copulas, atoms beside densities, angles, many levels, unequal samples, spirals, heavy tails in several columns,
truncated laws, and patterns of two or three columns among many."""
import functools

import numpy as np
from scipy import stats
from scipy.special import expit, logsumexp

from ratio_fresh import Law, mixture, tilted
from ratio_more import columns, gamma, gauss, logistic, poisson

GRID = (np.arange(2000) + .5) / 2000


# ---- two samples --------------------------------------------------------------------------------------------------

def centres_in_5(seed, n):
    return .8 * np.random.default_rng(seed).standard_normal((n, 5))


def gumbel_pair(rng, n, theta):
    """Gumbel's copula, by a positive stable variable that both share (Marshall and Olkin)."""
    alpha, angle, e = 1 / theta, rng.uniform(0, np.pi, (n, 1)), rng.exponential(size=(n, 1))
    stable = np.sin(alpha * angle) / np.sin(angle) ** theta * (np.sin((1 - alpha) * angle) / e) ** (theta - 1)
    return np.exp(-(rng.exponential(size=(n, 2)) / stable) ** alpha)


def gumbel_log_density(u, theta):
    a, b = -np.log(u[:, 0]), -np.log(u[:, 1])
    total = a ** theta + b ** theta
    s = total ** (1 / theta)
    return -s + (theta - 1) * np.log(a * b) + (1 / theta - 2) * np.log(total) + np.log(s + theta - 1) + a + b


def gumbel_normal(theta):
    """Gumbel's copula with normal margins."""
    return Law(lambda rng, n: stats.norm.ppf(gumbel_pair(rng, n, theta)),
               lambda x: gumbel_log_density(stats.norm.cdf(x), theta) + stats.norm.logpdf(x).sum(1))


def normal_law(mean, cov):
    law = stats.multivariate_normal(mean, cov)
    return Law(lambda rng, n: rng.multivariate_normal(mean, cov, n), law.logpdf)


def with_zeros(share, mean, sd, d):
    """Columns that are 0 with a probability, else lognormal."""
    law = stats.lognorm(sd, scale=np.exp(mean))

    def log_density(x):
        return np.where(x == 0, np.log(share), np.log1p(-share) + law.logpdf(np.where(x == 0, 1, x))).sum(1)
    return Law(lambda rng, n: np.where(rng.uniform(size=(n, d)) < share, 0, rng.lognormal(mean, sd, (n, d))), log_density)


def angle_and_height(tied):
    """An angle of two humps, and a height that follows its cosine, or not."""
    def draw(rng, n):
        far = rng.uniform(size=n) < .4
        angle = np.where(far, rng.vonmises(np.pi, 2, n), rng.vonmises(0, 4, n)) if tied else rng.uniform(-np.pi, np.pi, n)
        return np.c_[angle, (np.cos(angle) if tied else 0) + (.5 if tied else .9) * rng.standard_normal(n)]

    def log_density(x):
        if not tied:
            return stats.norm.logpdf(x[:, 1], 0, .9) - np.log(2 * np.pi)
        humps = np.logaddexp(np.log(.6) + stats.vonmises(4).logpdf(x[:, 0]), np.log(.4) + stats.vonmises(2, np.pi).logpdf(x[:, 0]))
        return humps + stats.norm.logpdf(x[:, 1], np.cos(x[:, 0]), .5)
    return Law(draw, log_density)


def many_levels(power, turned, slope):
    """Thirty levels with probabilities like powers of their rank, and a number that rises with the level."""
    p = np.arange(1, 31) ** -float(power)
    p = np.roll(p, 10 if turned else 0) / p.sum()

    def draw(rng, n):
        level = rng.choice(30, n, p=p)
        return np.c_[level, slope * level / 30 + rng.standard_normal(n)]
    return Law(draw, lambda x: np.log(p[x[:, 0].astype(int)]) + stats.norm.logpdf(x[:, 1], slope * x[:, 0] / 30))


def mirrored_spiral(mirrored):
    at = np.linspace(1, 4 * np.pi, 48)
    centres = np.c_[at * np.cos(at), (-1 if mirrored else 1) * at * np.sin(at)] / 5
    return mixture(np.full(48, 1 / 48), centres, np.full(48, .3))


def kinds_with_shapes(p, scale):
    """0, 1 or 2, and a gamma variable whose shape that is, plus one."""
    p = np.asarray(p, float)

    def draw(rng, n):
        kind = rng.choice(3, n, p=p)
        return np.c_[kind, scale * rng.gamma(kind + 1.0)]

    def log_density(x):
        return np.log(p[x[:, 0].astype(int)]) + stats.gamma.logpdf(x[:, 1], x[:, 0] + 1, scale=scale)
    return Law(draw, log_density)


def student_law(mean, rho, df, d=4):
    shape = (1 - rho) * np.eye(d) + rho * np.ones((d, d))
    root, mean = np.linalg.cholesky(shape), np.full(d, mean)
    law = stats.multivariate_t(mean, shape, df)
    return Law(lambda rng, n: mean + rng.standard_normal((n, d)) @ root.T / np.sqrt(rng.chisquare(df, (n, 1)) / df), law.logpdf)


def truncated(mean, sd, d):
    """Normal columns between -1 and 2."""
    low, high = (-1 - mean) / sd, (2 - mean) / sd
    law = stats.truncnorm(low, high, mean, sd)
    a, b = stats.norm.cdf(low), stats.norm.cdf(high)
    return Law(lambda rng, n: mean + sd * stats.norm.ppf(a + (b - a) * rng.uniform(size=(n, d))), lambda x: law.logpdf(x).sum(1))


def shell(shape, mean, d=3):
    """Radii by a gamma distribution, directions alike: the part r^(1 - d) is common to all such laws."""
    radius = stats.gamma(shape, scale=mean / shape)

    def draw(rng, n):
        x = rng.standard_normal((n, d))
        return x / np.linalg.norm(x, axis=1, keepdims=True) * rng.gamma(shape, mean / shape, (n, 1))
    return Law(draw, lambda x: radius.logpdf(np.linalg.norm(x, axis=1)))


def two_rates(share, slow, d):
    """Columns that are exponential with the mean 1 or, with a probability, a larger one."""
    def draw(rng, n):
        return rng.exponential(size=(n, d)) * np.where(rng.uniform(size=(n, d)) < share, slow, 1)

    def log_density(x):
        return np.logaddexp(np.log1p(-share) - x, np.log(share / slow) - x / slow).sum(1)
    return Law(draw, log_density)


def walk(step, log_step, d=8, memory=.6):
    """Columns that remember the one before them; steps by a law of their own."""
    def draw(rng, n):
        x = step(rng, (n, d))
        for j in range(1, d):
            x[:, j] += memory * x[:, j - 1]
        return x
    return Law(draw, lambda x: log_step(x[:, 0]) + sum(log_step(x[:, j] - memory * x[:, j - 1]) for j in range(1, d)))


def three_together(x):
    return np.log1p(.9 * np.tanh(2 * x[:, 0] * x[:, 1] * x[:, 2]))


def later_pairs():
    """name: (rows of the numerator, of the denominator, numerator, denominator, options of the program)"""
    kinds = columns(gamma(2), poisson(3), (lambda rng, n: rng.integers(4, size=n), stats.randint(0, 4)))
    half = 1 / np.sqrt(2)
    return {
        "mixtures in 5": (1500, 1500, mixture([.4, .3, .3], centres_in_5(21, 3), [.9, .8, 1]), mixture([.5, .5], centres_in_5(22, 2), [1.2, 1.2]), ""),
        "lognormal with zeros": (1000, 1000, with_zeros(.4, 0, .8, 2), with_zeros(.25, .3, .7, 2), ""),
        "thirty levels": (2000, 2000, many_levels(.8, False, 1), many_levels(.5, True, 0), "--categorical 0"),
        "spiral and mirror": (1500, 1500, mirrored_spiral(False), mirrored_spiral(True), ""),
        "multivariate t": (1000, 1000, student_law(.3, .4, 3), student_law(0, 0, 5), ""),
        "shells": (1000, 1000, shell(12, 2), shell(4, 1.6), ""),
        "Laplace steps": (1500, 1500, walk(lambda rng, n: rng.laplace(0, half, n), lambda x: stats.laplace.logpdf(x, 0, half)),
                          walk(lambda rng, n: rng.standard_normal(n), stats.norm.logpdf), ""),
        "same kinds": (1000, 1000, kinds, kinds, "--categorical 2"),
    }


def judged_pairs():
    return {
        "Gumbel's copula": (1500, 1500, gumbel_normal(2), normal_law([0, 0], [[1, .6], [.6, 1]]), ""),
        "angle and height": (1000, 1000, angle_and_height(True), angle_and_height(False), ""),
        "300 against 5000": (300, 5000, columns(*[logistic(.4, .6)] * 3), columns(*[gauss(0, 1.2)] * 3), ""),
        "kinds with shapes": (1000, 1000, kinds_with_shapes([.5, .3, .2], 1), kinds_with_shapes([.3, .3, .4], 1.2), ""),
        "truncated normals": (1000, 1000, truncated(0, 1, 3), truncated(.8, .7, 3), ""),
        "two rates": (1000, 1000, two_rates(.3, 4, 2), columns(*[gamma(1.5, 1.3)] * 2), ""),
        "three in 8": (2500, 2500, tilted(columns(*[gauss()] * 8), three_together, np.log(1.9)), columns(*[gauss()] * 8), ""),
    }


# ---- mutual information: draw(rng, n) -> x, y; the log ratio of rows ----------------------------------------------

def margin_of(y, log_given, blocks=400):
    """log of the mean over a grid of p(y|x), for rows of y."""
    parts = [logsumexp(log_given(b), axis=1) for b in np.array_split(y, max(1, len(y) // blocks))]
    return np.concatenate(parts) - np.log(len(GRID))


STUDENT_SHAPE = np.array([[1, .3, .5, .2], [.3, 1, .1, .4], [.5, .1, 1, .3], [.2, .4, .3, 1]])


def student_2_and_2(rng, n):
    both = rng.standard_normal((n, 4)) @ np.linalg.cholesky(STUDENT_SHAPE).T / np.sqrt(rng.chisquare(4, (n, 1)) / 4)
    return both[:, :2], both[:, 2:]


def student_2_and_2_ratio(x, y):
    parts = [stats.multivariate_t([0, 0], STUDENT_SHAPE[s, s], 4).logpdf(v) for s, v in ((slice(0, 2), x), (slice(2, 4), y))]
    return stats.multivariate_t(np.zeros(4), STUDENT_SHAPE, 4).logpdf(np.c_[x, y]) - parts[0] - parts[1]


def gumbel_joint(rng, n):
    u = gumbel_pair(rng, n, 1.8)
    return u[:, :1], u[:, 1:]


def gumbel_joint_ratio(x, y):
    return gumbel_log_density(np.c_[x, y], 1.8)


TWELVE_MEANS, TWELVE_SDS = 1.5 * np.cos(5 * np.arange(12)), .4 + .4 * (np.arange(12) % 3)


def twelve_levels(rng, n):
    level = rng.integers(12, size=(n, 1))
    return level.astype(float), TWELVE_MEANS[level] + TWELVE_SDS[level] * rng.standard_normal((n, 1))


def twelve_levels_ratio(x, y):
    level = x[:, 0].astype(int)
    own = stats.norm.logpdf(y[:, 0], TWELVE_MEANS[level], TWELVE_SDS[level])
    return own - logsumexp(stats.norm.logpdf(y, TWELVE_MEANS[None], TWELVE_SDS[None]), axis=1) + np.log(12)


def often_zero(rng, n):
    """y is 0 with the probability 1 / (1 + e^x), else lognormal around x / 2."""
    x = rng.standard_normal((n, 1))
    return x, np.where(rng.uniform(size=(n, 1)) < expit(-x), 0, np.exp(.5 * x + .5 * rng.standard_normal((n, 1))))


def often_zero_ratio(x, y):
    at = stats.norm.ppf(GRID)
    zero = y[:, 0] == 0
    log_y = np.log(np.where(zero, 1, y[:, 0]))

    def given(v, at):
        return -np.logaddexp(0, -at) + stats.norm.logpdf(v, .5 * at, .5)
    there = given(log_y, x[:, 0]) - margin_of(log_y[:, None], lambda v: given(v, at[None]))
    return np.where(zero, -np.logaddexp(0, x[:, 0]) - np.log(expit(-at).mean()), there)


WAVES = (lambda e: np.sin(2 * e[0]) + .5 * e[1] ** 2)(np.random.default_rng(8).standard_normal((2, 20000)))
WAVE_CENTRES = np.quantile(WAVES, GRID)


def wave_in_12(rng, n):
    """y = sin 2 x_1 + x_2^2 / 2 + .5 e, among 12 columns of x."""
    x = rng.standard_normal((n, 12))
    return x, np.sin(2 * x[:, :1]) + .5 * x[:, 1:2] ** 2 + .5 * rng.standard_normal((n, 1))


def wave_in_12_ratio(x, y):
    own = stats.norm.logpdf(y[:, 0], np.sin(2 * x[:, 0]) + .5 * x[:, 1] ** 2, .5)
    return own - margin_of(y, lambda v: stats.norm.logpdf(v, WAVE_CENTRES[None], .5))


def two_ways(rng, n):
    x = rng.standard_normal((n, 2))
    return x, np.c_[x[:, 0], np.abs(x[:, 1])] + .5 * rng.standard_normal((n, 2))


def two_ways_ratio(x, y):
    half = stats.halfnorm.ppf(GRID)
    first = stats.norm.logpdf(y[:, 0], x[:, 0], .5) - stats.norm.logpdf(y[:, 0], 0, np.sqrt(1.25))
    own = stats.norm.logpdf(y[:, 1], np.abs(x[:, 1]), .5)
    return first + own - margin_of(y[:, 1:], lambda v: stats.norm.logpdf(v, half[None], .5))


def phase(rng, n):
    x = rng.uniform(-np.pi, np.pi, (n, 1))
    return x, np.c_[np.cos(x), np.sin(x)] + .4 * rng.standard_normal((n, 2))


def phase_ratio(x, y):
    at = 2 * np.pi * GRID

    def given(v, at):
        return stats.norm.logpdf(v[0], np.cos(at), .4) + stats.norm.logpdf(v[1], np.sin(at), .4)
    return given(y.T, x[:, 0]) - margin_of(y, lambda v: given(v.T[:, :, None], at[None]))


def ten_tries(rng, n):
    x = rng.standard_normal((n, 1))
    return x, rng.binomial(10, expit(1.5 * x)).astype(float)


def ten_tries_ratio(x, y):
    at = expit(1.5 * stats.norm.ppf(GRID))
    margin = np.array([np.log(stats.binom.pmf(k, 10, at).mean()) for k in range(11)])
    return stats.binom.logpmf(y[:, 0], 10, expit(1.5 * x[:, 0])) - margin[y[:, 0].astype(int)]


def unlike_kinds(rng, n):
    return rng.gamma(2, size=(n, 2)), rng.poisson(3, (n, 2)).astype(float)


def growing_noise(rng, n):
    x = rng.standard_t(3, (n, 1))
    return x, x + (.2 + .5 * np.abs(x)) * rng.standard_normal((n, 1))


def growing_noise_ratio(x, y):
    at = stats.t.ppf(GRID, 3)

    def given(v, at):
        return stats.norm.logpdf(v, at, .2 + .5 * np.abs(at))
    return given(y[:, 0], x[:, 0]) - margin_of(y, lambda v: given(v, at[None]))


def later_joints():
    """name: (rows, how to draw, log ratio of rows, options of the program)"""
    return {
        "t in 2 + 2": (1500, student_2_and_2, student_2_and_2_ratio, ""),
        "twelve levels": (1500, twelve_levels, twelve_levels_ratio, "--categorical 0"),
        "wave in 12": (2500, wave_in_12, wave_in_12_ratio, ""),
        "phase": (1000, phase, phase_ratio, ""),
        "unlike kinds": (1000, unlike_kinds, lambda x, y: np.zeros(len(x)), ""),
    }


def judged_joints():
    return {
        "Gumbel's joint": (1000, gumbel_joint, gumbel_joint_ratio, ""),
        "often zero": (1000, often_zero, often_zero_ratio, ""),
        "two ways": (1500, two_ways, two_ways_ratio, ""),
        "ten tries": (1000, ten_tries, ten_tries_ratio, ""),
        "growing noise": (1000, growing_noise, growing_noise_ratio, ""),
    }


@functools.lru_cache(None)
def mutual_information(name):
    _, draw, ratio, _ = {**later_joints(), **judged_joints()}[name]
    return float(np.mean([ratio(*draw(np.random.default_rng([4, k]), 10_000)).mean() for k in range(20)]))
