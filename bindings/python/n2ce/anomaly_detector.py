"""AnomalyDetector: which rows are not like the others."""
import hashlib
import numbers

import numpy as np

from ._arrays import as_samples, column_names
from ._base import BaseEstimator, NotFittedError, OutlierMixin
from ._core import DetectorModel, seed_of, threads_of

_LEAST_ROWS = 10


def _digests(samples):
    """A number for each row: of equal rows the same."""
    rows = np.ascontiguousarray(samples, np.float64) + 0.0  # -0 is 0
    found = b"".join(hashlib.blake2b(row, digest_size=8).digest() for row in rows)
    return np.frombuffer(found, np.uint64)


class AnomalyDetector(OutlierMixin, BaseEstimator):
    """Learns from normal rows what is normal, and judges others.

    scikit-learn's conventions: what score_samples() and decision_function() say is larger for what
    is more usual, and predict() says 1 for what is usual and -1 for what is odd. PyOD's attributes
    are there too, with its sign: larger is odder, and 1 is odd.

    Parameters
    ----------
    alpha : the share of normal rows that predict() may call odd, between 0 and 1.
    parts : what a score is made of, of "near", "margins" and "ratio"; None: all of them.
    options : dict of further options of ``n2ce detect``, with _ for -, e.g. {"max_rows": 20000}.
    random_state : None (a fixed seed: the same call gives the same result), a whole number, a numpy
        Generator or a RandomState.
    n_jobs : threads; None or -1 for one a core. The result does not depend on it.

    Attributes
    ----------
    n_features_in_ : columns.
    feature_names_in_ : their names, if fitted on a data frame whose columns are all texts.
    decision_scores_ : how odd each row of fit() is, by what was learnt from others.
    threshold_ : what a share of alpha of them exceeds; rows above it are odd.
    labels_ : of the rows of fit(): 1 above the threshold, else 0.
    offset_ : minus the threshold: decision_function() is score_samples() minus this.
    details_ : what the detector is, a dict.
    """

    def __init__(self, alpha=0.05, parts=None, options=None, random_state=None, n_jobs=None):
        self.alpha = alpha
        self.parts = parts
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        """A missing value is NaN."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ---- fitting ----

    def fit(self, X, y=None):
        """Learns from normal rows; y is not looked at. Returns self."""
        if not isinstance(self.alpha, numbers.Real) or not 0 < self.alpha < 1:
            raise ValueError(f"alpha is {self.alpha!r}; it must be a number between 0 and 1.")
        samples = as_samples(X, "X", flat_is_column=False)
        if len(samples) < _LEAST_ROWS:
            raise ValueError(f"X has n_samples = {len(samples)}; at least {_LEAST_ROWS} are needed "
                             "to tell what is normal.")
        keywords = {"parts": self.parts, **(self.options or {}),
                    "seed": seed_of(self.random_state)}
        model = DetectorModel.fit(samples, keywords, threads_of(self.n_jobs), "AnomalyDetector")
        model.name_columns(column_names(X))
        self._adopt(model, X)
        self._set_threshold(model.score_fitted(samples))
        self._digests, first = np.unique(_digests(samples), return_index=True)
        self._digest_scores = self.decision_scores_[first]
        return self

    def fit_predict(self, X, y=None):
        """fit(X), and 1 for what is usual among its rows, -1 for what is odd: labels_, each row by
        what was learnt from others."""
        return np.where(self.fit(X).labels_ == 1, -1, 1)

    def _adopt(self, model, X=None):
        self._model = model
        self.details_ = model.details
        self.n_features_in_ = len(self.details_["columns"])
        names = column_names(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _set_threshold(self, scores):
        self.decision_scores_ = scores
        self.threshold_ = float(np.quantile(scores, 1 - self.alpha))
        self.offset_ = -self.threshold_
        self.labels_ = (scores > self.threshold_).astype(int)

    # ---- using ----

    def _judge(self, X):
        if not hasattr(self, "_model"):
            raise NotFittedError("This AnomalyDetector is not fitted yet; call fit() first.")
        samples = as_samples(X, "X", flat_is_column=False)
        if samples.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {samples.shape[1]} features, but AnomalyDetector is expecting "
                             f"{self.n_features_in_} features as input.")
        names, known = column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError("The feature names should match those that were passed during fit: "
                             f"{list(known)}, not {list(names)}.")
        return self._model.score(samples)

    def _scores(self, X):
        """Of a row of fit(), which most of the detector knows, that of decision_scores_."""
        scores = self._judge(X)[0]
        digests = _digests(as_samples(X, "X"))
        at = np.minimum(np.searchsorted(self._digests, digests), len(self._digests) - 1)
        return np.where(self._digests[at] == digests, self._digest_scores[at], scores)

    def score_samples(self, X):
        """How usual each row is: minus the score of ``n2ce detect``; of a row of fit(), by what was
        learnt from others."""
        return -self._scores(X)

    def decision_function(self, X):
        """The same minus offset_: negative for what is odd."""
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        """1 for what is usual, -1 for what is odd."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def p_values(self, X):
        """Conformal p-values: uniform for rows like the normal ones, small for odd ones."""
        return self._judge(X)[1]

    # ---- keeping ----

    def save(self, path, overwrite=False):
        """Writes the fitted detector, its normal rows included, as the file that ``n2ce detect
        --model`` reads, whole or not at all."""
        if not hasattr(self, "_model"):
            raise NotFittedError("This AnomalyDetector is not fitted yet; call fit() first.")
        self._model.save(path, overwrite)
