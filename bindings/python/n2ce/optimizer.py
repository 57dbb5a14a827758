"""OfflineOptimizer: designs to try next, from designs that were tried."""
import numbers
import re
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


# Options of the command line that have no say in fit(), and what does their work here.
_NO_OPTIONS = {
    "backtest": 'n2ce.run("optimize", X, y, backtest=...)',
    "checkpoint": "save() and load()",
    "count": "propose(q)",
    "designs": "X and y of fit()",
    "force": "save(path, overwrite=True)",
    "maximize": "minimize of OfflineOptimizer, and y of fit()",
    "minimize": "minimize of OfflineOptimizer",
    "output": "propose(), which returns the designs",
    "pareto": 'n2ce.run("optimize", designs="designs.csv", maximize="a,b", pareto=True)',
    "report": 'n2ce.run("optimize", X, y, report=...)',
    "resume": "save() and load()",
    "seed": "random_state of OfflineOptimizer",
}


def _check_options(options):
    for name, value in options.items():
        if name in _NO_OPTIONS and value is not None and value is not False:
            raise ValueError(f"options has {name!r}, which has no effect here; use "
                             f"{_NO_OPTIONS[name]}.")


def _is_missing(value):
    """None, NaN, and what pandas has for them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _levels_of(column, j):
    """(texts of the levels, the levels as they were given, the place of each value among them)."""
    missing = [i for i, value in enumerate(column) if _is_missing(value)]
    if missing:
        raise ValueError(f"X has no category in row {missing[0]}, column {j} ({len(missing)} are "
                         "missing there). Leave such rows out, or give them a name.")
    texts, first, places = np.unique(column.astype(str), return_index=True, return_inverse=True)
    return texts, [column[i] for i in first], places


def _numbers(X, categorical):
    """(array, and of each categorical column the texts of its levels and the levels themselves);
    values of these become their places among the levels."""
    if not categorical:
        return as_samples(X, "X", flat_is_column=False), {}, {}
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        raise ValueError(f"X has {table.ndim} dimension(s); Expected 2D array, one design a row.")
    out, texts, levels = np.empty(table.shape), {}, {}
    for j in range(table.shape[1]):
        if j in categorical:
            texts[j], levels[j], out[:, j] = _levels_of(table[:, j], j)
        else:
            out[:, j] = table[:, j].astype(float)
    return out, texts, levels


def _place(c, names, places, what):
    """The zero-based number of a column that is given by number or, for a data frame, by name."""
    place = names.index(c) if isinstance(c, str) and c in names else c
    if place not in places or isinstance(place, (bool, np.bool_)):
        raise ValueError(f"{what} has {c!r}, which is no column of X: they are numbered "
                         f"from 0 to {len(places) - 1} and, in a data frame, have names.")
    return int(place)


def _places(X, categorical):
    """Zero-based numbers of columns that are given by number, by name or as a mask."""
    names = list(getattr(X, "columns", []))
    places = range((np.shape(X) + (0, 0))[1])
    if categorical is None:
        return set()
    given = np.atleast_1d(np.asarray(categorical, dtype=object))
    if given.size and all(isinstance(c, (bool, np.bool_)) for c in given.flat):
        if given.shape != (len(places),):
            raise ValueError(f"categorical is a mask of {given.size} columns, and X has "
                             f"{len(places)}.")
        return {j for j in places if given[j]}
    return {_place(c, names, places, "categorical") for c in given}


def _split(text, separator):
    """The pieces of a list, whose names in double quotes may have separators."""
    return [piece.strip() for piece in
            re.findall(rf'(?:"[^"]*"|[^"{separator}])+', text)]


def _unquoted(text):
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1].replace('""', '"') if quoted else text


def _pairs(fix):
    """(column, value) of a dict, or of a text as the command line has it."""
    if not isinstance(fix, str):
        return list(dict(fix).items())
    found = []
    for piece in _split(fix, ","):
        sides = _split(piece, "=")
        if len(sides) < 2:
            raise ValueError(f"fix takes column=value, not {piece!r}.")
        found.append((_unquoted("=".join(sides[:-1])), _unquoted(sides[-1])))
    return found


def _code(value, texts, levels, column):
    """The place of a level that is given as X has it, or as a text."""
    for place, level in enumerate(levels):
        if texts[place] == str(value) or (level == value and not isinstance(value, str)):
            return place
        if isinstance(level, numbers.Number) and _number_or_none(value) == level:
            return place
    raise ValueError(f"fix: column {column!r} has no level {value!r}; the first of {len(texts)} is "
                     f"{str(texts[0])!r}.")


def _number_or_none(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _fixed(X, fix, texts, levels):
    """fix as the library takes it: columns and levels by their numbers."""
    if fix is None:
        return None
    names = list(getattr(X, "columns", []))
    places = range(np.shape(X)[1])
    items = []
    for column, value in _pairs(fix):
        known = column in names
        number = isinstance(column, str) and not known and column.isdecimal()
        j = _place(int(column) if number else column, names, places, "fix")
        items.append(f"{j}={_code(value, texts[j], levels[j], column) if j in texts else value}")
    return ",".join(items)


class OfflineOptimizer(BaseEstimator):
    """Proposes designs from a table of designs with their values, without trying any.

    Parameters
    ----------
    minimize : smaller values are better; otherwise larger ones are.
    categorical : columns that hold categories: numbers, names for a data frame, or a mask of all
        columns.
    ambition : standard deviations above the best value beyond which no prediction is believed;
        None: as trials with hidden rows say.
    time_limit : seconds of training, about; None: no limit.
    options : dict of further options of ``n2ce optimize``, with _ for -, e.g. {"effort": 0.5}.
        "fix" is a text as there or a dict, {"colour": "red"}, with levels as X has them.
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
        options = dict(self.options or {})
        _check_options(options)
        designs, texts, levels = _numbers(X, _places(X, self.categorical))
        values = as_samples(y, "y")
        if len(values) != len(designs):
            raise ValueError(f"X has {len(designs)} rows and y has {len(values)}; they must be "
                             "pairs.")
        keywords = {"ambition": self.ambition, "time_limit": self.time_limit,
                    "minimize" if self.minimize else "maximize": "y",
                    "categorical": ",".join(map(str, sorted(texts))) or None,
                    **options, "fix": _fixed(X, options.get("fix"), texts, levels),
                    "seed": seed_of(self.random_state)}
        model = OptimizerModel.fit(designs, values, keywords, threads_of(self.n_jobs),
                                   "OfflineOptimizer")
        names = getattr(X, "columns", range(designs.shape[1]))
        model.name([str(name) for name in names], texts)
        given = {j: dict(zip(texts[j], levels[j])) for j in texts}
        return self._adopt(model, given, np.asarray(X).dtype.kind in "biuf")

    def _adopt(self, model, given=None, all_numbers=False):
        self._model = model
        self._given, self._all_numbers = given or {}, all_numbers  # levels by their texts
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
        table = _with_levels(designs, levels, self._given)
        return Proposals(table.astype(float) if self._all_numbers else table, *columns,
                         self.details_)

    # ---- keeping ----

    def save(self, path, overwrite=False):
        """Writes the fitted optimiser, the designs included, as a safetensors file, whole or not at
        all. FileExistsError if it is there and may not be overwritten."""
        self._fitted_model().save(path, overwrite)

    @classmethod
    def load(cls, path, n_jobs=None):
        """A fitted OfflineOptimizer from a file of save(). It proposes what the saved one does, with
        levels as texts, which is what a file holds."""
        model = OptimizerModel.load(path, threads_of(n_jobs))
        return cls(minimize=model.details["direction"] == "minimize", n_jobs=n_jobs)._adopt(model)


def _with_levels(designs, levels, given):
    """Designs as X had them: numbers, or objects where there are categories."""
    if not levels:
        return designs
    table = designs.astype(object)
    for j, texts in levels.items():
        known = given.get(j, {})
        table[:, j] = [known.get(texts[int(code)], texts[int(code)]) for code in designs[:, j]]
    return table
