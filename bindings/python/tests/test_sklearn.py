"""scikit-learn's own checks, and the estimators among its tools."""
import unittest
import warnings

import numpy as np

try:
    from sklearn.utils.estimator_checks import check_estimator
except ImportError:
    raise unittest.SkipTest("scikit-learn is not installed; its checks were not run")

from n2ce import AnomalyDetector, DensityRatio

FAST = {"critic": "quadratic"}


class Checks(unittest.TestCase):
    def check(self, estimator):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = check_estimator(estimator, on_fail=None, on_skip=None)
        failed = {result["check_name"]: result["exception"] for result in results
                  if result["status"] == "failed"}
        self.assertEqual(failed, {})
        self.assertGreaterEqual(sum(r["status"] == "passed" for r in results), 40)

    def test_estimator_checks(self):
        self.check(DensityRatio(options=FAST))

    def test_estimator_checks_of_the_detector(self):
        self.check(AnomalyDetector(parts=("near", "margins")))


class Tools(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(0)
        self.X = np.vstack([rng.normal(1, 1, (100, 2)), rng.normal(0, 1, (100, 2))])
        self.y = np.repeat([1, 0], 100)

    def test_clone_pipeline_and_search(self):
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        pipeline = make_pipeline(StandardScaler(), DensityRatio(options=FAST))
        grid = {"densityratio__magnitude": [1, 10]}
        search = GridSearchCV(pipeline, grid, cv=StratifiedKFold(2), error_score="raise")
        search.fit(self.X, self.y)
        self.assertGreater(search.best_score_, 0)
        self.assertEqual(search.score_samples(self.X).shape, (200,))

    def test_column_names(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = pandas.DataFrame(self.X, columns=["a", "b"])
        ratio = DensityRatio(options=FAST).fit(frame, self.y)
        self.assertEqual(list(ratio.feature_names_in_), ["a", "b"])
        np.testing.assert_array_equal(ratio.score_samples(frame), ratio.score_samples(self.X))
        with self.assertRaisesRegex(ValueError, "feature names should match"):
            ratio.score_samples(frame[["b", "a"]])
        ratio.fit(self.X, self.y)
        self.assertFalse(hasattr(ratio, "feature_names_in_"))


if __name__ == "__main__":
    unittest.main()
