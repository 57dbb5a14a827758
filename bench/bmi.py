#!/usr/bin/env python3
"""Mutual information with a known answer: n2ce against KSG, CCA, MINE and InfoNCE.

The tasks are the 40 of version 1 of the benchmark of Czyz et al., "Beyond normal: on the evaluation
of mutual information estimators" (NeurIPS 2023), package benchmark-mi on PyPI. Its protocol: 5000
samples, columns rescaled to mean 0 and deviation 1, seeds 0, 1, 2, ..., nothing tuned per task. The
package draws the samples, writes the CSV file, knows the truth and runs everyone:

  n2ce      as an external program: `n2ce mi --bmi PATH DIM_X DIM_Y`; all it prints, on either
            stream, must be one number. The program is $N2CE_BIN or build/n2ce.
  the rest  the package's own estimators with their defaults

    ./run bench bmi [--json] [--seeds K] [--tasks a,b] [--methods a,b] [--peers-only]

Tasks may be patterns ('student-*'). Every result is appended to out/bmi/results.jsonl as soon as it
is there, and what is there is not computed again, so an interrupted run goes on where it was;
n2ce's results are kept per build. The neural peers need half a minute a task on one core.

The table has, per method, the mean estimate over the seeds, the mean absolute error and the median
time in seconds (for n2ce with the start of the process and the reading of the file, for JAX with
compilation; peers are timed once, when their results enter the cache). The peers need Python 3.9 to
3.11 and old packages, which ./run installs into build-bmi.
"""
import argparse
import fnmatch
import hashlib
import json
import math
import os
import pathlib
import statistics
import sys
import tempfile

from step import environment, keep_to_cores

sys.path.pop(0)  # this folder: "import bmi" means the package, not this file

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "out" / "bmi" / "results.jsonl"
SAMPLES = 5000
METHODS = {"n2ce": "n2ce", "ksg": "KSG", "cca": "CCA", "mine": "MINE", "infonce": "InfoNCE"}
COLUMNS = ("task", "method", "seed", "truth", "estimate", "lo", "hi", "seconds")


# ---- the estimators ------------------------------------------------------------------------------


def make_estimator(bmi, method, program):
    from bmi.estimators.external.external_estimator import ExternalEstimator

    class Program(ExternalEstimator):
        def _build_command(self, path, dim_x, dim_y):
            return [str(program), "mi", "--bmi", str(path), str(dim_x), str(dim_y)]

        def parameters(self):
            return None

    return {"n2ce": Program,
            "ksg": bmi.estimators.KSGEnsembleFirstEstimator,
            "cca": bmi.estimators.CCAMutualInformationEstimator,
            "mine": lambda: bmi.estimators.MINEEstimator(verbose=False),
            "infonce": lambda: bmi.estimators.InfoNCEEstimator(verbose=False)}[method]()


def digest(path):
    """What tells one build of the program from another."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]


# ---- the cache -----------------------------------------------------------------------------------


def key_of(row):
    return row["task"], row["method"], row["seed"], row["n"], row["build"]


def read_cache():
    """Rows by their key. A line cut short by a crash does not count."""
    rows = {}
    for line in CACHE.read_text().splitlines() if CACHE.exists() else []:
        try:
            row = json.loads(line)
            rows[key_of(row)] = row
        except (ValueError, KeyError, TypeError):
            continue
    return rows


def append_to_cache(row):
    """One write per row, so that several runs may append at a time."""
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with open(CACHE, "ab+") as file:
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(-1, os.SEEK_END)
        torn = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * torn + json.dumps(row).encode() + b"\n")


# ---- running -------------------------------------------------------------------------------------


def number_or_none(value):
    value = float(value)
    return value if math.isfinite(value) else None


def estimate(bmi, task, estimator, wanted, path):
    """The finished row, None with the reason on stderr if there is no answer."""
    done = bmi.run_estimator(estimator=estimator, estimator_id=wanted["method"], sample_path=path,
                             task_id=task.id, seed=wanted["seed"])
    if not done.success:
        info = done.additional_information
        reason = info.get("subprocess_output") or info.get("error")
        print(f"no estimate from {wanted['method']} for {task.id}, seed {wanted['seed']}: {reason}",
              file=sys.stderr)
        return None
    return wanted | {"truth": float(task.mutual_information), "lo": None, "hi": None,
                     "estimate": number_or_none(done.mi_estimate), "seconds": done.time_in_seconds}


def run_missing(bmi, task, missing, program):
    """Yields the rows that were computed for one task and seed, in one sample."""
    scaled = bmi.benchmark.tasks.transform_rescale(task, task_name=task.name, task_id=task.id)
    with tempfile.TemporaryDirectory(prefix="n2ce-bmi-") as folder:
        path = os.path.join(folder, "sample.csv")
        scaled.save_sample(path, SAMPLES, missing[0]["seed"])
        for wanted in missing:
            estimator = make_estimator(bmi, wanted["method"], program)
            row = estimate(bmi, task, estimator, wanted, path)
            if row:
                append_to_cache(row)
                yield row


def run(bmi, tasks, methods, seeds, program):
    """All rows, in the order of seeds, tasks, methods."""
    cache, rows = read_cache(), []
    build = digest(program) if "n2ce" in methods else ""
    for seed in range(seeds):
        for task in tasks:
            wanted = [{"task": task.id, "method": method, "seed": seed, "n": SAMPLES,
                       "build": build if method == "n2ce" else ""} for method in methods]
            missing = [w for w in wanted if key_of(w) not in cache]
            if missing:
                print(f"seed {seed}, {task.id}: {', '.join(w['method'] for w in missing)}",
                      file=sys.stderr, flush=True)
                cache |= {key_of(row): row for row in run_missing(bmi, task, missing, program)}
            rows += [cache[key_of(w)] for w in wanted if key_of(w) in cache]
    return rows


# ---- the table -----------------------------------------------------------------------------------


def summary(rows):
    """Mean estimate, mean absolute error, median seconds and number of failures of some rows."""
    good = [row for row in rows if row["estimate"] is not None]
    if not good:
        return None
    return {"mean": statistics.fmean(row["estimate"] for row in good),
            "error": statistics.fmean(abs(row["estimate"] - row["truth"]) for row in good),
            "seconds": statistics.median(row["seconds"] for row in good),
            "failed": len(rows) - len(good)}


def cells(result):
    if not result:
        return ["-", "-", "-"]
    failed = f" ({result['failed']} failed)" if result["failed"] else ""
    return [f"{result['mean']:.3f}{failed}", f"{result['error']:.3f}", f"{result['seconds']:.2f}"]


def mean_cells(results):
    """The last row: over the tasks that have a result."""
    good = [result for result in results if result]
    if not good:
        return ["-", "-", "-"]
    return [f"({len(good)} of {len(results)})", f"{statistics.fmean(r['error'] for r in good):.3f}",
            f"{statistics.fmean(r['seconds'] for r in good):.2f}"]


def table(rows, tasks, methods, seeds):
    groups = {}
    for row in rows:
        groups.setdefault((row["task"], row["method"]), []).append(row)
    results = {(task.id, m): summary(groups.get((task.id, m), []))
               for task in tasks for m in methods}
    head = ["task", "truth"]
    for method in methods:
        head += [METHODS[method], "error", "s"]
    lines = [head, ["---"] * len(head)]
    for task in tasks:
        line = [task.id, f"{float(task.mutual_information):.3f}"]
        for method in methods:
            line += cells(results[task.id, method])
        lines.append(line)
    last = ["**mean over tasks**", ""]
    for method in methods:
        last += mean_cells([results[task.id, method] for task in tasks])
    lines.append(last)
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{text}\n\nn = {SAMPLES}, {seeds} seed{'s' * (seeds != 1)}, nats."


# ---- the command line ----------------------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--seeds", type=int, default=10, help="repetitions (default: 10)")
    parser.add_argument("--tasks", default="*", help="names or patterns, with commas")
    parser.add_argument("--methods", default=",".join(METHODS), help="some of: %(default)s")
    parser.add_argument("--peers-only", action="store_true", help="all methods but n2ce")
    args = parser.parse_args()
    args.methods = [m for m in args.methods.split(",") if not (args.peers_only and m == "n2ce")]
    for method in args.methods:
        if method not in METHODS:
            parser.error(f"there is no method {method}; it is one of {', '.join(METHODS)}")
    args.program = os.path.abspath(os.environ.get("N2CE_BIN") or ROOT / "build" / "n2ce")
    if "n2ce" in args.methods and not os.access(args.program, os.X_OK):
        parser.error(f"{args.program} is no program; use ./run build, N2CE_BIN or --peers-only")
    return args


def choose_tasks(bmi, patterns):
    tasks = []
    for pattern in patterns.split(","):
        found = [task for name, task in bmi.BENCHMARK_TASKS.items()
                 if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            sys.exit(f"bmi.py: no task is called {pattern}; they are:\n  "
                     + "\n  ".join(bmi.BENCHMARK_TASKS))
        tasks += [task for task in found if task not in tasks]
    return tasks


def main():
    args = parse_arguments()
    keep_to_cores()
    os.environ.update(environment())  # before NumPy and JAX look at it
    import bmi

    tasks = choose_tasks(bmi, args.tasks)
    rows = run(bmi, tasks, args.methods, args.seeds, args.program)
    if args.json:
        print(json.dumps([{name: row[name] for name in COLUMNS} for row in rows]))
    else:
        print(table(rows, tasks, args.methods, args.seeds))
    return 0 if len(rows) == args.seeds * len(tasks) * len(args.methods) else 1


if __name__ == "__main__":
    sys.exit(main())
