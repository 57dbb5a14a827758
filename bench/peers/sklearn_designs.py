"""What an engineer would do with scikit-learn instead of `n2ce optimize`.

    propose(method, space, designs, values, count, seed) -> designs

`space` has a column a factor: ("number", low, high), ("whole", low, high) or ("level", n). Candidates stay
within it. Models see standardised numbers and one-hot levels.

    gbm         gradient boosting ranks 40,000 candidates: half by chance, half mutants of the 256 best rows
    mlp         three small networks rank the same candidates
    mlp-evolve  the same networks, and three rounds of mutation and selection
    gp-ucb      a Gaussian process (Matern 5/2, a length scale a column, at most 500 rows); mean plus one
                standard deviation, over the same candidates and rounds
"""
import warnings

import numpy as np

METHODS = ("gbm", "mlp", "mlp-evolve", "gp-ucb")
GP_ROWS = 500


class Space:
    def __init__(self, space):
        self.kind = [s[0] for s in space]
        self.low = np.array([0 if s[0] == "level" else s[1] for s in space], float)
        self.high = np.array([s[1] - 1 if s[0] == "level" else s[2] for s in space], float)
        self.discrete = np.array([k != "number" for k in self.kind])
        self.levels = np.array([k == "level" for k in self.kind])

    def settle(self, x):
        x = np.clip(x, self.low, self.high)
        return np.where(self.discrete, np.round(x), x)

    def chance(self, rng, n):
        wide = np.where(self.discrete, 0.499, 0)
        return self.settle(rng.uniform(self.low - wide, self.high + wide, size=(n, len(self.low))))

    def mutate(self, rng, parents, n, size):
        x = parents[rng.integers(0, len(parents), n)]
        moved = x + rng.normal(size=x.shape) * (self.high - self.low) * size
        moved = np.where(self.levels, self.chance(rng, n), moved)
        return self.settle(np.where(rng.random(x.shape) < 0.4, moved, x))

    def features(self, x):
        parts = []
        for j, kind in enumerate(self.kind):
            if kind == "level":
                parts.append((x[:, j:j + 1] == np.arange(self.high[j] + 1)).astype(float))
            else:
                parts.append(x[:, j:j + 1])
        return np.hstack(parts)


def fit_boosting(x, y, seed):
    from sklearn.ensemble import HistGradientBoostingRegressor
    return HistGradientBoostingRegressor(random_state=seed).fit(x, y).predict


def fit_networks(x, y, seed):
    from sklearn.neural_network import MLPRegressor
    nets = [MLPRegressor(hidden_layer_sizes=(64, 64), max_iter=150, early_stopping=True,
                         random_state=seed * 3 + k).fit(x, y) for k in range(3)]
    return lambda v: np.mean([net.predict(v) for net in nets], 0)


def fit_process(x, y, seed):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    some = np.random.default_rng(seed).permutation(len(x))[:GP_ROWS]
    kernel = ConstantKernel(1.0) * Matern(np.full(x.shape[1], 2.0), (0.05, 100), nu=2.5) + WhiteKernel(0.1)
    gp = GaussianProcessRegressor(kernel, random_state=seed).fit(x[some], y[some])

    def upper(v):
        parts = [gp.predict(part, return_std=True) for part in np.array_split(v, len(v) // 4000 + 1)]
        return np.concatenate([mean + sd for mean, sd in parts])

    return upper


FIT = {"gbm": fit_boosting, "mlp": fit_networks, "mlp-evolve": fit_networks, "gp-ucb": fit_process}


def propose(method, space, designs, values, count, seed):
    warnings.filterwarnings("ignore")
    rng, s = np.random.default_rng(seed), Space(space)
    x, y = np.asarray(designs, float), np.asarray(values, float)
    y = (y - y.mean()) / y.std()
    seen = s.features(x)
    mean, sd = seen.mean(0), seen.std(0) + (seen.std(0) == 0)
    model = FIT[method]((seen - mean) / sd, y, seed)

    def rank(c, n):
        return c[np.argsort(-model((s.features(c) - mean) / sd), kind="stable")[:n]]

    c = np.concatenate([s.chance(rng, 20000), s.mutate(rng, x[np.argsort(y)[-256:]], 20000, 0.15)])
    for _ in range(3 if method in ("mlp-evolve", "gp-ucb") else 0):
        best = rank(c, 512)
        c = np.concatenate([best, s.mutate(rng, best, 6000, 0.05)])
    return rank(np.unique(c, axis=0), count)
