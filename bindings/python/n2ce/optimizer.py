"""OfflineOptimizer: designs to try next, from designs that were tried."""
import numbers
from dataclasses import dataclass, field

import numpy as np

from ._arrays import as_samples
from ._base import BaseEstimator, NotFittedError
from ._core import OptimizerModel, seed_of, threads_of


@dataclass(frozen=True)
class Proposals:
    """Designs to try next, best prediction first."""
    designs: np.ndarray  # a row each, in the columns and units of X
    predicted: np.ndarray  # the value that is expected
    spread: np.ndarray  # standard deviation of its error, as members and trials say
    log_prior: np.ndarray  # how usual the design is, nats, up to a constant
    distance: np.ndarray  # from the nearest design of X, in ranges of the columns
    details: dict = field(repr=False)  # what the model is: rows it saw, how well it explains them

    def __len__(self):
        return len(self.designs)


def _numbers(X, categorical):
    """(array, levels of each categorical column); texts become their places among the levels."""
    if not categorical:
        return as_samples(X, "X", flat_is_column=False), {}
    table = np.asarray(X, dtype=object)
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
    places = range((np.shape(X) + (0, 0))[1])
    found = set()
    for c in () if categorical is None else np.atleast_1d(np.asarray(categorical, dtype=object)):
        place = names.index(c) if isinstance(c, str) and c in names else c
        if place not in places:
            raise ValueError(f"categorical has {c!r}, which is no column of X: they are numbered "
                             f"from 0 to {len(places) - 1} and, in a data frame, have names.")
        found.add(int(place))
    return found


class OfflineOptimizer(BaseEstimator):
    """Proposes designs from a table of designs with their values, without trying any.

    Parameters
    ----------
    minimize : smaller values are better; otherwise larger ones are.
    categorical : columns that hold categories: numbers or, for a data frame, names.
    ambition : standard deviations above the best value beyond which no prediction is believed;
        None: as trials with hidden rows say.
    time_limit : seconds of training, about; None: no limit.
    options : dict of further options of ``n2ce optimize``, with _ for -, e.g. {"effort": 0.5}.
    random_state : None (a fixed seed), a whole number, a numpy Generator or a RandomState.
    n_jobs : threads; None or -1 for one a core. The result does not depend on it.

    Attributes
    ----------
    n_features_in_ : columns.
    details_ : what the model is, a dict: columns, rows it saw, best value, share of the variance of
        held-out rows that it explains, device.
    """

    def __init__(self, minimize=False, categorical=None, ambition=None, time_limit=None,
                 options=None, random_state=None, n_jobs=None):
        self.minimize = minimize
        self.categorical = categorical
        self.ambition = ambition
        self.time_limit = time_limit
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---- fitting ----

    def fit(self, X, y):
        """Learns from designs, one a row, and their values. Returns self."""
        designs, levels = _numbers(X, _places(X, self.categorical))
        values = as_samples(y, "y")
        if len(values) != len(designs):
            raise ValueError(f"X has {len(designs)} rows and y has {len(values)}; they must be "
                             "pairs.")
        keywords = {"ambition": self.ambition, "time_limit": self.time_limit,
                    "minimize" if self.minimize else "maximize": "y",
                    "categorical": ",".join(map(str, sorted(levels))) or None,
                    **(self.options or {}), "seed": seed_of(self.random_state)}
        model = OptimizerModel.fit(designs, values, keywords, threads_of(self.n_jobs),
                                   "OfflineOptimizer")
        names = getattr(X, "columns", range(designs.shape[1]))
        model.name([str(name) for name in names], levels)
        return self._adopt(model)

    def _adopt(self, model):
        self._model = model
        self.details_ = model.details
        self.n_features_in_ = len(self.details_["columns"])
        return self

    # ---- using ----

    def _fitted_model(self):
        if not hasattr(self, "_model"):
            raise NotFittedError("This OfflineOptimizer is not fitted yet; call fit() first.")
        return self._model

    def propose(self, q=256):
        """At most q new designs, as Proposals; fewer only if the columns allow no more. The same q
        gives the same designs every time."""
        model = self._fitted_model()
        if not isinstance(q, numbers.Integral) or q < 1:
            raise ValueError(f"q is {q!r}; it must be a positive whole number.")
        _, levels, designs, *columns = model.propose(int(q))
        return Proposals(_with_levels(designs, levels), *columns, self.details_)

    # ---- keeping ----

    def save(self, path, overwrite=False):
        """Writes the fitted optimiser, the designs included, as a safetensors file, whole or not at
        all. FileExistsError if it is there and may not be overwritten."""
        self._fitted_model().save(path, overwrite)

    @classmethod
    def load(cls, path, n_jobs=None):
        """A fitted OfflineOptimizer from a file of save(). It proposes what the saved one does."""
        model = OptimizerModel.load(path, threads_of(n_jobs))
        return cls(minimize=model.details["direction"] == "minimize", n_jobs=n_jobs)._adopt(model)


def _with_levels(designs, levels):
    """Designs as X had them: numbers, or objects where there are categories."""
    if not levels:
        return designs
    table = designs.astype(object)
    for j, texts in levels.items():
        table[:, j] = [texts[int(code)] for code in designs[:, j]]
    return table
