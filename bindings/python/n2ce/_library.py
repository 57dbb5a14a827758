"""Finds libn2ce and declares what is called in it: include/n2ce.h in ctypes.

The first of these that exists is taken:

1. the file that the environment variable N2CE_LIBRARY names,
2. the copy inside this package, which ``pip install`` puts there,
3. the one the system knows (``libn2ce.so.0`` on the loader's path),
4. ``build/libn2ce.so`` of the checkout that this file is part of.
"""
import ctypes
import ctypes.util
import os
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_size_t, c_ssize_t
from ctypes import c_uint32, c_void_p
from pathlib import Path

LOG_FN = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
LOG_WARNING = 1

FAMILIES = {"n2ce": 0, "nwj": 1, "neg-reweight": 2}


class CtxOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_int), ("alloc", c_void_p),
                ("alloc_user", c_void_p), ("log", LOG_FN), ("log_user", c_void_p),
                ("progress", c_void_p), ("progress_user", c_void_p)]


class Objective(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("family", c_int), ("magnitude", c_double),
                ("regularisation", c_double), ("n_stages", c_size_t),
                ("stage_weights", POINTER(c_double)), ("stage_num", POINTER(c_uint32)),
                ("stage_den", POINTER(c_uint32))]


class Logits(ctypes.Structure):
    """n2ce_logits_f64 and n2ce_logits_f32: they differ in what the pointers point at."""
    _fields_ = [("num", c_void_p), ("n_num", c_size_t), ("den", c_void_p), ("n_den", c_size_t),
                ("grad_num", c_void_p), ("grad_den", c_void_p)]


class Diagnostics(ctypes.Structure):
    _fields_ = [(name, c_double) for name in
                ("mean_num", "mean_den", "kl_bound", "kl_cap", "js_bound", "js_cap", "ess_den",
                 "saturated_num", "saturated_den")]


class Option(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("letter", c_char), ("type", c_int), ("fallback", c_char_p),
                ("min", c_double), ("max", c_double), ("choices", c_char_p), ("value", c_char_p),
                ("help", c_char_p)]


class Matrix(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("type", c_int), ("rows", c_size_t), ("cols", c_size_t),
                ("row_stride", c_ssize_t), ("col_stride", c_ssize_t)]


class Proposals(ctypes.Structure):
    _fields_ = [("rows", c_size_t), ("cols", c_size_t), ("designs", POINTER(c_double)),
                ("names", POINTER(c_char_p)), ("n_levels", POINTER(c_size_t)),
                ("levels", POINTER(POINTER(c_char_p))), ("predicted", POINTER(c_double)),
                ("spread", POINTER(c_double)), ("log_prior", POINTER(c_double)),
                ("distance", POINTER(c_double))]


# Handles are c_void_p. Name: (result, arguments).
_LOSS = (c_int, [c_void_p, POINTER(Objective), POINTER(Logits), POINTER(c_double),
                 POINTER(Diagnostics)])
_FUNCTIONS = {
    "n2ce_version": (c_char_p, []),
    "n2ce_status_text": (c_char_p, [c_int]),
    "n2ce_ctx_new": (c_int, [POINTER(c_void_p), POINTER(CtxOptions)]),
    "n2ce_ctx_free": (None, [c_void_p]),
    "n2ce_errmsg": (c_char_p, [c_void_p]),
    "n2ce_ctx_cancel": (None, [c_void_p]),
    "n2ce_loss_f64": _LOSS,
    "n2ce_loss_f32": _LOSS,
    "n2ce_bound_cap": (c_double, [c_double]),
    "n2ce_magnitude_for": (c_double, [c_double, c_double]),
    "n2ce_options_new": (c_int, [c_void_p, POINTER(Option), POINTER(c_void_p)]),
    "n2ce_options_free": (None, [c_void_p]),
    "n2ce_options_set": (c_int, [c_void_p, c_char_p, c_char_p]),
    "n2ce_nearest_word": (c_char_p, [c_char_p, POINTER(c_char_p), c_size_t]),
    "n2ce_task_at": (c_void_p, [c_size_t]),
    "n2ce_task_find": (c_void_p, [c_char_p]),
    "n2ce_task_name": (c_char_p, [c_void_p]),
    "n2ce_task_summary": (c_char_p, [c_void_p]),
    "n2ce_task_options": (POINTER(Option), [c_void_p]),
    "n2ce_task_run": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "n2ce_task_run_on": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(Matrix), c_size_t,
                                 POINTER(c_void_p)]),
    "n2ce_answer_free": (None, [c_void_p]),
    "n2ce_answer_text": (c_char_p, [c_void_p]),
    "n2ce_answer_json": (c_char_p, [c_void_p]),
    "n2ce_answer_take_model": (c_void_p, [c_void_p]),
    "n2ce_model_load": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "n2ce_model_save": (c_int, [c_void_p, c_char_p, c_bool]),
    "n2ce_model_free": (None, [c_void_p]),
    "n2ce_model_columns": (c_size_t, [c_void_p]),
    "n2ce_model_column": (c_char_p, [c_void_p, c_size_t]),
    "n2ce_model_name": (c_int, [c_void_p, POINTER(c_char_p)]),
    "n2ce_model_score": (c_int, [c_void_p, POINTER(Matrix), POINTER(c_double)]),
    "n2ce_model_json": (c_char_p, [c_void_p]),
    "n2ce_optimizer_fit": (c_int, [c_void_p, c_void_p, POINTER(Matrix), POINTER(Matrix),
                                   POINTER(c_void_p)]),
    "n2ce_optimizer_name": (c_int, [c_void_p, POINTER(c_char_p), POINTER(POINTER(c_char_p)),
                                    POINTER(c_size_t)]),
    "n2ce_optimizer_propose": (c_int, [c_void_p, c_size_t, POINTER(POINTER(Proposals))]),
    "n2ce_optimizer_load": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "n2ce_optimizer_save": (c_int, [c_void_p, c_char_p, c_bool]),
    "n2ce_optimizer_free": (None, [c_void_p]),
    "n2ce_optimizer_json": (c_char_p, [c_void_p]),
    "n2ce_detector_fit": (c_int, [c_void_p, c_void_p, POINTER(Matrix), POINTER(c_void_p)]),
    "n2ce_detector_name": (c_int, [c_void_p, POINTER(c_char_p)]),
    "n2ce_detector_score": (c_int, [c_void_p, POINTER(Matrix), c_size_t, POINTER(c_double),
                                    POINTER(c_double)]),
    "n2ce_detector_score_fitted": (c_int, [c_void_p, POINTER(Matrix), POINTER(c_double)]),
    "n2ce_detector_load": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "n2ce_detector_save": (c_int, [c_void_p, c_char_p, c_bool]),
    "n2ce_detector_free": (None, [c_void_p]),
    "n2ce_detector_json": (c_char_p, [c_void_p]),
    "n2ce_images_read": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "n2ce_images_free": (None, [c_void_p]),
    "n2ce_images_size": (None, [c_void_p, POINTER(c_size_t)]),
    "n2ce_images_pixels": (c_void_p, [c_void_p]),
    "n2ce_images_labels": (c_void_p, [c_void_p]),
}


class Library:
    """The shared library. A function is looked up, and given its types, on its first call."""

    def __init__(self, path):
        self.path = str(path)
        self._dll = ctypes.CDLL(self.path)

    def __getattr__(self, name):
        result, arguments = _FUNCTIONS[name]
        try:
            function = getattr(self._dll, name)
        except AttributeError:
            raise ImportError(f"{self.path} has no {name}: it is older than this package. Build "
                              "it again, or name another one in N2CE_LIBRARY.") from None
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)
        return function


def _candidates():
    here = Path(__file__).resolve().parent
    yield from sorted(here.glob("libn2ce.*"))
    system = ctypes.util.find_library("n2ce")
    if system:
        yield system
    if len(here.parents) > 2:
        yield from sorted((here.parents[2] / "build").glob("libn2ce.so"))


def find():
    """The library; ImportError if there is none."""
    named = os.environ.get("N2CE_LIBRARY")
    path = named or next(_candidates(), None)
    if path is None:
        raise ImportError("libn2ce was not found: not in this package, not on the system, not in "
                          "build/ of a checkout. Install the package with pip, or name the file "
                          "in the environment variable N2CE_LIBRARY.")
    try:
        return Library(path)
    except OSError as error:
        raise ImportError(f"libn2ce could not be loaded: {error}") from None
