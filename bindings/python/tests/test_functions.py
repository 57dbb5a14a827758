"""Divergences, mutual information and the test, where the truth is known."""
import json
import math
import os
import signal
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import numpy as np

import n2ce
from n2ce import _core

FAST = dict(critic="quadratic")  # exact for Gaussians, and quick


def gaussians(n=2000, d=2, shift=1.0, seed=0):
    """N(shift, I) and N(0, I): KL = d shift^2 / 2 both ways."""
    rng = np.random.default_rng(seed)
    return rng.normal(shift, 1, (n, d)), rng.normal(0, 1, (n + 500, d))


class Frame:
    """A data frame, for who looks at its numbers and names alone."""

    def __init__(self, values, columns):
        self._values, self.columns = values, columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype=dtype)


class Columns(unittest.TestCase):
    def test_other_columns_are_refused(self):
        """Permuted columns would give another number, and nobody would be told."""
        num, den = gaussians(200)
        a, b = Frame(num, ["x", "y"]), Frame(den, ["y", "x"])
        calls = (lambda den: n2ce.kl_divergence(a, den, **FAST),
                 lambda den: n2ce.jensen_shannon(a, den, **FAST),
                 lambda den: n2ce.two_sample_test(a, den),
                 lambda den: n2ce.run("divergence", a, den, **FAST),
                 lambda den: n2ce.DensityRatio(options=FAST).fit_samples(a, den))
        for call in calls:
            with self.assertRaisesRegex(ValueError, r"\['x', 'y'\] and den has \['y', 'x'\]"):
                call(b)
            call(Frame(den, ["x", "y"]))
            call(den)


class Divergence(unittest.TestCase):
    def setUp(self):
        self.num, self.den = gaussians()

    def test_kl(self):
        for reverse in False, True:
            kl = n2ce.kl_divergence(self.num, self.den, reverse=reverse, **FAST)
            self.assertAlmostEqual(kl.value, 1, delta=0.15)
            self.assertTrue(kl.lo < kl.value < kl.hi)
            self.assertEqual((float(kl), kl.unit, kl.trusted), (kl.value, "nats", True))

    def test_directions(self):
        """The wide sample against the narrow one costs more than the other way round."""
        rng = np.random.default_rng(0)
        wide, narrow = rng.normal(0, 3, 3000), rng.normal(0, 1, 3000)
        forward = n2ce.kl_divergence(wide, narrow, **FAST).value  # ln(1/3) + 9/2 - 1/2
        back = n2ce.kl_divergence(wide, narrow, reverse=True, **FAST).value
        self.assertAlmostEqual(forward, 4 - math.log(3), delta=0.4)
        self.assertAlmostEqual(back, math.log(3) + 1 / 18 - 0.5, delta=0.1)

    def test_each_number_has_a_verdict_of_its_own(self):
        rng = np.random.default_rng(0)
        num, den = rng.uniform(0, 1, 1000), rng.uniform(0, 2, 1000)  # KL(den || num) is infinite
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kl = n2ce.kl_divergence(num, den)
            js = n2ce.jensen_shannon(num, den)
        for trusted in kl, js:
            self.assertEqual((trusted.trusted, trusted.verdict, trusted.reason),
                             (True, "trusted", None))
        with self.assertWarnsRegex(n2ce.Warning, "doubtful: .* beyond all of the other") as caught:
            back = n2ce.kl_divergence(num, den, reverse=True)
        self.assertEqual(caught.filename, __file__)
        self.assertEqual((back.trusted, back.verdict), (False, "doubtful"))
        self.assertIn("lower bound", back.reason)
        with self.assertWarns(n2ce.Warning):  # and JS is the one that is trusted
            self.assertFalse(n2ce.kl_divergence(den, num).trusted)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue(n2ce.jensen_shannon(den, num).trusted)

    def test_bits(self):
        nats = n2ce.kl_divergence(self.num, self.den, **FAST)
        bits = n2ce.kl_divergence(self.num, self.den, unit="bits", **FAST)
        self.assertAlmostEqual(bits.value * math.log(2), nats.value)
        self.assertEqual(bits.unit, "bits")

    def test_level(self):
        narrow = n2ce.kl_divergence(self.num, self.den, level=0.5, **FAST)
        wide = n2ce.kl_divergence(self.num, self.den, level=0.99, **FAST)
        self.assertTrue(wide.lo < narrow.lo < narrow.hi < wide.hi)

    def test_jensen_shannon(self):
        js = n2ce.jensen_shannon(self.num, self.den, **FAST)
        self.assertTrue(0.1 < js.value < math.log(2))

    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            js = n2ce.jensen_shannon(self.num, self.den, report=folder, **FAST)
            self.assertIn("<svg", (Path(folder) / "divergence.html").read_text())
            self.assertEqual(json.loads((Path(folder) / "divergence.json").read_text()),
                             js.details)
            self.assertEqual(len(js.details["report"]["columns"]), 2)
            with self.assertRaises(FileExistsError):
                n2ce.jensen_shannon(self.num, self.den, report=folder, **FAST)

    def test_same_distribution(self):
        kl = n2ce.kl_divergence(*gaussians(shift=0.0), **FAST)
        self.assertAlmostEqual(kl.value, 0, delta=0.05)
        self.assertTrue(kl.lo < 0.01)

    def test_network(self):
        kl = n2ce.kl_divergence(*gaussians(1000, 1), critic="net", steps=300)
        self.assertAlmostEqual(kl.value, 0.5, delta=0.25)
        self.assertEqual(kl.details["choices"]["parts"], "network")

    def test_same_call_same_result(self):
        settings = dict(critic="net", steps=20)
        one = n2ce.kl_divergence(self.num, self.den, **settings)
        self.assertEqual(one, n2ce.kl_divergence(self.num, self.den, n_jobs=1, **settings))
        other = n2ce.kl_divergence(self.num, self.den, random_state=5, **settings)
        self.assertNotEqual(one.value, other.value)
        self.assertEqual(other.details["options"]["seed"], 5)

    def test_arrays_of_any_layout(self):
        num, den = self.num.astype("f4"), self.den.astype("f4")
        expected = n2ce.kl_divergence(num.astype(float), den.astype(float), **FAST)
        wide = np.zeros((2 * len(num), 4), "f4")
        wide[::2, ::2] = num
        got = n2ce.kl_divergence(wide[::2, ::2], np.asfortranarray(den), **FAST)
        self.assertEqual(got, expected)

    def test_errors(self):
        with self.assertRaisesRegex(TypeError, r"kl_divergence\(\) got .* 'lvel'; .* 'level'"):
            n2ce.kl_divergence(self.num, self.den, lvel=0.9)
        with self.assertRaisesRegex(ValueError, "magnitude is 0.5; it must be between 1 and"):
            n2ce.kl_divergence(self.num, self.den, magnitude=0.5)
        with self.assertRaisesRegex(ValueError, "num has 2 columns and den has 1"):
            n2ce.kl_divergence(self.num, self.den[:, :1])
        self.num[3, 1] = math.nan
        with self.assertRaisesRegex(ValueError, "num, row 3, column 1"):
            n2ce.kl_divergence(self.num, self.den)

    def test_no_output_of_arrays(self):
        """What would not be written is refused."""
        with self.assertRaisesRegex(ValueError, "output is for fit on files"):
            n2ce.run("fit", self.num, self.den, output="model", **FAST)

    def test_what_is_not_trusted_warns(self):
        details = {"verdict": "doubtful", "reason": "cut short by --time-limit"}
        with self.assertWarnsRegex(n2ce.Warning, "^doubtful: cut short by time_limit"):
            _core.warn_unless_trusted(details)

    def test_ctrl_c(self):
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            n2ce.kl_divergence(self.num, self.den, critic="net", steps=10**9, width=512)
        self.assertLess(time.monotonic() - start, 20)


class MutualInformation(unittest.TestCase):
    def test_correlated_gaussians(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(2000, 2))
        y = 0.8 * x[:, 0] + 0.6 * rng.normal(size=2000)
        mi = n2ce.mutual_information(x, y, **FAST)
        self.assertAlmostEqual(mi.value, -0.5 * math.log(1 - 0.64), delta=0.1)
        self.assertAlmostEqual(mi.value, n2ce.mutual_information(y, x, **FAST).value, delta=0.01)

    def test_rows_must_be_pairs(self):
        with self.assertRaisesRegex(ValueError, "x has 20 rows and y has 30"):
            n2ce.mutual_information(np.zeros(20), np.zeros(30))


class TwoSampleTest(unittest.TestCase):
    def test_different(self):
        result = n2ce.two_sample_test(*gaussians(400), **FAST)
        self.assertLess(result.p, 0.01)
        self.assertGreater(result.accuracy, 0.65)

    def test_same(self):
        """p is uniform: of 20 about one is below 0.05."""
        small = sum(n2ce.two_sample_test(*gaussians(100, shift=0.0, seed=seed), permutations=99,
                                         **FAST).p <= 0.05 for seed in range(20))
        self.assertLessEqual(small, 4)


class Verbs(unittest.TestCase):
    def test_run_takes_arrays(self):
        num, den = gaussians(500)
        answer = n2ce.run("divergence", num, den, **FAST)
        self.assertIn("KL(num || den)", str(answer))
        self.assertEqual(answer.details["estimate"], n2ce.kl_divergence(num, den, **FAST).value)

    def test_number_of_arrays(self):
        with self.assertRaisesRegex(ValueError, "takes 2 matrices, not 1"):
            n2ce.run("divergence", np.zeros((20, 1)))

    def test_files(self):
        with self.assertRaisesRegex(ValueError, "divergence needs num FILE"):
            n2ce.run("divergence")
        with self.assertRaisesRegex(OSError, "/nowhere/a.csv"):
            n2ce.run("divergence", num="/nowhere/a.csv", den="/nowhere/b.csv")


if __name__ == "__main__":
    unittest.main()
