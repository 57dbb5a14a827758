"""Divergences, mutual information and the two-sample test: one call, one answer."""
import math
from dataclasses import dataclass, field

from ._arrays import as_samples, check_same_columns, column_names
from ._core import run_task, seed_of, threads_of, warn_unless_trusted
from ._errors import spell


@dataclass(frozen=True)
class Estimate:
    """A number with its interval. float(estimate) is the number; it may be negative where the truth
    is near 0, and is not clipped."""
    value: float
    lo: float
    hi: float
    unit: str
    trusted: bool  # verdict == "trusted"
    verdict: str  # "trusted", "doubtful" or "failed": of this number,
    reason: "str | None"  # and why, unless it is trusted
    details: dict = field(repr=False)  # the JSON object of the command line

    def __float__(self):
        return self.value


@dataclass(frozen=True)
class TestResult:
    """Result of a two-sample test."""
    p: float  # uniform on (0, 1) if the distributions are the same
    accuracy: float  # of telling the samples apart on held-out rows; 0.5 is chance
    details: dict = field(repr=False)  # the JSON object of the command line
    __test__ = False  # pytest: not a test


def _estimate(details, found):
    """The Estimate of a member of the JSON object, where null is NaN; with a warning unless it is
    trusted."""
    warn_unless_trusted(found, stacklevel=4)
    value, lo, hi = (math.nan if found[key] is None else found[key]
                     for key in ("value" if "value" in found else "estimate", "lo", "hi"))
    verdict, reason = found["verdict"], found["reason"]
    return Estimate(value, lo, hi, details["unit"], verdict == "trusted", verdict,
                    spell(reason) if reason else None, details)


def _run(caller, task, samples, random_state, n_jobs, options):
    arrays = [as_samples(values, name) for name, values in samples.items()]
    if "num" in samples:
        check_same_columns(**samples)
    keywords = {"seed": seed_of(random_state), **options}
    return run_task(task, arrays, keywords, threads_of(n_jobs), caller).details


def kl_divergence(num, den, *, reverse=False, unit="nats", random_state=None, n_jobs=None,
                  **options):
    """KL(num || den) between the distributions behind two samples, with an interval.

    Parameters
    ----------
    num, den : arrays, one sample a row; a 1-D array is one column.
    reverse : KL(den || num) instead.
    unit : "nats" or "bits".
    random_state : None (a fixed seed), a whole number, a numpy Generator or a RandomState.
    n_jobs : threads, None for one a core; the result does not depend on it.
    options : of the command line's ``n2ce divergence``, with _ for -: level, method, magnitude,
        stages, time_limit, ...; report is a folder to write a page with plots into.

    Returns an Estimate, whose ``details`` hold the reverse direction, Jensen-Shannon and the M-path
    of the same fit too.
    """
    details = _run("kl_divergence", "divergence", {"num": num, "den": den}, random_state, n_jobs,
                   {"unit": unit, **options})
    return _estimate(details, details["kl_reverse" if reverse else "kl"])


def jensen_shannon(num, den, *, unit="nats", random_state=None, n_jobs=None, **options):
    """The Jensen-Shannon divergence of two samples, at most ln 2 nats; as kl_divergence()."""
    details = _run("jensen_shannon", "divergence", {"num": num, "den": den}, random_state, n_jobs,
                   {"unit": unit, **options})
    return _estimate(details, details["js"])


def mutual_information(x, y, *, unit="nats", random_state=None, n_jobs=None, **options):
    """Mutual information of x and y, whose rows belong together, with an interval.

    x and y are arrays with as many rows, and any numbers of columns; otherwise as kl_divergence(),
    with the options of ``n2ce mi``.
    """
    details = _run("mutual_information", "mi", {"x": x, "y": y}, random_state, n_jobs,
                   {"unit": unit, **options})
    return _estimate(details, details)


def two_sample_test(num, den, *, random_state=None, n_jobs=None, **options):
    """Do two samples have one distribution? Labels are permuted, and the best of seven statistics
    counts, corrected for the choice; from 3000 rows a side on a ratio that is fitted on one half of
    each is asked about the other half, too. The p-value is exact whatever that ratio is like.

    Arguments as in kl_divergence(), options as of ``n2ce test``, e.g. permutations. Returns a
    TestResult.
    """
    details = _run("two_sample_test", "test", {"num": num, "den": den}, random_state, n_jobs,
                   options)
    return TestResult(details["p"], details["accuracy"], details)


def run(task, *data, n_jobs=None, **options):
    """Runs any verb of the command line and returns its Answer: ``str(answer)`` is what a terminal
    shows, ``answer.details`` the JSON object.

        n2ce.run("study gaussian", dim=2, runs=20)

    Samples may be given as arrays instead of the files that options name: numerator and denominator
    for "fit", "divergence" and "test", x and y for "mi", designs and values for "optimize". Options
    are those of the command line with _ for -; n2ce.tasks() lists the verbs."""
    arrays = [as_samples(values, f"data[{i}]") for i, values in enumerate(data)]
    if task in ("fit", "divergence", "test") and len(data) == 2:
        check_same_columns(*data)
    answer = run_task(task, arrays, options, threads_of(n_jobs), "run")
    if answer.model and len(data) == 2 and task == "fit":
        answer.model.name_columns(column_names(data[0]))
    return answer
