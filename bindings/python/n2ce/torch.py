"""The N2CE objective as a differentiable PyTorch function: the paper's drop-in.

    from n2ce.torch import n2ce_loss
    loss = n2ce_loss(critic(x_data), critic(x_noise), magnitude=100)
    loss.backward()
"""
import math

try:
    import torch
except ImportError as error:
    raise ImportError("n2ce.torch needs PyTorch: pip install torch") from error

from torch.nn.functional import logsigmoid

from . import _library
from .objective import call_loss, check_lengths, family_code, make_objective

_NATIVE = (torch.float32, torch.float64)


def _mean(terms, weights, stage):
    terms = terms.reshape(-1)
    return terms.mean() if weights is None else (weights[stage] * terms).mean()


def _formula(num, den, family, magnitude, regularisation, stage_weights, stage_num, stage_den):
    """The loss in PyTorch's own operations, in double where the device has it."""
    kind = torch.float32 if num.device.type == "mps" else torch.float64
    result_kind = torch.promote_types(num.dtype, den.dtype)
    num, den = num.to(kind), den.to(kind)
    weights = None if stage_weights is None else stage_weights.to(num.device, kind)
    stages = [None if s is None else s.to(num.device, torch.long) for s in (stage_num, stage_den)]
    log_m = math.log(magnitude)
    if family == "nwj":
        terms = -num, den.exp()
    else:  # softplus(x) = -logsigmoid(-x), which is exact at both ends
        log_m_num = log_m if family == "n2ce" else 0.0
        terms = -logsigmoid(num - log_m_num), -magnitude * logsigmoid(log_m - den)
    loss = sum(_mean(t, weights, s) for t, s in zip(terms, stages))
    if regularisation:
        loss = loss + regularisation * (num.square().mean() + den.square().mean())
    return loss.to(torch.promote_types(result_kind, torch.float32))


class _Native(torch.autograd.Function):
    """The library's loss and gradient on CPU tensors, in place."""

    @staticmethod
    def forward(ctx, num, den, settings):
        loss, grads = _native(num, den, settings, any(ctx.needs_input_grad))
        ctx.settings = settings
        ctx.save_for_backward(num, den, *grads)
        return loss

    @staticmethod
    def backward(ctx, upstream):
        num, den, *grads = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return *(upstream * g if need else None
                     for g, need in zip(grads, ctx.needs_input_grad)), None
        # create_graph: the gradient itself will be differentiated.
        inputs = [f for f, need in zip((num, den), ctx.needs_input_grad) if need]
        loss = _formula(num, den, **ctx.settings)
        slopes = iter(torch.autograd.grad(loss, inputs, upstream, create_graph=True))
        return *(next(slopes) if need else None for need in ctx.needs_input_grad[:2]), None


def _native(num, den, settings, gradient):
    """(loss, gradients) from the library; what overflows is infinite, as in PyTorch."""
    num, den = num.contiguous(), den.contiguous()
    grads = [torch.empty_like(num), torch.empty_like(den)] if gradient else []
    where = [g.data_ptr() for g in grads] or [None, None]
    logits = _library.Logits(num.data_ptr(), num.numel(), den.data_ptr(), den.numel(), *where)
    arrays = {key: value.cpu().numpy() if isinstance(value, torch.Tensor) else value
              for key, value in settings.items()}
    objective, _keep = make_objective(num.numel(), den.numel(), **arrays)
    return num.new_tensor(call_loss(num.dtype == torch.float32, objective, logits,
                                    overflow_is_error=False)), grads


def _settings(f_num, f_den, family, magnitude, regularisation, stages):
    """What make_objective() and _formula() take, checked without looking at values on a device."""
    family_code(family)
    magnitude = 1.0 if family == "nwj" else float(magnitude)  # nwj has none
    if not 1 <= magnitude < math.inf:
        raise ValueError(f"The magnitude M is {magnitude}; it must be finite and at least 1.")
    for name, f in (("f_num", f_num), ("f_den", f_den)):
        if f.numel() == 0:
            raise ValueError(f"{name} is empty; each side needs at least one logit.")
    weights, num, den = (None if s is None else torch.as_tensor(s).detach().reshape(-1)
                         for s in stages)
    check_lengths(weights, num, den, f_num.numel(), f_den.numel())
    return dict(family=family, magnitude=magnitude, regularisation=float(regularisation),
                stage_weights=weights, stage_num=num, stage_den=den)


def n2ce_loss(f_num, f_den, magnitude=1.0, *, family="n2ce", regularisation=0.0,
              stage_weights=None, stage_num=None, stage_den=None):
    """Loss of the N2CE family in nats, a tensor without dimensions, to be minimised.

    Parameters
    ----------
    f_num, f_den : tensors of log ratios ln p_num/p_den, the critic's output at samples of the
        numerator (data) and of the denominator (noise). Any shapes, any two sizes.
    magnitude : the noise magnitude M >= 1, a number; 1 is vanilla NCE.
    family, regularisation, stage_weights, stage_num, stage_den : as in n2ce.n2ce_loss().

    float32 and float64 tensors on the CPU are read in place by the library, which computes loss and
    gradient in one pass in double precision, and refuses logits that are not finite with a
    ValueError. Tensors of another type or on another device, and code under torch.compile, use the
    same formula in PyTorch's operations, where NaN stays NaN. Both can be differentiated twice.
    """
    settings = _settings(f_num, f_den, family, magnitude, regularisation,
                         (stage_weights, stage_num, stage_den))
    native = (not torch.compiler.is_compiling() and f_num.dtype == f_den.dtype
              and all(f.device.type == "cpu" and f.dtype in _NATIVE for f in (f_num, f_den)))
    return _Native.apply(f_num, f_den, settings) if native else _formula(f_num, f_den, **settings)


class N2CELoss(torch.nn.Module):
    """n2ce_loss() with its settings stored: ``N2CELoss(magnitude=100)(f_num, f_den)``."""

    def __init__(self, magnitude=1.0, *, family="n2ce", regularisation=0.0):
        super().__init__()
        self.settings = dict(magnitude=magnitude, family=family, regularisation=regularisation)

    def forward(self, f_num, f_den, **stages):
        return n2ce_loss(f_num, f_den, **self.settings, **stages)

    def extra_repr(self):
        return ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
