"""AnomalyDetector: what it says of rows, and what it keeps."""
import pickle
import tempfile
import unittest
from pathlib import Path

import numpy as np

import n2ce

NEAR = ("near", "margins")  # quick: nothing is trained


class Rows(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(0)
        self.normal = rng.normal(size=(200, 3)) @ np.array([[1, .9, 0], [0, .3, 0], [0, 0, 1]])
        self.fresh = rng.normal(size=(100, 3)) @ np.array([[1, .9, 0], [0, .3, 0], [0, 0, 1]])
        self.odd = np.array([[2., -2., 0], [0, 0, 8], [np.nan, 0, 0]])
        self.detector = n2ce.AnomalyDetector(parts=NEAR).fit(self.normal)

    def test_odd_rows_are_told_from_usual_ones(self):
        scores = self.detector.score_samples(self.fresh)
        self.assertTrue((self.detector.score_samples(self.odd) < scores.min()).all())
        self.assertEqual(self.detector.predict(self.odd).tolist(), [-1, -1, -1])
        self.assertGreater((self.detector.predict(self.fresh) == 1).mean(), 0.85)
        np.testing.assert_allclose(self.detector.p_values(self.odd), 1 / 201)
        self.assertAlmostEqual(self.detector.p_values(self.fresh).mean(), 0.5, delta=0.15)

    def test_the_attributes_of_both_conventions(self):
        d = self.detector
        np.testing.assert_array_equal(d.decision_function(self.odd),
                                      d.score_samples(self.odd) - d.offset_)
        self.assertEqual(d.offset_, -d.threshold_)
        self.assertEqual(d.decision_scores_.shape, (200,))
        self.assertEqual(d.labels_.sum(), 10)  # alpha of 200
        np.testing.assert_array_equal(d.labels_, d.decision_scores_ > d.threshold_)

    def test_a_level_is_called_by_its_value(self):
        normal = np.random.default_rng(0).choice([20., 30., 10.], (200, 1))
        detector = n2ce.AnomalyDetector(parts=NEAR, options={"categorical": "0"}).fit(normal)
        self.assertGreater(detector.p_values([[10], [20], [30]]).min(), 0.006)
        np.testing.assert_allclose(detector.p_values([[0], [1], [40]]), 1 / 201)

    def test_rows_of_fit_are_judged_by_what_was_learnt_from_others(self):
        d = n2ce.AnomalyDetector(parts=NEAR)
        found = d.fit_predict(self.normal)
        self.assertEqual((found == -1).sum(), 10)  # alpha of 200
        np.testing.assert_array_equal(found == -1, d.labels_ == 1)
        np.testing.assert_array_equal(d.predict(self.normal[::-1]), found[::-1])
        np.testing.assert_array_equal(d.score_samples(self.normal[:7]), -d.decision_scores_[:7])
        copy = pickle.loads(pickle.dumps(d))
        np.testing.assert_array_equal(copy.predict(self.normal), found)

    def test_the_learned_ratio_sees_a_broken_correlation(self):
        ratio = n2ce.AnomalyDetector(parts="ratio").fit(self.normal)
        self.assertEqual(ratio.predict([[1., -1., 0]]).tolist(), [-1])
        self.assertEqual(ratio.predict([[1., 1., 0]]).tolist(), [1])

    def test_threads_do_not_matter(self):
        one = n2ce.AnomalyDetector(n_jobs=1).fit(self.normal)
        two = n2ce.AnomalyDetector(n_jobs=3).fit(self.normal)
        np.testing.assert_array_equal(one.score_samples(self.fresh), two.score_samples(self.fresh))
        np.testing.assert_array_equal(one.decision_scores_, two.decision_scores_)

    def test_a_column_is_what_it_is_called(self):
        class Frame(list):
            columns = ["p", "q", "r"]

        detector = n2ce.AnomalyDetector(parts=NEAR).fit(Frame((self.normal * [1, 9, 99]).tolist()))
        fresh = self.fresh * [1, 9, 99]
        self.assertEqual(detector.details_["columns"], ["p", "q", "r"])
        with tempfile.TemporaryDirectory() as folder:
            path, rows = Path(folder, "model.n2ce"), Path(folder, "rows.csv")
            detector.save(path)
            np.savetxt(rows, fresh[:, ::-1], "%.17g", ",", header="r,q,p", comments="")
            answer = n2ce.run("score", model=path, rows=rows)
        np.testing.assert_array_equal(answer.details["scores"], -detector.score_samples(fresh))

    def test_files_and_pickles_say_the_same(self):
        expected = self.detector.score_samples(self.fresh)
        copy = pickle.loads(pickle.dumps(self.detector))
        np.testing.assert_array_equal(copy.score_samples(self.fresh), expected)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.n2ce")
            self.detector.save(path)
            with self.assertRaises(FileExistsError):
                self.detector.save(path)
            rows = Path(folder, "rows.npy")
            np.save(rows, self.fresh)
            out = Path(folder, "out.csv")
            n2ce.run("detect", model=path, rows=rows, output=out)
            found = np.genfromtxt(out, delimiter=",", names=True)
        np.testing.assert_array_equal(found["score"], -expected)
        np.testing.assert_array_equal(found["p_value"], self.detector.p_values(self.fresh))

    def test_bad_input(self):
        with self.assertRaisesRegex(ValueError, "n_samples = 3"):
            n2ce.AnomalyDetector().fit(self.odd)
        with self.assertRaisesRegex(ValueError, "infinite"):
            self.detector.predict([[np.inf, 0, 0]])
        with self.assertRaisesRegex(ValueError, "2 features"):
            self.detector.predict([[0, 0]])
        with self.assertRaisesRegex(ValueError, "alpha is 2"):
            n2ce.AnomalyDetector(alpha=2).fit(self.normal)


if __name__ == "__main__":
    unittest.main()
