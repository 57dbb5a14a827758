"""The N2CE objective as a differentiable JAX function: the paper's drop-in.

    from n2ce.jax import n2ce_loss
    def loss(params, x_data, x_noise):
        return n2ce_loss(critic(params, x_data), critic(params, x_noise), magnitude=100)
    slopes = jax.jit(jax.grad(loss))(params, x_data, x_noise)
"""
import functools
import math

import numpy as np

try:
    import jax
except ImportError as error:
    raise ImportError("n2ce.jax needs JAX: pip install jax") from error

import jax.numpy as jnp

from . import _library
from .objective import call_loss, check_lengths, family_code, make_objective


# ---- in JAX's operations ------------------------------------------------------------------

def _wide(f):
    """In double where JAX was told to have it (jax_enable_x64), in single otherwise."""
    return f.reshape(-1).astype(jax.dtypes.canonicalize_dtype(np.float64))


def _weights(f, weights, stage):
    """What each logit's term is multiplied by in the mean."""
    return 1.0 if weights is None else weights.astype(f.dtype)[stage]


def _formula(num, den, stages, settings):
    family, magnitude, penalty = settings
    weights, stage_num, stage_den = stages
    kind = jnp.promote_types(jnp.promote_types(num.dtype, den.dtype), jnp.float32)
    num, den, log_m = _wide(num), _wide(den), math.log(magnitude)
    if family == "nwj":
        terms = -num, jnp.exp(den)
    else:
        log_m_num = log_m if family == "n2ce" else 0.0
        terms = jax.nn.softplus(log_m_num - num), magnitude * jax.nn.softplus(den - log_m)
    loss = (jnp.mean(_weights(num, weights, stage_num) * terms[0])
            + jnp.mean(_weights(den, weights, stage_den) * terms[1]))
    if penalty:
        loss = loss + penalty * (jnp.mean(num**2) + jnp.mean(den**2))
    return loss.astype(kind)


def _slopes(num, den, stages, settings):
    """dloss/df in the shapes and types of the logits."""
    family, magnitude, penalty = settings
    weights, stage_num, stage_den = stages
    f_num, f_den, log_m = _wide(num), _wide(den), math.log(magnitude)
    if family == "nwj":
        slopes = -jnp.ones_like(f_num), jnp.exp(f_den)
    else:
        log_m_num = log_m if family == "n2ce" else 0.0
        slopes = (-jax.nn.sigmoid(log_m_num - f_num),
                  magnitude * jax.nn.sigmoid(f_den - log_m))
    slopes = (_weights(f_num, weights, stage_num) * slopes[0] + 2 * penalty * f_num,
              _weights(f_den, weights, stage_den) * slopes[1] + 2 * penalty * f_den)
    return tuple((s / f.size).reshape(f.shape).astype(f.dtype) for s, f in zip(slopes, (num, den)))


# ---- by the library -----------------------------------------------------------------------

def _is_native(num, den, stages):
    """Values that are there, on the CPU, and in a type that the library reads."""
    arrays = [a for a in (num, den, *stages) if a is not None]
    if any(isinstance(a, jax.core.Tracer) for a in arrays):
        return False
    return num.dtype == den.dtype and num.dtype in (np.float32, np.float64) and all(
        device.platform == "cpu" for a in arrays for device in a.devices())


def _native(num, den, stages, settings, gradient):
    """(loss, gradients) from the library; what overflows is infinite, as in JAX."""
    family, magnitude, penalty = settings
    num, den = np.ascontiguousarray(num), np.ascontiguousarray(den)
    grads = [np.empty_like(num), np.empty_like(den)] if gradient else []
    where = [g.ctypes.data for g in grads] or [None, None]
    logits = _library.Logits(num.ctypes.data, num.size, den.ctypes.data, den.size, *where)
    arrays = [None if a is None else np.asarray(a) for a in stages]
    objective, _keep = make_objective(num.size, den.size, family, magnitude, penalty, *arrays)
    loss = call_loss(num.dtype == np.float32, objective, logits, overflow_is_error=False)
    return jnp.asarray(loss, num.dtype), tuple(map(jnp.asarray, grads))


# ---- the loss -----------------------------------------------------------------------------

@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _loss(num, den, stages, settings):
    if _is_native(num, den, stages):
        return _native(num, den, stages, settings, False)[0]
    return _formula(num, den, stages, settings)


def _forward(num, den, stages, settings):
    if _is_native(num, den, stages):
        loss, slopes = _native(num, den, stages, settings, True)
    else:  # under jit, or to be differentiated again
        loss, slopes = _formula(num, den, stages, settings), _slopes(num, den, stages, settings)
    return loss, slopes


def _backward(_settings, slopes, upstream):
    return *((upstream * s).astype(s.dtype) for s in slopes), None


_loss.defvjp(_forward, _backward)


def n2ce_loss(f_num, f_den, magnitude=1.0, *, family="n2ce", regularisation=0.0,
              stage_weights=None, stage_num=None, stage_den=None):
    """Loss of the N2CE family in nats, an array without dimensions, to be minimised.

    Parameters
    ----------
    f_num, f_den : arrays of log ratios ln p_num/p_den, the critic's output at samples of the
        numerator (data) and of the denominator (noise). Any shapes, any two sizes.
    magnitude : the noise magnitude M >= 1, a number that is known when the function is traced;
        1 is vanilla NCE.
    family, regularisation, stage_weights, stage_num, stage_den : as in n2ce.n2ce_loss().

    float32 and float64 arrays on the CPU, outside of jit, are read in place by the library, which
    computes loss and gradient in one pass in double precision, and refuses logits that are not
    finite with a ValueError. Under jit, vmap or a second derivative, and on other devices, the
    same formula is done in JAX's operations, in double if jax_enable_x64 is set, and NaN stays
    NaN. Reverse-mode derivatives of any order.
    """
    f_num, f_den = jnp.asarray(f_num), jnp.asarray(f_den)
    family_code(family)
    magnitude = 1.0 if family == "nwj" else float(magnitude)  # nwj has none
    if not 1 <= magnitude < math.inf:
        raise ValueError(f"The magnitude M is {magnitude}; it must be finite and at least 1.")
    for name, f in (("f_num", f_num), ("f_den", f_den)):
        if f.size == 0:
            raise ValueError(f"{name} is empty; each side needs at least one logit.")
    stages = tuple(None if s is None else jnp.ravel(jnp.asarray(s))
                   for s in (stage_weights, stage_num, stage_den))
    check_lengths(*stages, f_num.size, f_den.size)
    if stages[0] is not None:
        stages = jax.lax.stop_gradient(stages[0]), *stages[1:]
    return _loss(f_num, f_den, stages, (family, magnitude, float(regularisation)))
