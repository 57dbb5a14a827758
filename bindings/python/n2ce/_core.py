"""The library's handles as Python objects: contexts, tasks, models."""
import _thread
import ctypes
import json
import logging
import numbers
import os
import tempfile
import threading
import warnings
import weakref
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import _library
from ._arrays import matrices, matrix, pointer
from ._errors import Warning as LibraryWarning
from ._errors import BadData, error_of, keyword_of, spell

lib = _library.find()
_logger = logging.getLogger("n2ce")


# ---- contexts ------------------------------------------------------------------------------

class Context:
    """An n2ce_ctx. Freed with the last object that refers to it."""

    def __init__(self, threads=0):
        self.warnings = []
        messages = self.warnings  # not self: the callback must not keep the context alive

        def on_log(_user, level, text):
            if level == _library.LOG_WARNING:
                messages.append(text.decode())
            else:
                _logger.info("%s", text.decode())

        self._on_log = _library.LOG_FN(on_log)
        options = _library.CtxOptions(struct_size=ctypes.sizeof(_library.CtxOptions),
                                      threads=threads, log=self._on_log)
        self.handle = ctypes.c_void_p()
        status = lib.n2ce_ctx_new(ctypes.byref(self.handle), options)
        if status:
            raise error_of(status, f"threads is {threads}: {lib.n2ce_status_text(status).decode()}")
        free_with(self, lib.n2ce_ctx_free, self.handle)

    def check(self, status):
        """Raises the exception of a status that is not 0."""
        if status:
            message = lib.n2ce_errmsg(self.handle) or lib.n2ce_status_text(status)
            raise error_of(status, message.decode(errors="replace"))

    def emit_warnings(self):
        """Passes on what was logged, in the thread of the caller and after the call."""
        while self.warnings:
            warnings.warn(self.warnings.pop(0), LibraryWarning, stacklevel=4)


def free_with(owner, free, handle, *keep):
    """Frees a handle when its owner goes; ``keep`` lives until then.

    Not in a forked child, whose copy of the handle has lost its threads, and not at exit, when
    everything goes anyway."""
    made_in = os.getpid()

    def finish(*_kept):
        if os.getpid() == made_in:
            free(handle)

    weakref.finalize(owner, finish, *keep).atexit = False


def run_interruptibly(context, call):
    """The result of call(), which runs in the library; Ctrl-C cancels it.

    Python's signal handlers run between bytecodes of the main thread, so that one waits here
    while another is in the library. It looks up every 50 ms because the system may have handed
    the signal to any thread. No exception leaves before the library has let go of the arrays.
    (Not Thread.join(), which after an exception takes a running thread for finished.)"""
    if threading.current_thread() is not threading.main_thread():
        return call()
    outcome, done, thread = Future(), threading.Event(), None
    try:
        thread = _thread.start_new_thread(_fulfil, (outcome, done, call))
        while not done.wait(0.05):
            pass
    except BaseException:  # KeyboardInterrupt, or what another signal's handler raises
        if thread is not None:
            _cancel(context, done)
        raise
    return outcome.result()


def _fulfil(outcome, done, call):
    try:
        outcome.set_result(call())
    except BaseException as exception:
        outcome.set_exception(exception)
    finally:
        done.set()


def _cancel(context, done):
    """Asks until it is done, whatever else the user presses meanwhile."""
    while not done.is_set():
        try:
            lib.n2ce_ctx_cancel(context.handle)
            done.wait(0.05)
        except BaseException:
            continue


# ---- options --------------------------------------------------------------------------------

def task_names():
    """Every task of the library, as the command line calls it."""
    names = []
    while task := lib.n2ce_task_at(len(names)):
        names.append(lib.n2ce_task_name(task).decode())
    return names


def find_task(name):
    task = lib.n2ce_task_find(name.encode())
    if not task:
        raise ValueError(f"There is no task {name!r}; there are: {', '.join(task_names())}.")
    return task


def option_names(task):
    """The names in a task's option table, in their order."""
    table, names = lib.n2ce_task_options(task), []
    while name := table[len(names)].name:
        names.append(name.decode())
    return names


def option_text(name, value):
    """A value as the library reads it: true, 100, 0.5, a word, or several with commas."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return f"{float(value):.17g}"
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if "\0" in text:
            raise ValueError(f"{name} contains a null character.")
        return text
    try:
        return ",".join(option_text(name, item) for item in value)
    except TypeError:
        raise TypeError(f"{name} is a {type(value).__name__}; it must be a number, a text, a bool "
                        "or a sequence of them.") from None


def unknown_option(caller, key, keywords):
    """The TypeError for a keyword that no option has, with the nearest that one has."""
    words = [keyword.encode() for keyword in keywords]
    near = lib.n2ce_nearest_word(key.encode(), (ctypes.c_char_p * len(words))(*words), len(words))
    hint = f"; did you mean {near.decode()!r}?" if near else ""
    return TypeError(f"{caller}() got an unexpected keyword argument {key!r}{hint}")


class Options:
    """An n2ce_options filled from keywords; None leaves an option at its default."""

    def __init__(self, context, task, keywords, caller):
        self._context = context
        self.handle = ctypes.c_void_p()
        context.check(lib.n2ce_options_new(context.handle, lib.n2ce_task_options(task),
                                           ctypes.byref(self.handle)))
        free_with(self, lib.n2ce_options_free, self.handle, context)
        known = {keyword_of(name): name for name in option_names(task)}
        for key, value in keywords.items():
            if key not in known:
                raise unknown_option(caller, key, known)
            if value is not None:
                self._set(known[key], option_text(key, value))

    def _set(self, name, text):
        self._context.check(lib.n2ce_options_set(self.handle, name.encode(), text.encode()))


def seed_of(random_state):
    """The library's seed for scikit-learn's random_state: None leaves the library's default, which
    is fixed; a generator is asked for a number."""
    if random_state is None or isinstance(random_state, numbers.Integral):
        return random_state
    draw = getattr(random_state, "integers", None) or getattr(random_state, "randint", None)
    if draw is None:
        raise ValueError(f"random_state is {random_state!r}; it must be None, a whole number, a "
                         "numpy Generator or a RandomState.")
    return int(draw(0, 2**31 - 1))


def threads_of(n_jobs):
    """The library's number of threads for joblib's n_jobs: None and -1 are all cores."""
    if n_jobs is None or n_jobs == -1:
        return 0
    if not isinstance(n_jobs, numbers.Integral) or n_jobs < 1:
        raise ValueError(f"n_jobs is {n_jobs!r}; it must be None, -1 or a positive whole number.")
    return int(n_jobs)


# ---- tasks -----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Answer:
    """What a task computed: the text a terminal would show, and the JSON object as a dict."""
    text: str = field(repr=False)
    details: dict
    model: "Model | None" = field(default=None, repr=False)

    def __str__(self):
        return self.text


def run_task(name, data=(), keywords=None, threads=0, caller="run"):
    """Runs a task on arrays of as_samples(), or on what its options name if there are none."""
    task = find_task(name)
    context = Context(threads)
    options = Options(context, task, keywords or {}, caller)
    answer = ctypes.c_void_p()

    def call():
        if not data:
            return lib.n2ce_task_run(context.handle, task, options.handle, ctypes.byref(answer))
        return lib.n2ce_task_run_on(context.handle, task, options.handle, matrices(data),
                                    len(data), ctypes.byref(answer))

    try:
        context.check(run_interruptibly(context, call))
        result = _read_answer(context, answer)
    finally:
        lib.n2ce_answer_free(answer)
    context.emit_warnings()
    return result


def warn_unless_trusted(found, stacklevel=3):
    """Says why the library does not trust an estimate, to the caller of the caller."""
    if found["verdict"] != "trusted":
        warnings.warn(f"{found['verdict']}: {spell(found.get('reason') or '')}", LibraryWarning,
                      stacklevel=stacklevel)


def _read_answer(context, answer):
    details = json.loads(lib.n2ce_answer_json(answer))
    model = lib.n2ce_answer_take_model(answer)
    return Answer(lib.n2ce_answer_text(answer).decode(), details,
                  Model(context, ctypes.c_void_p(model)) if model else None)


# ---- models ----------------------------------------------------------------------------------

class _Handle:
    """Owns a model of the library, and keeps the context that it was made in."""

    def __init__(self, context, handle, free):
        self.context, self.handle, self.made_in = context, handle, os.getpid()
        free_with(self, free, handle, context)


_models = weakref.WeakSet()


def _unlock_after_fork():
    """Who held a lock when the process was forked is not in the child."""
    for model in list(_models):
        model._lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock_after_fork)


class _Model:
    """What can be saved and loaded. May be used from any thread; they take turns."""

    _KIND = None  # of the library's functions: "model", "optimizer", "detector"

    def __init__(self, context, handle):
        self._live = _Handle(context, handle, self._function("free"))
        self._lock = threading.Lock()
        _models.add(self)

    @classmethod
    def _function(cls, name):
        return getattr(lib, f"n2ce_{cls._KIND}_{name}")

    @classmethod
    def load(cls, path, threads=0):
        context, handle = Context(threads), ctypes.c_void_p()
        context.check(cls._function("load")(context.handle, os.fsencode(path),
                                            ctypes.byref(handle)))
        return cls(context, handle)

    def save(self, path, overwrite=False):
        live = self._live
        live.context.check(self._function("save")(live.handle, os.fsencode(path), overwrite))

    def to_bytes(self):
        """The safetensors file, in memory."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.safetensors")
            self.save(path)
            return path.read_bytes()

    @classmethod
    def from_bytes(cls, content):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.safetensors")
            path.write_bytes(content)
            return cls.load(path)

    def __reduce__(self):
        return type(self).from_bytes, (self.to_bytes(),)

    def name_columns(self, names):
        """Names the columns, so that files and frames are matched by them: with None, or names that
        cannot tell columns apart, they keep their numbers."""
        if names is not None and all(names) and len(set(names)) == len(names):
            live = self._live
            live.context.check(self._function("name")(live.handle, _texts(names)))

    @property
    def details(self):
        """What the model is: options, how it was fitted."""
        return json.loads(self._function("json")(self._live.handle))

    def _renew_after_fork(self):
        """A forked child has the context's memory but not its threads: it makes its own."""
        if os.getpid() != self._live.made_in:
            self._live = type(self).from_bytes(self.to_bytes())._live


class Model(_Model):
    """A fitted log ratio."""

    _KIND = "model"
    _ROWS = 65536  # scored in one call, so that Ctrl-C is seen between calls

    @property
    def columns(self):
        handle = self._live.handle
        return [lib.n2ce_model_column(handle, i).decode()
                for i in range(lib.n2ce_model_columns(handle))]

    def score(self, array):
        """Log ratios in nats of the rows of an array of as_samples()."""
        log_ratios = np.empty(len(array))
        with self._lock:
            self._renew_after_fork()
            for start in range(0, len(array), self._ROWS):
                rows = matrix(array[start:start + self._ROWS])
                out = pointer(log_ratios[start:], ctypes.c_double)
                self._live.context.check(lib.n2ce_model_score(self._live.handle, rows, out))
        return _finite(log_ratios)


def _finite(scores):
    """Refuses scores that are no finite numbers, as the command line does."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise BadData(f"row {bad[0]} (zero-based) has a score that is no finite number: its values are too far "
                      "from those that the model was fitted to. Leave that row out.")
    return scores


def _texts(words):
    return (ctypes.c_char_p * len(words))(*(str(word).encode() for word in words))


class OptimizerModel(_Model):
    """A fitted model of designs, which proposes new ones."""

    _KIND = "optimizer"

    @classmethod
    def fit(cls, designs, values, keywords, threads, caller):
        """Learns from arrays of as_samples()."""
        context, handle = Context(threads), ctypes.c_void_p()
        options = Options(context, find_task("optimize"), keywords, caller)

        def call():
            return lib.n2ce_optimizer_fit(context.handle, options.handle, matrix(designs),
                                          matrix(values), ctypes.byref(handle))

        context.check(run_interruptibly(context, call))
        model = cls(context, handle)
        context.emit_warnings()
        return model

    def name(self, names, levels):
        """Names the columns, and by column the levels of categories, in the order of their
        numbers."""
        lists = [_texts(levels[j]) if j in levels else None for j in range(len(names))]
        pointers = (ctypes.POINTER(ctypes.c_char_p) * len(names))(
            *(ctypes.cast(texts, ctypes.POINTER(ctypes.c_char_p)) for texts in lists))
        counts = (ctypes.c_size_t * len(names))(*(len(texts or ()) for texts in lists))
        self._live.context.check(lib.n2ce_optimizer_name(self._live.handle, _texts(names),
                                                         pointers, counts))

    def propose(self, n):
        """(names, levels by column, and arrays: designs, predicted, spread, log_prior,
        distance)."""
        with self._lock:
            self._renew_after_fork()
            live, found = self._live, ctypes.POINTER(_library.Proposals)()
            live.context.check(run_interruptibly(
                live.context,
                lambda: lib.n2ce_optimizer_propose(live.handle, n, ctypes.byref(found))))
            result = _read_proposals(found.contents)
        live.context.emit_warnings()
        return result


def _read_proposals(p):
    names = [p.names[j].decode() for j in range(p.cols)]
    levels = {j: [p.levels[j][k].decode() for k in range(p.n_levels[j])]
              for j in range(p.cols) if p.n_levels[j]}
    designs = np.ctypeslib.as_array(p.designs, (p.rows, p.cols)).copy()
    columns = (p.predicted, p.spread, p.log_prior, p.distance)
    return names, levels, designs, *(np.ctypeslib.as_array(x, (p.rows,)).copy() for x in columns)


class DetectorModel(_Model):
    """What was learnt from normal rows."""

    _KIND = "detector"
    _ROWS = 8192  # judged in one call, so that Ctrl-C is seen between calls

    @classmethod
    def fit(cls, normal, keywords, threads, caller):
        """Learns from an array of as_samples()."""
        context, handle = Context(threads), ctypes.c_void_p()
        options = Options(context, find_task("detect"), keywords, caller)

        def call():
            return lib.n2ce_detector_fit(context.handle, options.handle, matrix(normal),
                                         ctypes.byref(handle))

        context.check(run_interruptibly(context, call))
        model = cls(context, handle)
        context.emit_warnings()
        return model

    def score(self, array):
        """(scores, p-values) of the rows of an array of as_samples()."""
        scores, p_values = np.empty(len(array)), np.empty(len(array))
        with self._lock:
            self._renew_after_fork()
            for start in range(0, len(array), self._ROWS):
                out = (pointer(values[start:], ctypes.c_double) for values in (scores, p_values))
                self._live.context.check(lib.n2ce_detector_score(
                    self._live.handle, matrix(array[start:start + self._ROWS]), start, *out))
        return scores, p_values

    def score_fitted(self, array):
        """Scores of the rows that it was fitted to, each by what was learnt from others."""
        scores = np.empty(len(array))
        with self._lock:
            self._renew_after_fork()
            self._live.context.check(lib.n2ce_detector_score_fitted(
                self._live.handle, matrix(array), pointer(scores, ctypes.c_double)))
        return scores
