"""OfflineOptimizer: proposals in the caller's own columns."""
import pickle
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy as np

import n2ce

FAST = {"effort": 0.05, "rounds": 4}


def designs(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, -((X - 0.5) ** 2).sum(1)


class Optimizer(unittest.TestCase):
    def propose(self, optimizer, X, y, q=16):
        return self.quietly(lambda: optimizer.fit(X, y).propose(q))

    def quietly(self, call, *arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", n2ce.Warning)
            return call(*arguments)

    def test_proposals_are_new_and_good(self):
        X, y = designs()
        found = self.propose(n2ce.OfflineOptimizer(options=FAST), X, y)
        self.assertEqual(found.designs.shape, (16, 2))
        self.assertEqual(len(np.unique(found.designs, axis=0)), 16)
        self.assertTrue((np.diff(found.predicted) <= 0).all())
        self.assertGreater(-((found.designs - 0.5) ** 2).sum(1).mean(), y.mean() + 1)

    def test_minimize_turns_the_sign(self):
        X, y = designs()
        up = self.propose(n2ce.OfflineOptimizer(options=FAST), X, y)
        down = self.propose(n2ce.OfflineOptimizer(minimize=True, options=FAST), X, -y)
        np.testing.assert_array_equal(up.designs, down.designs)
        np.testing.assert_allclose(up.predicted, -down.predicted)

    def test_categories_keep_their_names(self):
        X, y = designs()
        words = np.array(["red", "blue"])[(X[:, 0] > 0).astype(int)]
        table = np.column_stack([X.astype(object), words])
        found = self.propose(n2ce.OfflineOptimizer(categorical=[2], options=FAST), table, y)
        self.assertTrue(set(found.designs[:, 2]) <= {"red", "blue"})

    def test_categories_are_columns(self):
        X, y = designs()
        for wrong in ([-1], [2], ["colour"], "colour", [0.5]):
            with self.assertRaisesRegex(ValueError, "no column of X"):
                n2ce.OfflineOptimizer(categorical=wrong).fit(X, y)

    def test_categories_may_be_a_mask(self):
        X, y = designs()
        table = np.column_stack([X.astype(object), np.where(X[:, 0] > 0, "red", "blue")])
        by_number = self.propose(n2ce.OfflineOptimizer(categorical=[2], options=FAST), table, y)
        for mask in ([False, False, True], np.array([False, False, True])):
            found = self.propose(n2ce.OfflineOptimizer(categorical=mask, options=FAST), table, y)
            self.assertEqual(found.designs.tolist(), by_number.designs.tolist())
        with self.assertRaisesRegex(ValueError, "a mask of 2 columns, and X has 3"):
            n2ce.OfflineOptimizer(categorical=[False, True]).fit(table, y)

    def test_categories_keep_their_type(self):
        X, y = designs()
        sizes = np.where(X[:, 0] > 0, 20, 30)
        optimizer = n2ce.OfflineOptimizer(categorical=[2], options=FAST)
        found = self.propose(optimizer, np.column_stack([X, sizes]), y)
        self.assertEqual(found.designs.dtype, float)
        self.assertTrue(set(found.designs[:, 2]) <= {20, 30})
        table = np.column_stack([X.astype(object), [int(size) for size in sizes]])
        found = self.propose(optimizer, table, y)
        self.assertTrue(all(type(size) is int for size in found.designs[:, 2]))
        again = self.quietly(pickle.loads(pickle.dumps(optimizer)).propose, 16)
        self.assertEqual(again.designs.tolist(), found.designs.tolist())

    def test_categories_are_not_missing(self):
        X, y = designs()
        for missing in None, np.nan, float("nan"):
            table = np.column_stack([X.astype(object), np.where(X[:, 0] > 0, "red", "blue")])
            table[3, 2] = missing
            with self.assertRaisesRegex(ValueError, "no category in row 3, column 2"):
                n2ce.OfflineOptimizer(categorical=[2], options=FAST).fit(table, y)

    def test_levels_are_fixed_by_their_names(self):
        X, y = designs()
        table = np.column_stack([X.astype(object), np.where(X[:, 0] > 0, "red", "blue, dark")])
        for fix, j, value in (("2=red", 2, "red"), ('0=0.5, 2="blue, dark"', 2, "blue, dark"),
                              ({2: "red"}, 2, "red"), ({"0": 0.5}, 0, 0.5)):
            optimizer = n2ce.OfflineOptimizer(categorical=[2], options={**FAST, "fix": fix})
            found = self.propose(optimizer, table, y, 4)
            self.assertEqual(set(found.designs[:, j]), {value})
        for fix, message in (("2=1", "no level '1'"), ("3=1", "no column of X"),
                             ("2", "fix takes column=value")):
            with self.assertRaisesRegex(ValueError, message):
                n2ce.OfflineOptimizer(categorical=[2], options={"fix": fix}).fit(table, y)

    def test_options_without_effect_are_refused(self):
        X, y = designs()
        for name in ("pareto", "count", "output", "backtest", "maximize", "checkpoint", "seed"):
            with self.assertRaisesRegex(ValueError, f"'{name}', which has no effect here; use"):
                n2ce.OfflineOptimizer(options={name: 1}).fit(X, y)

    def test_fit_fits_and_propose_proposes(self):
        X, y = designs()
        optimizer = n2ce.OfflineOptimizer(options=FAST)
        found = self.propose(optimizer, X, y)
        self.assertEqual(optimizer.details_["seen"], len(X))
        X[:] = y[:] = np.nan  # they are not needed any more
        again = self.quietly(optimizer.propose, 16)
        np.testing.assert_array_equal(found.designs, again.designs)
        np.testing.assert_array_equal(found.predicted, again.predicted)
        self.assertEqual(len(self.quietly(optimizer.propose, 5)), 5)

    def test_saved_loaded_and_pickled(self):
        X, y = designs()
        words = np.array(["red", "blue, or so"])[(X[:, 0] > 0).astype(int)]
        table = np.column_stack([X.astype(object), words])
        optimizer = n2ce.OfflineOptimizer(minimize=True, categorical=[2], options=FAST)
        found = self.propose(optimizer, table, -y)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "designs.safetensors")
            optimizer.save(path)
            with self.assertRaises(FileExistsError):
                optimizer.save(path)
            loaded = n2ce.OfflineOptimizer.load(path, n_jobs=1)
            with self.assertRaises(n2ce.BadData):
                n2ce.DensityRatio.load(path)
            path.write_bytes(path.read_bytes()[:-1])
            with self.assertRaises(n2ce.BadData):
                n2ce.OfflineOptimizer.load(path)
        self.assertTrue(loaded.minimize)
        for other in loaded, pickle.loads(pickle.dumps(optimizer)):
            same = self.quietly(other.propose, 16)
            self.assertEqual(found.designs.tolist(), same.designs.tolist())
            np.testing.assert_array_equal(found.predicted, same.predicted)
            self.assertEqual(other.details_, optimizer.details_)

    def test_mistakes(self):
        X, y = designs(20)
        with self.assertRaises(n2ce.BadData):
            n2ce.OfflineOptimizer().fit(X, np.ones(20))
        with self.assertRaisesRegex(TypeError, "did you mean 'effort'"):
            n2ce.OfflineOptimizer(options={"efort": 1}).fit(X, y)
        with self.assertRaisesRegex(ValueError, "q is 0"):
            self.propose(n2ce.OfflineOptimizer(options=FAST), X, y, 0)
        with self.assertRaises(ValueError):
            n2ce.OfflineOptimizer().fit(X, y[:5])
        with self.assertRaises(ValueError):
            n2ce.OfflineOptimizer().propose()


if __name__ == "__main__":
    unittest.main()
