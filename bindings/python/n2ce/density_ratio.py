"""DensityRatio, the estimator with scikit-learn's conventions."""
import numpy as np

from ._arrays import as_samples, check_same_columns, column_names
from ._base import BaseEstimator, NotFittedError
from ._core import Model, run_task, seed_of, threads_of, warn_unless_trusted
from ._errors import keyword_of
from .objective import diagnostics

_OPTIONS = "method", "magnitude", "stages", "regularisation", "time_limit"


def _labels(y, n):
    if y is None:
        raise ValueError("DensityRatio requires y to be passed, but the target y is None: 1 marks "
                         "the numerator's rows, 0 the denominator's. For two arrays use "
                         "fit_samples(num, den).")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n,):
        raise ValueError(f"y should be a 1d array of {n} labels, one for each row of X; its shape "
                         f"is {y.shape}.")
    missing = np.flatnonzero([label is None or label != label for label in y]
                             if y.dtype == object else y != y)
    if len(missing):
        raise ValueError(f"y has no label (NaN) for row {missing[0]}"
                         + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
                         + ". Leave such rows out of X and y, or label them.")
    return y


def _split(X, y):
    """(labels, numerator rows, denominator rows). Where the rows of a label lie together they are
    a view of X, else a copy."""
    labels = np.unique(y)
    if len(labels) != 2:
        found = "1 class" if len(labels) == 1 else f"{len(labels)} classes"
        raise ValueError(f"y has {found}; it must have two: 1 for the numerator's rows, 0 for the "
                         "denominator's. Of other labels the greater one is the numerator.")
    sides = []
    for label in (labels[1], labels[0]):
        rows = np.flatnonzero(y == label)
        first, end = rows[0], rows[-1] + 1
        sides.append(X[first:end] if end - first == len(rows) else X[rows])
    return labels, *sides


class DensityRatio(BaseEstimator):
    """The log ratio ln p_num(x)/p_den(x) of the densities behind two samples, in nats.

    Parameters
    ----------
    method : "n2ce", or a baseline to compare with: "nce", "nwj", "neg-reweight", "dv", "infonce",
        "smile", "ulsif", "kliep".
    magnitude : the noise magnitude M >= 1 of the objective; "auto" chooses it from the data.
    stages : ratios of the telescope from denominator to numerator, or "auto".
    regularisation : lambda >= 0, the weight of the mean square of the learned log ratio.
    time_limit : stop training after this time and use what is there; None: no limit.
    options : dict of further options of ``n2ce fit``, with _ for -, e.g. {"folds": 5, "width": 64}.
    random_state : None (a fixed seed: the same call gives the same result), a whole number, a numpy
        Generator or a RandomState.
    n_jobs : threads; None or -1 for one a core. The result does not depend on it.

    Attributes
    ----------
    n_features_in_ : columns.
    feature_names_in_ : their names, if fitted on a data frame whose columns are all texts, or
        loaded from a file that has names.
    classes_ : the two labels of fit(): denominator, numerator.
    details_ : what was chosen and seen, a dict; the JSON of ``n2ce fit --json``.
    """

    def __init__(self, method="n2ce", magnitude="auto", stages="auto", regularisation=0.0,
                 time_limit=None, options=None, random_state=None, n_jobs=None):
        self.method = method
        self.magnitude = magnitude
        self.stages = stages
        self.regularisation = regularisation
        self.time_limit = time_limit
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        """Not a classifier for scikit-learn, but with a y of two values."""
        from sklearn.utils import ClassifierTags
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    # ---- fitting ----

    def fit(self, X, y):
        """Fits the ratio of the rows with label 1 (numerator) to those with label 0 (denominator).
        Of two other labels the greater one is the numerator. Returns self."""
        samples = as_samples(X, "X", flat_is_column=False)
        labels, num, den = _split(samples, _labels(y, len(samples)))
        return self._fit(num, den, labels, column_names(X))

    def fit_samples(self, num, den):
        """Fits the ratio of two arrays, which are used where they lie. Returns self."""
        check_same_columns(num, den)
        return self._fit(as_samples(num, "num"), as_samples(den, "den"), np.array([0, 1]),
                         column_names(num if column_names(num) is not None else den))

    def _fit(self, num, den, labels, names):
        keywords = {name: getattr(self, name) for name in _OPTIONS}
        keywords.update(self.options or {}, seed=seed_of(self.random_state))
        answer = run_task("fit", (num, den), keywords, threads_of(self.n_jobs), "DensityRatio")
        warn_unless_trusted(answer.details)
        answer.model.name_columns(names)
        self._adopt(answer.model, labels, answer.details)
        self._set_names(names)
        return self

    def _set_names(self, names):
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _adopt(self, model, labels, details):
        self._model = model
        self.classes_ = labels
        self.details_ = details
        self.n_features_in_ = len(model.columns)

    # ---- using ----

    def _fitted_model(self):
        if not hasattr(self, "_model"):
            raise NotFittedError("This DensityRatio is not fitted yet; call fit() first.")
        return self._model

    def _check_columns(self, X, samples):
        if samples.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {samples.shape[1]} features, but DensityRatio is expecting "
                             f"{self.n_features_in_} features as input.")
        names, known = column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError("The feature names should match those that were passed during fit: "
                             f"{list(known)}, not {list(names)}.")

    def score_samples(self, X):
        """Log ratios ln p_num/p_den of the rows, in nats."""
        model = self._fitted_model()
        samples = as_samples(X, "X", flat_is_column=self.n_features_in_ == 1)
        self._check_columns(X, samples)
        return model.score(samples)

    def decision_function(self, X):
        """The same as score_samples(): positive where the numerator is denser."""
        return self.score_samples(X)

    def score(self, X, y):
        """How much of the Jensen-Shannon divergence the ratio explains on labelled rows: ln 2 minus
        half the loss at magnitude 1, in nats; at most ln 2, greater is better, 0 is no better than
        a constant. Its scale does not depend on the parameters, so they can be chosen by it."""
        log_ratios = self.score_samples(X)
        _, num, den = _split(log_ratios, _labels(y, len(log_ratios)))
        return diagnostics(num, den)["js_bound"]

    # ---- keeping ----

    def save(self, path, overwrite=False):
        """Writes the fitted ratio as a safetensors file, whole or not at all; ``n2ce score`` and
        load() read it. FileExistsError if it is there and may not be overwritten."""
        self._fitted_model().save(path, overwrite)

    @classmethod
    def load(cls, path):
        """A fitted DensityRatio from a file of save() or of ``n2ce fit``, with the names of the
        file's columns."""
        model = Model.load(path)
        used = {keyword_of(name): value for name, value in model.details["options"].items()}
        params = {name: used.get(name) for name in _OPTIONS}
        ratio = cls(**params, random_state=used.get("seed"))
        ratio._adopt(model, np.array([0, 1]), model.details)
        names = model.columns
        numbers = [str(i) for i in range(len(names))]
        ratio._set_names(None if names == numbers else np.asarray(names, dtype=object))
        return ratio
