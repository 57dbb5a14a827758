"""What estimators inherit: scikit-learn's BaseEstimator and OutlierMixin, or as much of them as
their contract needs where scikit-learn is not installed."""
import inspect

try:
    from sklearn.base import BaseEstimator, OutlierMixin
    from sklearn.exceptions import NotFittedError
except ImportError:
    class NotFittedError(ValueError, AttributeError):
        """A method was called that needs fit() first."""

    class BaseEstimator:
        """Parameters are the arguments of __init__, stored under their own names."""

        @classmethod
        def _defaults(cls):
            parameters = inspect.signature(cls.__init__).parameters.values()
            return {p.name: p.default for p in parameters if p.name != "self"}

        def get_params(self, deep=True):
            """The parameters as a dict."""
            return {name: getattr(self, name) for name in self._defaults()}

        def set_params(self, **params):
            """Sets parameters by name; their values are checked in fit()."""
            for name, value in params.items():
                if name not in self._defaults():
                    raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid "
                                     f"parameters are: {list(self._defaults())}.")
                setattr(self, name, value)
            return self

        def __repr__(self):
            changed = (f"{name}={getattr(self, name)!r}" for name, default
                       in self._defaults().items() if getattr(self, name) is not default)
            return f"{type(self).__name__}({', '.join(changed)})"

    class OutlierMixin:
        """What outlier detectors have in common."""

        def fit_predict(self, X, y=None):
            """fit(X), and predict(X)."""
            return self.fit(X).predict(X)
