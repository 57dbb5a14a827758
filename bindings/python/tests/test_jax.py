"""n2ce.jax against numerical differences, against the library on arrays, and against n2ce.torch."""
import itertools
import unittest

import numpy as np

import n2ce

try:
    import jax
except ImportError:
    raise unittest.SkipTest("JAX is not installed; n2ce.jax was not tested")

import jax.numpy as jnp
from jax.test_util import check_grads

from n2ce.jax import n2ce_loss

STAGES = dict(stage_weights=[1.0, 0.5, 0.0], stage_num=[0, 1, 2, 0, 1],
              stage_den=(np.arange(6) % 3).reshape(2, 3))
FAMILIES = "n2ce", "nwj", "neg-reweight"
CASES = [*itertools.product(FAMILIES, (1, 1e12), (0,), ({},)),
         *itertools.product(FAMILIES, (10.0,), (0.1,), (STAGES,))]


def logits(kind=np.float64):
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 1)).astype(kind), rng.normal(size=(2, 3)).astype(kind)


def settings_of(case):
    family, m, penalty, stages = case
    return dict(magnitude=m, family=family, regularisation=penalty, **stages)


class Double(unittest.TestCase):
    """With jax_enable_x64."""

    def setUp(self):
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        self.addCleanup(jax.config.update, "jax_enable_x64", before)

    def test_value_and_gradient_are_the_librarys(self):
        num, den = logits()
        for case in CASES:
            settings = settings_of(case)
            expected = n2ce.n2ce_loss_and_gradient(num, den, **settings)

            def f(num, den):
                return n2ce_loss(num, den, **settings)
            for how in f, jax.jit(f):
                with self.subTest(**settings):
                    loss, slopes = jax.value_and_grad(how, (0, 1))(num, den)
                    np.testing.assert_allclose(how(num, den), expected[0], rtol=1e-12)
                    for got, wanted in zip((loss, *slopes), expected):
                        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-300)
                        self.assertEqual(got.shape, np.shape(wanted))

    def test_gradients_of_gradients(self):
        for case in CASES:
            def f(num, den):
                return n2ce_loss(num, den, **settings_of(case))
            with self.subTest(**settings_of(case)):
                check_grads(f, logits(), order=2, modes=["rev"], rtol=1e-4)

    def test_one_dtype_with_another(self):
        num, den = logits()
        mixed = n2ce_loss(num.astype(np.float32), den, 100)
        self.assertAlmostEqual(float(mixed), n2ce.n2ce_loss(num, den, 100), 5)


class Single(unittest.TestCase):
    """As JAX is out of the box."""

    def test_values_and_types(self):
        num, den = logits()
        for kind, digits in (jnp.float32, 5), (jnp.float16, 2), (jnp.bfloat16, 1):
            a, b = jnp.asarray(num, kind), jnp.asarray(den, kind)
            for how in n2ce_loss, jax.jit(n2ce_loss, static_argnums=2):
                loss, slope = jax.value_and_grad(how)(a, b, 100)
                self.assertAlmostEqual(float(loss), n2ce.n2ce_loss(num, den, 100), digits)
                self.assertEqual((loss.dtype, slope.dtype), (jnp.float32, kind))

    def test_large_magnitudes_and_logits(self):
        num, den = (f * 50 for f in logits(np.float32))
        for m in 1, 1e3, 1e12:
            expected = n2ce.n2ce_loss_and_gradient(num, den, m)
            both = jax.value_and_grad(lambda a, b: n2ce_loss(a, b, m), (0, 1))
            loss, slopes = jax.jit(both)(num, den)
            for got, wanted in zip((loss, *slopes), expected):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-20)

    def test_batches_of_losses(self):
        num, den = logits(np.float32)
        both = jax.vmap(lambda a, b: n2ce_loss(a, b, 10))(np.stack([num, 2 * num]),
                                                         np.stack([den, den]))
        np.testing.assert_allclose(both, [n2ce.n2ce_loss(k * num, den, 10) for k in (1, 2)],
                                   rtol=1e-6)

    def test_upstream_gradient(self):
        num, den = logits(np.float32)
        once = jax.grad(n2ce_loss)(num, den)
        thrice = jax.grad(lambda f: 3 * n2ce_loss(f, den))(num)
        np.testing.assert_allclose(3 * once, thrice, rtol=1e-6)

    def test_same_as_torch(self):
        try:
            import torch
        except ImportError:
            raise unittest.SkipTest("PyTorch is not installed")
        from n2ce.torch import n2ce_loss as torch_loss
        num, den = logits(np.float32)
        tensors = [torch.tensor(f, requires_grad=True) for f in (num, den)]
        theirs = torch_loss(*tensors, 100)
        theirs.backward()
        ours, slopes = jax.value_and_grad(n2ce_loss, (0, 1))(num, den, 100)
        self.assertEqual(float(ours), theirs.item())
        for slope, tensor in zip(slopes, tensors):
            np.testing.assert_array_equal(slope, tensor.grad.numpy())

    def test_critic_learns_the_ratio(self):
        """N(1,1) against N(0,1): ln r = x - 1/2."""
        @jax.jit
        def step(w, key):
            a, b = jax.random.normal(key, (2, 512))
            slope = jax.grad(lambda w: n2ce_loss(w[0] * (a + 1) + w[1], w[0] * b + w[1], 10))(w)
            return w - 0.3 * slope
        w = jnp.zeros(2)
        for key in jax.random.split(jax.random.key(0), 400):
            w = step(w, key)
        self.assertAlmostEqual(float(w[0]), 1, delta=0.15)
        self.assertAlmostEqual(float(w[1]), -0.5, delta=0.15)

    def test_what_is_not_finite(self):
        num, den = logits(np.float32)
        with self.assertRaisesRegex(ValueError, "Logit 0 of the numerator is"):
            n2ce_loss(num * np.nan, den)
        self.assertTrue(jnp.isnan(jax.jit(n2ce_loss)(num * np.nan, den)))
        for how in n2ce_loss, jax.jit(n2ce_loss, static_argnames="family"):
            self.assertTrue(jnp.isinf(how(num, den * 0 + 800, family="nwj")))

    def test_errors(self):
        num, den = logits(np.float32)
        for magnitude in 0.5, float("inf"), float("nan"):
            with self.assertRaisesRegex(ValueError, "magnitude M is"):
                n2ce_loss(num, den, magnitude)
        with self.assertRaisesRegex(ValueError, "f_den is empty"):
            n2ce_loss(num, den[:0])
        with self.assertRaisesRegex(ValueError, "family is 'x'"):
            n2ce_loss(num, den, family="x")
        with self.assertRaisesRegex(ValueError, "stage_num is missing"):
            n2ce_loss(num, den, stage_weights=[1.0])


if __name__ == "__main__":
    unittest.main()
