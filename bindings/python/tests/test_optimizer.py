"""OfflineOptimizer: proposals in the caller's own columns."""
import unittest
import warnings

import numpy as np

import n2ce

FAST = {"effort": 0.05, "rounds": 4}


def designs(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, -((X - 0.5) ** 2).sum(1)


class Optimizer(unittest.TestCase):
    def propose(self, optimizer, X, y, q=16):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", n2ce.Warning)
            return optimizer.fit(X, y).propose(q)

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

    def test_mistakes(self):
        X, y = designs(20)
        with self.assertRaises(n2ce.BadData):
            n2ce.OfflineOptimizer().fit(X, np.ones(20)).propose(4)
        with self.assertRaises(ValueError):
            n2ce.OfflineOptimizer().fit(X, y[:5])
        with self.assertRaises(ValueError):
            n2ce.OfflineOptimizer().propose()


if __name__ == "__main__":
    unittest.main()
