"""OfflineOptimizer: designs to try next, from designs that were tried."""
from dataclasses import dataclass, field

import numpy as np

from ._arrays import as_samples
from ._base import BaseEstimator, NotFittedError
from ._core import run_task, seed_of, threads_of


@dataclass(frozen=True)
class Proposals:
    """Designs to try next, best prediction first."""
    designs: np.ndarray  # a row each, in the columns and units of X
    predicted: np.ndarray  # the value that is expected
    spread: np.ndarray  # how much the members of the model disagree about it
    log_prior: np.ndarray  # how usual the design is, nats, up to a constant
    distance: np.ndarray  # from the nearest design of X, in ranges of the columns
    details: dict = field(repr=False)  # the JSON object of the command line

    def __len__(self):
        return len(self.designs)


def _numbers(X, categorical):
    """(array, levels of each categorical column); texts become their places among the levels."""
    table = np.asarray(X, dtype=object) if categorical else X
    if not categorical:
        return as_samples(table, "X", flat_is_column=False), {}
    if table.ndim != 2:
        raise ValueError(f"X has {table.ndim} dimension(s); Expected 2D array, one design a row.")
    out, levels = np.empty(table.shape), {}
    for j in range(table.shape[1]):
        if j in categorical:
            levels[j], out[:, j] = np.unique(table[:, j].astype(str), return_inverse=True)
        else:
            out[:, j] = table[:, j].astype(float)
    return out, levels


def _places(X, categorical):
    """Zero-based numbers of columns that are given by number or, for a data frame, by name."""
    names = list(getattr(X, "columns", []))
    return {names.index(c) if isinstance(c, str) else int(c) for c in categorical or ()}


class OfflineOptimizer(BaseEstimator):
    """Proposes designs from a table of designs with their values, without trying any.

    Parameters
    ----------
    minimize : smaller values are better; otherwise larger ones are.
    categorical : columns that hold categories: numbers or, for a data frame, names.
    ambition : standard deviations above the best value beyond which no prediction is believed.
    time_limit : seconds of training, about; None: no limit.
    options : dict of further options of ``n2ce optimize``, with _ for -, e.g. {"effort": 0.5}.
    random_state : None (a fixed seed), a whole number, a numpy Generator or a RandomState.
    n_jobs : threads; None or -1 for one a core. The result does not depend on it.
    """

    def __init__(self, minimize=False, categorical=None, ambition=0.5, time_limit=None,
                 options=None, random_state=None, n_jobs=None):
        self.minimize = minimize
        self.categorical = categorical
        self.ambition = ambition
        self.time_limit = time_limit
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y):
        """Takes the designs, one a row, and their values. Training is part of propose(), whose
        chains start from as many designs as it is asked for. Returns self."""
        self._X, self._levels = _numbers(X, _places(X, self.categorical))
        self._y = as_samples(y, "y")
        if len(self._y) != len(self._X):
            raise ValueError(f"X has {len(self._X)} rows and y has {len(self._y)}; they must be "
                             "pairs.")
        self.n_features_in_ = self._X.shape[1]
        return self

    def propose(self, q=256):
        """At most q new designs, as Proposals; fewer only if the columns allow no more."""
        if not hasattr(self, "_X"):
            raise NotFittedError("This OfflineOptimizer is not fitted yet; call fit() first.")
        keywords = {"count": q, "ambition": self.ambition, "time_limit": self.time_limit,
                    "minimize" if self.minimize else "maximize": "y",
                    "categorical": ",".join(map(str, sorted(self._levels))) or None,
                    **(self.options or {}), "seed": seed_of(self.random_state)}
        answer = run_task("optimize", (self._X, self._y), keywords, threads_of(self.n_jobs),
                          "OfflineOptimizer")
        found = answer.details
        numbers = (found[key] for key in ("predicted", "spread", "log_prior", "distance"))
        return Proposals(self._designs(found["proposals"]), *map(np.array, numbers), found)

    def _designs(self, rows):
        """The rows as X had them: numbers, or objects where there are categories."""
        if not self._levels:
            return np.array(rows, dtype=float).reshape(-1, self.n_features_in_)
        return np.array([[self._levels[j][int(float(x))] if j in self._levels else float(x)
                          for j, x in enumerate(row)] for row in rows], dtype=object)
