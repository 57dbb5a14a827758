"""The N2CE family on arrays of logits: loss, gradient, diagnostics. See docs/math.md."""
import ctypes
import math

import numpy as np

from . import _library
from ._arrays import pointer
from ._core import Context, lib
from ._errors import OutOfRange

_POINTERS = ("stage_weights", ctypes.c_double), ("stage_num", ctypes.c_uint32), \
    ("stage_den", ctypes.c_uint32)


def family_code(family):
    try:
        return _library.FAMILIES[family]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, _library.FAMILIES))
        raise ValueError(f"family is {family!r}; it must be one of {known}.") from None


def check_lengths(weights, num, den, n_num, n_den):
    """The library sees pointers only, so the lengths of the stages are checked here."""
    if weights is None:
        if num is not None or den is not None:
            raise ValueError("stage_num and stage_den need stage_weights.")
        return
    for name, stage, n in (("stage_num", num, n_num), ("stage_den", den, n_den)):
        if stage is None or len(stage) != n:
            found = "missing" if stage is None else f"{len(stage)} long"
            raise ValueError(f"{name} is {found}; with stage_weights it must name the stage of "
                             f"each of the {n} logits.")


def _stage_indices(values, name):
    if values is None:
        return None
    stages = np.asarray(values)
    if stages.dtype.kind not in "iu" or (stages.size and stages.min() < 0):
        raise ValueError(f"{name} must hold whole numbers, 0 for the first stage.")
    return np.ascontiguousarray(stages.ravel(), np.uint32)


def make_objective(n_num, n_den, family, magnitude, regularisation, stage_weights, stage_num,
                   stage_den):
    """An n2ce_objective, and the arrays it points into: keep both while it is used."""
    weights = stage_weights
    if weights is not None:
        weights = np.ascontiguousarray(np.ravel(weights), np.float64)
    stages = weights, _stage_indices(stage_num, "stage_num"), _stage_indices(stage_den, "stage_den")
    check_lengths(*stages, n_num, n_den)
    objective = _library.Objective(
        struct_size=ctypes.sizeof(_library.Objective), family=family_code(family),
        magnitude=magnitude, regularisation=regularisation,
        n_stages=0 if weights is None else weights.size)
    for (name, kind), array in zip(_POINTERS, stages):
        if array is not None:
            setattr(objective, name, pointer(array, kind))
    return objective, stages


def call_loss(single, objective, logits, diagnostics=None, overflow_is_error=True):
    """The library's loss. It is a pure function, so a failed call is repeated with a context
    to hear why, and the usual one does without."""
    loss = ctypes.c_double()
    function = lib.n2ce_loss_f32 if single else lib.n2ce_loss_f64
    status = function(None, objective, logits, ctypes.byref(loss), diagnostics)
    if status and (overflow_is_error or status != OutOfRange.status):
        context = Context(1)
        context.check(function(context.handle, objective, logits, ctypes.byref(loss), None))
    return loss.value


def _logits(values):
    """float32 and float64 without gaps as they are, everything else as float64."""
    array = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    return np.ascontiguousarray(array)


def _evaluate(f_num, f_den, gradient, diagnostics, **objective):
    num, den = _logits(f_num), _logits(f_den)
    if num.dtype != den.dtype:
        num, den = num.astype(np.float64), den.astype(np.float64)
    grads = (np.empty_like(num), np.empty_like(den)) if gradient else (None, None)
    where = [None if g is None else g.ctypes.data for g in grads]
    logits = _library.Logits(num.ctypes.data, num.size, den.ctypes.data, den.size, *where)
    ready, _keep = make_objective(num.size, den.size, **objective)
    return call_loss(num.dtype == np.float32, ready, logits, diagnostics), *grads


def n2ce_loss(f_num, f_den, magnitude=1.0, *, family="n2ce", regularisation=0.0,
              stage_weights=None, stage_num=None, stage_den=None):
    """Loss of the N2CE family in nats, to be minimised.

    Parameters
    ----------
    f_num, f_den : arrays of log ratios ln p_num/p_den ("logits"), at samples of the numerator and
        of the denominator. Any shape, any two sizes.
    magnitude : the noise magnitude M >= 1; 1 is vanilla NCE. "nwj" ignores it.
    family : "n2ce", "nwj" or "neg-reweight".
    regularisation : lambda >= 0; adds lambda (mean f_num^2 + mean f_den^2).
    stage_weights, stage_num, stage_den : K weights, and the stage of each logit, where one network
        learns the K ratios of a telescope.

    Raises
    ------
    ValueError for a logit that is not finite, M < 1, ...; OverflowError where the loss does not
    fit, as for "nwj" with f > 709.
    """
    return _evaluate(f_num, f_den, False, None, magnitude=magnitude, family=family,
                     regularisation=regularisation, stage_weights=stage_weights,
                     stage_num=stage_num, stage_den=stage_den)[0]


def n2ce_loss_and_gradient(f_num, f_den, magnitude=1.0, *, family="n2ce", regularisation=0.0,
                           stage_weights=None, stage_num=None, stage_den=None):
    """(loss, dloss/df_num, dloss/df_den), the gradients in the shape of the logits. Otherwise as
    n2ce_loss()."""
    return _evaluate(f_num, f_den, True, None, magnitude=magnitude, family=family,
                     regularisation=regularisation, stage_weights=stage_weights,
                     stage_num=stage_num, stage_den=stage_den)


def diagnostics(f_num, f_den, magnitude=1.0, *, family="n2ce"):
    """What logits say, as a dict: loss, mean_num, mean_den, kl_bound, kl_cap, js_bound, js_cap,
    ess_den, saturated_num, saturated_den; in nats, explained at n2ce_diagnostics in n2ce.h."""
    seen = _library.Diagnostics()
    loss = _evaluate(f_num, f_den, False, ctypes.byref(seen), magnitude=magnitude, family=family,
                     regularisation=0.0, stage_weights=None, stage_num=None, stage_den=None)[0]
    return {"loss": loss, **{name: getattr(seen, name) for name, _ in seen._fields_}}


def magnitude_for(n, c=None):
    """Recommended noise magnitude for n samples a side: max(1, c sqrt(n)), c = sqrt(10)."""
    magnitude = lib.n2ce_magnitude_for(n, 0 if c is None else c)
    if math.isnan(magnitude):
        raise ValueError(f"n is {n} and c is {c}; n must be at least 1 and c positive.")
    return magnitude


def bound_cap(magnitude):
    """What a bound on the KL from the loss at this magnitude cannot exceed, nats."""
    cap = lib.n2ce_bound_cap(magnitude)
    if math.isnan(cap):
        raise ValueError(f"The magnitude is {magnitude}; it must be at least 1.")
    return cap
