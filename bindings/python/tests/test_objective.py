"""n2ce_loss and its companions against closed forms."""
import math
import unittest

import numpy as np

import n2ce

SOFTPLUS = lambda x: np.logaddexp(0, x)  # noqa: E731


def formula(num, den, m, family="n2ce"):
    if family == "nwj":
        return np.mean(-num) + np.mean(np.exp(den))
    shift = np.log(m) if family == "n2ce" else 0
    return np.mean(SOFTPLUS(shift - num)) + m * np.mean(SOFTPLUS(den - np.log(m)))


class Loss(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(0)
        self.num, self.den = rng.normal(1, 2, (5, 3)), rng.normal(-1, 2, 8)

    def test_is_the_formula(self):
        for family in ("n2ce", "nwj", "neg-reweight"):
            for m in (1, 10, 1e6):
                loss = n2ce.n2ce_loss(self.num, self.den, m, family=family)
                self.assertAlmostEqual(loss / formula(self.num, self.den, m, family), 1, 12)

    def test_blind_critic(self):
        for m in (1, 100):
            self.assertAlmostEqual(n2ce.n2ce_loss(np.zeros(3), np.zeros(2), m), n2ce.bound_cap(m))

    def test_gradient_is_that_of_differences(self):
        settings = dict(regularisation=0.1, stage_weights=[1, 0.5],
                        stage_num=np.arange(15).reshape(5, 3) % 2, stage_den=np.arange(8) % 2)
        loss, grad_num, grad_den = n2ce.n2ce_loss_and_gradient(self.num, self.den, 10, **settings)
        self.assertEqual(loss, n2ce.n2ce_loss(self.num, self.den, 10, **settings))
        self.assertEqual((grad_num.shape, grad_den.shape), (self.num.shape, self.den.shape))
        step, at = 1e-6, (2, 1)
        up, down = self.num.copy(), self.num.copy()
        up[at] += step
        down[at] -= step
        slope = (n2ce.n2ce_loss(up, self.den, 10, **settings)
                 - n2ce.n2ce_loss(down, self.den, 10, **settings)) / (2 * step)
        self.assertAlmostEqual(slope, grad_num[at], 8)

    def test_types_and_strides(self):
        expected = n2ce.n2ce_loss(self.num, self.den, 3)
        f32 = n2ce.n2ce_loss_and_gradient(self.num.astype("f4"), self.den.astype("f4"), 3)
        self.assertAlmostEqual(f32[0], expected, 5)
        self.assertEqual(f32[1].dtype, np.float32)
        self.assertEqual(n2ce.n2ce_loss(self.num.T, self.den[::-1], 3), expected)
        self.assertEqual(n2ce.n2ce_loss([1, 2], [0]), n2ce.n2ce_loss([1.0, 2.0], [0.0]))
        mixed = n2ce.n2ce_loss(self.num.astype("f4"), self.den, 3)
        self.assertAlmostEqual(mixed, expected, 5)

    def test_diagnostics(self):
        seen = n2ce.diagnostics([1.0, 3.0], [-1.0, 0.0], 10)
        self.assertEqual((seen["mean_num"], seen["mean_den"]), (2, -0.5))
        self.assertAlmostEqual(seen["kl_bound"], n2ce.bound_cap(10) - seen["loss"])
        self.assertAlmostEqual(seen["js_cap"], math.log(2))

    def test_errors(self):
        with self.assertRaisesRegex(n2ce.NotFinite, "Logit 1 of the denominator is nan"):
            n2ce.n2ce_loss([0.0], [0.0, math.nan])
        with self.assertRaisesRegex(ValueError, "magnitude M is 0.5"):
            n2ce.n2ce_loss([0.0], [0.0], 0.5)
        with self.assertRaisesRegex(ValueError, "family is 'nce'; it must be one of 'n2ce'"):
            n2ce.n2ce_loss([0.0], [0.0], family="nce")
        with self.assertRaisesRegex(ValueError, "no logits"):
            n2ce.n2ce_loss([], [0.0])
        with self.assertRaises(OverflowError):
            n2ce.n2ce_loss([0.0], [800.0], family="nwj")

    def test_stages_are_checked(self):
        for settings, message in (
                (dict(stage_num=[0]), "need stage_weights"),
                (dict(stage_weights=[1]), "stage_num is missing"),
                (dict(stage_weights=[1], stage_num=[0], stage_den=[0]), "stage_den is 1 long"),
                (dict(stage_weights=[1], stage_num=[1], stage_den=[0, 0]), "Stage 1 of numerator"),
                (dict(stage_weights=[1], stage_num=[-1], stage_den=[0, 0]), "whole numbers"),
                (dict(stage_weights=[1], stage_num=[0.5], stage_den=[0, 0]), "whole numbers"),
                (dict(stage_weights=[-1], stage_num=[0], stage_den=[0, 0]), "weight 0 is -1")):
            with self.assertRaisesRegex(ValueError, message):
                n2ce.n2ce_loss([0.0], [0.0, 0.0], **settings)

    def test_closed_forms(self):
        self.assertAlmostEqual(n2ce.magnitude_for(1000), 100)
        self.assertEqual(n2ce.magnitude_for(100, 1), 10)
        with self.assertRaisesRegex(ValueError, "n is 0"):
            n2ce.magnitude_for(0)
        with self.assertRaisesRegex(ValueError, "magnitude is 0.5"):
            n2ce.bound_cap(0.5)


if __name__ == "__main__":
    unittest.main()
