"""DensityRatio: which side is which, scikit-learn's contract, keeping."""
import copy
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np

import n2ce
from n2ce import DensityRatio

FAST = {"critic": "quadratic"}


def labelled(n=400, d=2, seed=0):
    """Rows of N(1, I), label 1, and of N(0, I), label 0: ln r = sum(x) - d/2."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(1, 1, (n, d)), rng.normal(0, 1, (n, d))])
    return X, np.repeat([1, 0], n)


def forked_scores(ratio, rows, queue):
    queue.put(ratio.score_samples(rows))


class Frame:
    """A data frame, for who looks at its numbers and names alone."""

    def __init__(self, values, columns):
        self._values, self.columns = values, columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype=dtype)


class Names(unittest.TestCase):
    """A column is what it is called, in files and after loading too."""

    def setUp(self):
        X, y = labelled()
        self.p_q = X * [1, 10]
        num, den = self.p_q[y == 1], self.p_q[y == 0]
        self.ratio = DensityRatio(options=FAST).fit_samples(Frame(num, ["p", "q"]), den)
        self.expected = self.ratio.score_samples(self.p_q)

    def test_they_are_kept_in_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path, rows = os.path.join(folder, "model"), os.path.join(folder, "rows.csv")
            self.ratio.save(path)
            np.savetxt(rows, self.p_q[:, ::-1], "%.17g", ",", header="q,p", comments="")
            answer = n2ce.run("score", model=path, rows=rows)
            np.testing.assert_array_equal(answer.details["log_ratios"], self.expected)
            np.savetxt(rows, self.p_q, "%.17g", ",", header="q,r", comments="")
            with self.assertRaisesRegex(ValueError, '"p"'):
                n2ce.run("score", model=path, rows=rows)
            loaded = DensityRatio.load(path)
        self.assertEqual(list(loaded.feature_names_in_), ["p", "q"])
        for known in loaded, self.ratio:
            for rows in self.p_q, Frame(self.p_q, ["p", "q"]):
                np.testing.assert_array_equal(known.score_samples(rows), self.expected)
            with self.assertRaisesRegex(ValueError, "feature names"):
                known.score_samples(Frame(self.p_q[:, ::-1], ["q", "p"]))

    def test_names_that_tell_nothing_apart_are_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            DensityRatio(options=FAST).fit(Frame(labelled()[0], ["p", "p"]), labelled()[1]).save(path)
            self.assertFalse(hasattr(DensityRatio.load(path), "feature_names_in_"))


class Fitting(unittest.TestCase):
    def setUp(self):
        self.X, self.y = labelled()
        self.ratio = DensityRatio(options=FAST).fit(self.X, self.y)

    def test_log_ratio_is_numerator_over_denominator(self):
        rows = [[2, 2], [-1, -1], [0.5, 0.5]]
        got = self.ratio.score_samples(rows)
        for value, truth in zip(got, (3, -3, 0)):
            self.assertAlmostEqual(value, truth, delta=0.6)
        np.testing.assert_array_equal(got, self.ratio.decision_function(rows))

    def test_two_arrays_are_the_same_as_labels(self):
        other = DensityRatio(options=FAST).fit_samples(self.X[self.y == 1], self.X[self.y == 0])
        np.testing.assert_array_equal(other.score_samples(self.X), self.ratio.score_samples(self.X))

    def test_a_level_is_called_by_its_value(self):
        rng = np.random.default_rng(0)
        num = rng.choice([10., 20., 30.], (1000, 1), p=[.6, .3, .1])
        den = rng.choice([10., 20., 30.], (1000, 1), p=[.1, .3, .6])
        num[0] = 30  # which is seen first
        ratio = DensityRatio(options={"categorical": "0"}).fit_samples(num, den)
        got = ratio.score_samples([[10], [20], [30]])
        for value, truth in zip(got, (math.log(6), 0, -math.log(6))):
            self.assertAlmostEqual(value, truth, delta=0.4)
        with self.assertRaisesRegex(ValueError, '"0" is not a known category'):
            ratio.score_samples([[0]])

    def test_labels_in_any_order(self):
        order = np.argsort(np.arange(len(self.y)) % 2, kind="stable")  # each side keeps its order
        other = DensityRatio(options=FAST).fit(self.X[order], self.y[order])
        np.testing.assert_allclose(other.score_samples(self.X), self.ratio.score_samples(self.X),
                                   atol=0.1)

    def test_other_labels(self):
        for labels in ([False, True], [-1, 1], ["den", "num"], [1, 2]):
            ratio = DensityRatio(options=FAST).fit(self.X, np.array(labels)[self.y])
            self.assertEqual(list(ratio.classes_), labels)
            np.testing.assert_array_equal(ratio.score_samples(self.X),
                                          self.ratio.score_samples(self.X))

    def test_rows_that_lie_together_are_not_copied(self):
        from n2ce.density_ratio import _split
        _, num, den = _split(self.X, self.y)
        self.assertTrue(np.shares_memory(num, self.X) and np.shares_memory(den, self.X))

    def test_one_column(self):
        x = self.X[:, 0]
        ratio = DensityRatio(options=FAST).fit_samples(x[self.y == 1], x[self.y == 0])
        self.assertEqual(ratio.n_features_in_, 1)
        self.assertEqual(ratio.score_samples(x).shape, x.shape)

    def test_score(self):
        got = self.ratio.score(self.X, self.y)
        self.assertTrue(0.1 < got < math.log(2))
        self.assertLess(self.ratio.score(self.X, 1 - self.y), 0)

    def test_attributes(self):
        self.assertEqual((self.ratio.n_features_in_, list(self.ratio.classes_)), (2, [0, 1]))
        self.assertAlmostEqual(self.ratio.details_["estimate"], 1, delta=0.4)
        self.assertFalse(hasattr(self.ratio, "feature_names_in_"))

    def test_random_state(self):
        settings = dict(options={"critic": "net", "steps": 10})
        first, again, other = (DensityRatio(random_state=seed, **settings).fit(self.X, self.y)
                               .score_samples(self.X) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        self.assertFalse(np.array_equal(first, other))
        DensityRatio(random_state=np.random.default_rng(0), **settings).fit(self.X, self.y)

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "not fitted yet"):
            DensityRatio().score_samples(self.X)
        with self.assertRaisesRegex(ValueError, "y has 3 classes"):
            DensityRatio().fit(self.X, np.arange(len(self.X)) % 3)
        with self.assertRaisesRegex(ValueError, "y should be a 1d array of 800 labels"):
            DensityRatio().fit(self.X, self.y[:-1])
        with self.assertRaisesRegex(ValueError, "X has 3 features, but .* is expecting 2"):
            self.ratio.score_samples(np.zeros((1, 3)))
        with self.assertRaisesRegex(TypeError, "'widht'; did you mean 'width'"):
            DensityRatio(options={"widht": 3}).fit(self.X, self.y)
        with self.assertRaisesRegex(ValueError, 'method: "n2c" is not one of n2ce'):
            DensityRatio(method="n2c").fit(self.X, self.y)

    def test_failed_fit_keeps_the_old_one(self):
        before = self.ratio.score_samples(self.X)
        with self.assertRaises(ValueError):
            self.ratio.set_params(magnitude=0.5).fit(self.X, self.y)
        np.testing.assert_array_equal(self.ratio.score_samples(self.X), before)


class Keeping(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.X, cls.y = labelled(200)
        cls.ratio = DensityRatio(magnitude=20, random_state=3,
                                 options={"critic": "both", "steps": 10}).fit(cls.X, cls.y)
        cls.expected = cls.ratio.score_samples(cls.X)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "ratio.safetensors")

    def test_file(self):
        self.ratio.save(self.path)
        loaded = DensityRatio.load(self.path)
        np.testing.assert_array_equal(loaded.score_samples(self.X), self.expected)
        self.assertEqual((loaded.magnitude, loaded.random_state, loaded.n_features_in_), (20, 3, 2))

    def test_file_that_is_there(self):
        self.ratio.save(self.path)
        with self.assertRaises(FileExistsError):
            self.ratio.save(self.path)
        self.ratio.save(self.path, overwrite=True)

    def test_file_that_is_not_ours(self):
        with open(self.path, "wb") as file:
            file.write(b"not a model")
        with self.assertRaises(n2ce.BadData):
            DensityRatio.load(self.path)
        with self.assertRaises(OSError):
            DensityRatio.load(self.path + ".missing")

    def test_pickle_and_copy(self):
        for clone in pickle.loads(pickle.dumps(self.ratio)), copy.deepcopy(self.ratio):
            np.testing.assert_array_equal(clone.score_samples(self.X), self.expected)
            self.assertEqual(clone.get_params(), self.ratio.get_params())
        pickle.loads(pickle.dumps(DensityRatio()))

    def test_threads(self):
        results = []
        workers = [threading.Thread(target=lambda: results.append(
            self.ratio.score_samples(self.X))) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for result in results:
            np.testing.assert_array_equal(result, self.expected)
        self.assertEqual(len(results), 4)

    def test_forked_child(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork in a program with threads
            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            child = context.Process(target=forked_scores, args=(self.ratio, self.X, queue))
            child.start()
        np.testing.assert_array_equal(queue.get(timeout=60), self.expected)
        child.join()

    def test_forked_while_a_thread_scores(self):
        """Nobody is in the child who could let go of the model's lock."""
        rows, enough = np.tile(self.X, (50, 1)), threading.Event()

        def score_on_and_on():
            while not enough.is_set():
                self.ratio.score_samples(rows)

        worker = threading.Thread(target=score_on_and_on)
        worker.start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                context = multiprocessing.get_context("fork")
                for _ in range(4):
                    queue = context.Queue()
                    child = context.Process(target=forked_scores, args=(self.ratio, self.X, queue))
                    child.start()
                    np.testing.assert_array_equal(queue.get(timeout=60), self.expected)
                    child.join()
        finally:
            enough.set()
            worker.join()

    def test_scores_are_finite_or_refused(self):
        with self.assertRaisesRegex(n2ce.BadData, "row 1 .zero-based. has a score"):
            self.ratio.score_samples(np.vstack([self.X[:1], np.full((1, self.X.shape[1]), 1e200)]))

    def test_many_rows(self):
        """More than are scored in one call."""
        rows = np.tile(self.X, (200, 1))
        np.testing.assert_array_equal(self.ratio.score_samples(rows), np.tile(self.expected, 200))

    def test_model_outlives_the_rest(self):
        ratio = DensityRatio(options=FAST).fit(self.X, self.y)
        model = ratio._model
        del ratio
        self.assertEqual(len(model.columns), 2)


class Labels(unittest.TestCase):
    def test_missing_labels(self):
        X, y = labelled(20)
        for labels in (np.where(y == 1, np.nan, 0.0), np.where(np.arange(40) == 7, np.nan, y),
                       np.where(y == 1, None, 0)):
            with self.assertRaisesRegex(ValueError, "no label .NaN. for row"):
                DensityRatio(options=FAST).fit(X, labels)


class Parameters(unittest.TestCase):
    def test_get_and_set(self):
        ratio = DensityRatio(stages=2)
        self.assertEqual(ratio.get_params()["stages"], 2)
        self.assertIs(ratio.set_params(magnitude=7), ratio)
        self.assertEqual(ratio.magnitude, 7)
        with self.assertRaisesRegex(ValueError, "Invalid parameter 'magnitud'"):
            ratio.set_params(magnitud=7)

    def test_without_scikit_learn(self):
        code = """if True:
            import sys
            sys.modules["sklearn"] = None  # importing it fails
            import numpy as np, pickle
            from n2ce import DensityRatio
            rng = np.random.default_rng(0)
            ratio = DensityRatio(stages=1, options={"critic": "quadratic"})
            assert repr(ratio) == "DensityRatio(stages=1, options={'critic': 'quadratic'})", ratio
            assert ratio.set_params(magnitude=3).get_params()["magnitude"] == 3
            ratio.fit_samples(rng.normal(1, 1, 50), rng.normal(0, 1, 50))
            ratio = pickle.loads(pickle.dumps(ratio))
            assert ratio.score_samples([2.0])[0] > 0 > ratio.score_samples([-1.0])[0]
            try:
                ratio.set_params(x=1)
            except ValueError as error:
                print(error)
        """
        seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(seen.returncode, 0, seen.stderr)
        self.assertIn("Invalid parameter 'x'", seen.stdout)


if __name__ == "__main__":
    unittest.main()
