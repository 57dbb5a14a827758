"""n2ce.torch against numerical differences and against the library on arrays."""
import itertools
import unittest

import n2ce

try:
    import torch
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed; n2ce.torch was not tested")

from n2ce.torch import N2CELoss, _formula, _settings, n2ce_loss

STAGES = dict(stage_weights=[1.0, 0.5, 0.0], stage_num=[0, 1, 2, 0, 1],
              stage_den=(torch.arange(6) % 3).reshape(2, 3))
CASES = list(itertools.product(("n2ce", "nwj", "neg-reweight"), (1, 10.0, 1e12), (0, 0.1),
                               ({}, STAGES)))


def logits(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    num = torch.randn(5, 1, generator=generator, dtype=dtype, requires_grad=True)
    den = torch.randn(2, 3, generator=generator, dtype=dtype, requires_grad=True)
    return num, den


def formula(num, den, magnitude, family="n2ce", regularisation=0.0, **stages):
    """What tensors on other devices get."""
    stages = [stages.get(key) for key in STAGES]
    return _formula(num, den, **_settings(num, den, family, magnitude, regularisation, stages))


class Loss(unittest.TestCase):
    def test_first_and_second_gradients(self):
        for family, m, penalty, stages in CASES:
            for loss in n2ce_loss, formula:
                def f(num, den):
                    return loss(num, den, m, family=family, regularisation=penalty, **stages)
                with self.subTest(family=family, m=m, penalty=penalty, loss=loss.__name__):
                    self.assertTrue(torch.autograd.gradcheck(f, logits()))
                    self.assertTrue(torch.autograd.gradgradcheck(f, logits()))

    def test_value_is_the_librarys(self):
        num, den = logits()
        for family, m, penalty, stages in CASES:
            settings = dict(family=family, regularisation=penalty, **stages)
            expected = n2ce.n2ce_loss(num.detach(), den.detach(), m, **settings)
            for loss in n2ce_loss, formula:
                got = loss(num, den, m, **settings).item()
                self.assertAlmostEqual(got / expected, 1, 12, settings)

    def test_types(self):
        reference = n2ce_loss(*logits(), 100)
        for dtype, digits in (torch.float32, 5), (torch.float16, 2), (torch.bfloat16, 1):
            num, den = (f.detach().to(dtype).requires_grad_() for f in logits())
            loss = n2ce_loss(num, den, 100)
            loss.backward()
            self.assertAlmostEqual(loss.item(), reference.item(), digits)
            self.assertEqual((loss.dtype, num.grad.dtype), (torch.float32, dtype))
        num, den = logits()
        self.assertAlmostEqual(n2ce_loss(num.float(), den, 100).item(), reference.item(), 5)

    def test_views_and_layouts(self):
        num, den = logits()
        expected = n2ce_loss(num, den, 10).item()
        self.assertEqual(n2ce_loss(num.reshape(-1), den.T, 10).item(), expected)
        wide = torch.stack([num, num * 0], -1)
        wide[..., 0].retain_grad()
        n2ce_loss(wide[..., 0], den, 10).backward()
        torch.testing.assert_close(num.grad, torch.autograd.grad(n2ce_loss(num, den, 10), num)[0])

    def test_one_side_only(self):
        num, den = logits()
        full = torch.autograd.grad(n2ce_loss(num, den, 10), (num, den))
        for create_graph in False, True:
            half, = torch.autograd.grad(n2ce_loss(num.detach(), den, 10), den,
                                        create_graph=create_graph)
            torch.testing.assert_close(half.detach(), full[1])
        with torch.no_grad():
            self.assertFalse(n2ce_loss(num, den, 10).requires_grad)

    def test_upstream_gradient(self):
        num, den = logits()
        once, = torch.autograd.grad(n2ce_loss(num, den), num)
        thrice, = torch.autograd.grad(3 * n2ce_loss(num, den), num)
        torch.testing.assert_close(3 * once, thrice)

    def test_critic_learns_the_ratio(self):
        """N(1,1) against N(0,1): ln r = x - 1/2."""
        torch.manual_seed(0)
        critic = torch.nn.Linear(1, 1)
        optimiser = torch.optim.Adam(critic.parameters(), 0.05)
        for _ in range(400):
            loss = n2ce_loss(critic(torch.randn(512, 1) + 1), critic(torch.randn(512, 1)), 10)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        self.assertAlmostEqual(critic.weight.item(), 1, delta=0.15)
        self.assertAlmostEqual(critic.bias.item(), -0.5, delta=0.15)

    def test_module(self):
        num, den = logits()
        module = N2CELoss(10, family="neg-reweight", regularisation=0.1)
        expected = n2ce_loss(num, den, 10, family="neg-reweight", regularisation=0.1, **STAGES)
        self.assertEqual(module(num, den, **STAGES), expected)
        self.assertEqual(repr(module),
                         "N2CELoss(magnitude=10, family='neg-reweight', regularisation=0.1)")

    def test_what_is_not_finite(self):
        num, den = logits()
        with self.assertRaisesRegex(ValueError, "Logit 0 of the numerator is"):
            n2ce_loss(num * float("nan"), den)
        self.assertTrue(n2ce_loss((num * float("nan")).half(), den).isnan())
        self.assertTrue(n2ce_loss(num, den * 0 + 800, family="nwj").isinf())

    def test_errors(self):
        num, den = logits()
        for magnitude in 0.5, float("inf"), float("nan"):
            with self.assertRaisesRegex(ValueError, "magnitude M is"):
                n2ce_loss(num, den, magnitude)
        with self.assertRaisesRegex(ValueError, "f_den is empty"):
            n2ce_loss(num, den[:0])
        with self.assertRaisesRegex(ValueError, "family is 'x'"):
            n2ce_loss(num, den, family="x")
        for kind in torch.float64, torch.float16:
            with self.assertRaisesRegex(ValueError, "stage_num is missing"):
                n2ce_loss(num.to(kind), den.to(kind), stage_weights=[1.0])


if __name__ == "__main__":
    unittest.main()
