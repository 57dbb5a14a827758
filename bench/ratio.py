#!/usr/bin/env python3
"""Divergences and mutual information of problems whose truth is known, many draws each: how far off, how often the interval
covers, and what a verdict means; beside nearest neighbours and classifiers of scikit-learn on the same samples.

    ./run bench ratio [--draws 10] [--only triangle,sine] [--peers knn,boosting,mlp] [--options "--critic net"] [--json]
                      [--group chosen|fresh|developed|kept|later|judged|hidden|blind|all] [--seeds 1] [--jobs 1] [--without program]
                      [--truths FILE] [--seconds S]

Truths are closed forms or means over two million draws of the true log ratio. Every draw is a new pair of samples, and the
program gets all its defaults. `covers` counts the 95 % intervals with the truth inside; `far` those that are off by more than
four standard errors although the answer was trusted. With --seeds the program answers the same files several times, and `seeds` is
the standard deviation over its seeds in units of the standard error that it says. What was chosen for the program (shares of
intervals, rules of verdicts) was chosen on problems of the group `chosen`, below; the group `fresh` (ratio_fresh.py)
came later, and some of it was looked at as well, as it says; so did `developed` and `kept` (ratio_more.py), and at last `later` and `judged`
(ratio_judged.py); `hidden` (ratio_hidden.py) has patterns of few columns among many, and `blind` (ratio_blind.py) was made by someone who did not know
how the program works.
The last lines are over all problems: mean errors of those with one, coverage of trusted answers, and answers far off.
The program is $N2CE_BIN or build/n2ce; --jobs runs so many draws side by side, a thread each. --truths reads truths from a file
and writes those that it does not have; with --seconds no draw begins later than that (first all problems have one, then two ..).
"""
import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import time

import numpy as np
from scipy.special import digamma, logsumexp
from scipy.spatial import cKDTree
from scipy.stats import beta, multivariate_normal, norm, t as student

import ratio_blind
import ratio_fresh
import ratio_hidden
import ratio_judged
import ratio_more

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANY = 2_000_000
QUANTILE = 1.959963984540054


# ---- distributions: draw(rng, n), log_density(x) -------------------------------------------------------------

class Mixture:
    """Gaussians of one width around centres."""

    def __init__(self, centres, width):
        self.centres, self.width = np.atleast_2d(np.asarray(centres, float)), width

    def draw(self, rng, n):
        which = rng.integers(len(self.centres), size=n)
        return self.centres[which] + self.width * rng.standard_normal((n, self.centres.shape[1]))

    def log_density(self, x):
        d = self.centres.shape[1]
        terms = np.stack([-((x - c) ** 2).sum(1) / (2 * self.width ** 2) for c in self.centres])
        return logsumexp(terms, axis=0) - np.log(len(self.centres)) - d * np.log(self.width * np.sqrt(2 * np.pi))


class Normal:
    def __init__(self, mean, cov):
        self.mean, self.cov = np.asarray(mean, float), np.asarray(cov, float)

    def draw(self, rng, n):
        return rng.multivariate_normal(self.mean, self.cov, n, method="cholesky")

    def log_density(self, x):
        return multivariate_normal(self.mean, self.cov).logpdf(x)


class Columns:
    """Independent columns of one kind, by functions of scipy.stats."""

    def __init__(self, kind, d):
        self.kind, self.d = kind, d

    def draw(self, rng, n):
        return self.kind.rvs((n, self.d), random_state=rng)

    def log_density(self, x):
        return self.kind.logpdf(x).sum(1)


class Mapped:
    """Rows of a distribution through exp: lognormal. Ratios stay what they were."""

    def __init__(self, of):
        self.of = of

    def draw(self, rng, n):
        return np.exp(self.of.draw(rng, n))

    def log_density(self, x):
        return self.of.log_density(np.log(x)) - np.log(x).sum(1)


def triangle(width, turned):
    angle = np.pi / 2 + 2 * np.pi * np.arange(3) / 3 + (np.pi if turned else 0)
    return Mixture(1.5 * np.c_[np.cos(angle), np.sin(angle)], width)


def ring(radius, width):
    angle = 2 * np.pi * np.arange(24) / 24
    return Mixture(radius * np.c_[np.cos(angle), np.sin(angle)], width)


def moon(turned):
    angle = np.pi * (np.arange(16) + .5) / 16
    x, y = np.cos(angle), np.sin(angle)
    return Mixture(np.c_[1 - x, .5 - y] if turned else np.c_[x, y], .45)


def grid(step, width):
    return Mixture([[step * i, step * j] for i in (-1, 0, 1) for j in (-1, 0, 1)], width)


def hidden(d):
    """Two bumps in the first of d columns, the others alike."""
    return Mixture(np.r_[[np.eye(d)[0] * 1.5], [-np.eye(d)[0] * 1.5]], 1)


def correlated(d, rho):
    return (1 - rho) * np.eye(d) + rho * np.ones((d, d))


def pairs_of():
    """name: (rows a side, numerator, denominator)"""
    return {
        "triangle": (1000, triangle(.6, False), triangle(.8, True)),
        "ring": (1000, ring(1.5, .3), Normal([0, 0], 1.2 * np.eye(2))),
        "bumps in 5": (1000, Mixture([[1.2, 0, 0, 0, 0], [-1.2, 0, 0, 0, 0]], .7), Normal(np.zeros(5), np.eye(5))),
        "sharp": (2000, Mixture([[0, 0], [3, 0], [0, 3]], .15), Mixture([[0, .2], [3, -.2], [.4, 3]], .3)),
        "shift in 5": (1000, Normal(np.full(5, .4), np.eye(5)), Normal(np.zeros(5), np.eye(5))),
        "correlation in 10": (1000, Normal(np.zeros(10), correlated(10, .4)), Normal(np.zeros(10), np.eye(10))),
        "student": (1000, Columns(student(2), 3), Columns(student(2, 1, 1.5), 3)),
        "lognormal": (1000, Mapped(Normal([.5, 0], np.eye(2))), Mapped(Normal([0, 0], 1.4 * np.eye(2)))),
        "moons": (1000, moon(False), moon(True)),
        "grid": (1000, grid(1.5, .35), Normal([0, 0], 1.6 * np.eye(2))),
        "hidden in 10": (2000, hidden(10), Normal(np.zeros(10), np.diag([3.25] + [1] * 9))),
        "beta": (1000, Columns(beta(2, 3), 2), Columns(beta(1, 1), 2)),
        "same": (1000, triangle(.6, False), triangle(.6, False)),
    }


# ---- mutual information: draw(rng, n) -> x, y; the truth ------------------------------------------------------

def sine_truth(rng):
    """y = sin 5x + .3 e, x normal: h(y) - h(e) by a mixture over x."""
    x, y = np.sin(5 * rng.standard_normal(4000)), None
    e = .3 * rng.standard_normal(4000)
    y = np.sin(5 * rng.standard_normal(4000)) + e
    log_y = logsumexp(-(y[:, None] - x[None]) ** 2 / (2 * .09), axis=1) - np.log(len(x))
    return float((-e ** 2 / (2 * .09) - log_y).mean())


def draw_sine(rng, n):
    x = rng.standard_normal((n, 1))
    return x, np.sin(5 * x) + .3 * rng.standard_normal((n, 1))


def draw_gauss(rho, d, rng, n):
    x = rng.standard_normal((n, d))
    return x, rho * x + np.sqrt(1 - rho * rho) * rng.standard_normal((n, d))


def draw_product(rng, n):
    """y = x_1 x_2 + .5 e among ten columns of x."""
    x = rng.standard_normal((n, 10))
    return x, (x[:, :1] * x[:, 1:2]) + .5 * rng.standard_normal((n, 1))


def product_truth(rng):
    a, b = rng.standard_normal((2, 6000))
    e = .5 * rng.standard_normal(6000)
    centres = np.prod(rng.standard_normal((2, 6000)), axis=0)
    log_y = logsumexp(-(a * b + e - centres[:, None]) ** 2 / .5, axis=0) - np.log(6000)
    return float((-e ** 2 / .5 - log_y).mean())


def noise_entropy_truth(draw, width, rng):
    """y = g(x) + width e: mean log p(y|x) - log p(y), p(y) a mixture over fresh x."""
    x, centres = draw(rng, 4000), draw(rng, 4000)
    y = x + width * rng.standard_normal(4000)
    log_y = logsumexp(norm.logpdf(y[:, None], centres[None], width), axis=1) - np.log(4000)
    return float((norm.logpdf(y, x, width) - log_y).mean())


def draw_square(rng, n):
    """y = x_1^2 + .5 e beside two columns that say nothing."""
    x = rng.standard_normal((n, 3))
    return x, x[:, :1] ** 2 + .5 * rng.standard_normal((n, 1))


def square_truth(rng):
    return noise_entropy_truth(lambda r, n: r.standard_normal(n) ** 2, .5, rng)


def draw_spread(rng, n):
    """y = e exp(.8 x): x says how wide y is, and nothing of where."""
    x = rng.standard_normal((n, 1))
    return x, np.exp(.8 * x) * rng.standard_normal((n, 1))


def spread_truth(rng):
    x, centres = rng.standard_normal((2, 4000))
    y = np.exp(.8 * x) * rng.standard_normal(4000)
    log_y = logsumexp(norm.logpdf(y[:, None], 0, np.exp(.8 * centres)[None]), axis=1) - np.log(4000)
    return float((norm.logpdf(y, 0, np.exp(.8 * x)) - log_y).mean())


CIRCLE = ring(1.5, .3)


def draw_circle(rng, n):
    both = CIRCLE.draw(rng, n)
    return both[:, :1], both[:, 1:]


def circle_truth(rng):
    both = CIRCLE.draw(rng, 40000)
    margins = [logsumexp(norm.logpdf(both[:, [k]], CIRCLE.centres[:, k][None], .3), axis=1) - np.log(24) for k in (0, 1)]
    return float((CIRCLE.log_density(both) - margins[0] - margins[1]).mean())


def joints_of():
    """name: (rows, how to draw, truth)"""
    rng = np.random.default_rng(1)
    return {
        "sine": (1000, draw_sine, lambda: np.mean([sine_truth(rng) for _ in range(10)])),
        "gauss, 3 + 3": (1000, functools.partial(draw_gauss, .6, 3), lambda: -1.5 * np.log(1 - .36)),
        "product in 10": (2000, draw_product, lambda: np.mean([product_truth(rng) for _ in range(10)])),
        "square in 3": (1000, draw_square, lambda: np.mean([square_truth(rng) for _ in range(10)])),
        "spread": (1000, draw_spread, lambda: np.mean([spread_truth(rng) for _ in range(10)])),
        "circle": (1000, draw_circle, lambda: np.mean([circle_truth(rng) for _ in range(5)])),
        "none": (1000, functools.partial(draw_gauss, 0, 2), lambda: 0.0),
    }


# ---- truths ---------------------------------------------------------------------------------------------------

def divergences(num, den):
    """KL both ways and Jensen-Shannon, by the true log ratio of many draws."""
    rng = np.random.default_rng(7)
    parts = {"kl": [], "kl_reverse": [], "js": []}
    for _ in range(20):
        f, g = (num.log_density(x) - den.log_density(x) for x in (num.draw(rng, MANY // 20), den.draw(rng, MANY // 20)))
        parts["kl"].append(f.mean())
        parts["kl_reverse"].append(-g.mean())
        parts["js"].append(np.log(2) - (np.logaddexp(0, -f).mean() + np.logaddexp(0, g).mean()) / 2)
    return {name: float(np.mean(values)) for name, values in parts.items()}


# ---- what a practitioner would do -------------------------------------------------------------------------------

def knn_kl(num, den, k=5):
    """Wang, Kulkarni and Verdu: logarithms of distances to the k-th neighbours."""
    scale = np.vstack([num, den]).std(0)
    num, den = num / scale, den / scale
    own = cKDTree(num).query(num, k + 1)[0][:, -1]
    other = cKDTree(den).query(num, k)[0][:, -1]
    return num.shape[1] * np.mean(np.log(other / own)) + np.log(len(den) / (len(num) - 1))


def ksg_mi(x, y, k=3):
    """Kraskov, Stoegbauer and Grassberger's first estimator."""
    x, y = x / x.std(0), y / y.std(0)
    reach = cKDTree(np.hstack([x, y])).query(np.hstack([x, y]), k + 1, p=np.inf)[0][:, -1] - 1e-12
    counts = [cKDTree(v).query_ball_point(v, reach, p=np.inf, return_length=True) for v in (x, y)]
    return float(digamma(k) + digamma(len(x)) - np.mean(digamma(counts[0]) + digamma(counts[1])))


def classifier(kind):
    if kind == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier
        return HistGradientBoostingClassifier(max_iter=100, learning_rate=.05, early_stopping=False)
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    return make_pipeline(StandardScaler(), MLPClassifier((64, 64), early_stopping=True, random_state=0, max_iter=200))


def by_classifier(kind, num, den):
    """Mean cross-fitted log odds of the numerator's rows, five folds."""
    rows, label = np.vstack([num, den]), np.r_[np.ones(len(num)), np.zeros(len(den))]
    order, total = np.random.default_rng(0).permutation(len(rows)), 0.0
    for fold in range(5):
        held = order[fold::5]
        model = classifier(kind).fit(rows[np.setdiff1d(order, held)], label[np.setdiff1d(order, held)])
        p = np.clip(model.predict_proba(rows[held][label[held] == 1])[:, 1], 1e-6, 1 - 1e-6)
        total += np.log(p / (1 - p)).sum()
    return total / len(num) + np.log(len(den) / len(num))


def peer_answer(peer, num, den, joint):
    if joint:
        shuffled = np.random.default_rng(0).permutation(len(den))
        if peer == "knn":
            return {"mi": ksg_mi(num, den)}
        return {"mi": by_classifier(peer, np.hstack([num, den]), np.hstack([num, den[shuffled]]))}
    one_way = knn_kl if peer == "knn" else functools.partial(by_classifier, peer)
    return {"kl": one_way(num, den), "kl_reverse": one_way(den, num)}


# ---- the program ------------------------------------------------------------------------------------------------

def ask(args, options, num, den, seed, joint, folder):
    """The numbers (value, lo, hi, whether it is trusted) by name."""
    program = os.environ.get("N2CE_BIN", str(ROOT / "build" / "n2ce"))
    if joint:
        np.save(folder + "/joint.npy", np.hstack([num, den]))
        dx, dy = num.shape[1], den.shape[1]
        what = ["mi", folder + "/joint.npy", "--x", f"0-{dx - 1}", "--y", f"{dx}-{dx + dy - 1}"]
    else:
        np.save(folder + "/num.npy", num)
        np.save(folder + "/den.npy", den)
        what = ["divergence", "-n", folder + "/num.npy", "-d", folder + "/den.npy"]
    threads = ["--threads", "1"] if args.jobs > 1 else []
    command = [program, *what, "--json", "--seed", str(seed), *threads, *shlex.split(args.options + " " + options)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    numbers = {"mi": found} if joint else {name: found[name] for name in ("kl", "kl_reverse", "js")}
    return {name: (v.get("value", v.get("estimate")), v["lo"], v["hi"], v["verdict"] == "trusted") for name, v in numbers.items()}


def answer_draw(args, p, number):
    """What the program says of a draw, by seed, what peers say, and the program's seconds."""
    num, den = p.draw(np.random.default_rng([number + args.first, 11]), p.rows)
    joint = p.joint
    begin, said = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seeds if "program" not in args.without else 0):
            said.append(ask(args, p.options, num, den, number + args.first + 1000 * seed, joint, folder))
    seconds = (time.perf_counter() - begin) / max(len(said), 1)
    return said, {peer: peer_answer(peer, num, den, joint) for peer in args.peers}, seconds


def judge(said, key, true):
    value, low, high, trusted = (np.array([[a[key][i] for a in draw] for draw in said], float) for i in range(4))
    error, inside = (high - low) / (2 * QUANTILE), (low <= true) & (true <= high)
    first = value[:, 0]
    return {"error": float(np.abs(first - true).mean()), "bias": float((first - true).mean()),
            "spread": float(first.std(ddof=1)) if len(first) > 1 else 0.0, "said": float(error[:, 0].mean()),
            "seeds": float((value.std(1, ddof=1) / error.mean(1)).mean()) if value.shape[1] > 1 else None,
            "covers": int(inside[:, 0].sum()), "trusted": int(trusted[:, 0].sum()),
            "covers_trusted": int((inside * trusted)[:, 0].sum()),
            "far": int(((np.abs(value - true) > 4 * error) * trusted)[:, 0].sum()),
            "answers": [[round(float(x), 5) for x in row] for row in np.c_[value[:, 0], low[:, 0], high[:, 0], trusted[:, 0]]]}


def truth_of(args, p):
    known = {}
    if args.truths and os.path.exists(args.truths):
        known = json.loads(pathlib.Path(args.truths).read_text())
    if p.name not in known:
        known[p.name] = p.truth()
        if args.truths:
            pathlib.Path(args.truths).write_text(json.dumps(known, indent=0))
    return known[p.name]


def measure(args, p, draws):
    truth = truth_of(args, p)
    seconds = sorted(d[2] for d in draws)
    out = {"problem": p.name, "rows": p.rows, "truth": truth, "n2ce": {}, "peers": {}, "draws": len(draws),
           "seconds": float(np.mean(seconds)), "every": seconds}
    for key, true in truth.items():
        if draws[0][0]:
            out["n2ce"][key] = judge([d[0] for d in draws], key, true)
        for peer in args.peers:
            if key in draws[0][1][peer]:
                out["peers"].setdefault(peer, {})[key] = float(np.mean([abs(d[1][peer][key] - true) for d in draws]))
    return out


Problem = collections.namedtuple("Problem", "name rows draw truth joint options")


def pair_problem(name, rows, num, den, options=""):
    def draw(rng, n):
        sizes = n if isinstance(n, tuple) else (n, n)
        return num.draw(rng, sizes[0]), den.draw(rng, sizes[1])
    return Problem(name, rows, draw, lambda: divergences(num, den), False, options)


def further(pairs, joints, mutual_information):
    for name, (n, m, num, den, options) in pairs.items():
        yield pair_problem(name, (n, m), num, den, options)
    for name, (rows, draw, _, options) in joints.items():
        yield Problem(name, rows, draw, lambda name=name: {"mi": mutual_information(name)}, True, options)


def all_draws(args, chosen):
    """Draws of all problems by problem, the first of each before the second of any."""
    begin, found = time.perf_counter(), {p.name: [] for p in chosen}

    def one(task):
        number, p = task
        if args.seconds and time.perf_counter() - begin > args.seconds:
            return
        found[p.name].append((number, answer_draw(args, p, number)))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, [(number, p) for number in range(args.draws) for p in chosen]))
    return {name: [answer for _, answer in sorted(of, key=lambda item: item[0])] for name, of in found.items()}


def problems(group):
    if group in ("chosen", "all"):
        for name, (rows, num, den) in pairs_of().items():
            yield pair_problem(name, rows, num, den)
        for name, (rows, draw, truth) in joints_of().items():
            yield Problem(name, rows, draw, lambda truth=truth: {"mi": float(truth())}, True, "")
    if group in ("fresh", "all"):
        yield from further(ratio_fresh.fresh_pairs(), ratio_fresh.fresh_joints(), ratio_fresh.mutual_information)
    if group in ("developed", "all"):
        yield from further(ratio_more.developed_pairs(), ratio_more.developed_joints(), ratio_more.mutual_information)
    if group in ("kept", "all"):
        yield from further(ratio_more.kept_pairs(), ratio_more.kept_joints(), ratio_more.mutual_information)
    if group in ("later", "all"):
        yield from further(ratio_judged.later_pairs(), ratio_judged.later_joints(), ratio_judged.mutual_information)
    if group in ("judged", "all"):
        yield from further(ratio_judged.judged_pairs(), ratio_judged.judged_joints(), ratio_judged.mutual_information)
    if group in ("blind", "all"):
        yield from further(ratio_blind.blind_pairs(), ratio_blind.blind_joints(), ratio_blind.mutual_information)
    if group in ("hidden", "all"):
        yield from further(ratio_hidden.hidden_pairs(), ratio_hidden.hidden_joints(), ratio_hidden.mutual_information)


def summarise(args, rows):
    """Over all problems: mean absolute errors of KL (both ways) and of MI, and what trust was worth."""
    for what, keys in (("KL", ("kl", "kl_reverse")), ("MI", ("mi",))):
        cells = [(r["n2ce"].get(k), [r["peers"].get(p, {}).get(k) for p in args.peers]) for r in rows for k in keys if k in r["truth"]]
        if not cells or not cells[0][0]:
            continue
        means = [np.mean([v["error"] for v, _ in cells])] + [np.mean([p[i] for _, p in cells]) for i in range(len(args.peers))]
        print(f"mean error, {what}: " + ", ".join(f"{who} {e:.4f}" for who, e in zip(["n2ce", *args.peers], means)))
    found = [v for r in rows for v in r["n2ce"].values()]
    if found:
        total = {k: sum(v[k] for v in found) for k in ("covers", "trusted", "covers_trusted", "far")}
        answers, runs = sum(r["draws"] * len(r["n2ce"]) for r in rows), sum(r["draws"] for r in rows)
        print(f"{runs} runs, half of them within {np.median([s for r in rows for s in r['every']]):.1f} s; "
              f"{answers} answers: {total['covers']} cover; {total['trusted']} trusted, {total['covers_trusted']} of them cover, "
              f"{total['far']} are off by more than four standard errors")


def show(args, row):
    for key, true in row["truth"].items():
        v, cells = row["n2ce"].get(key), [f"{row['problem']}: {key}", f"{true:.4f}"]
        if v:
            cells += [f"{v['error']:.3f}", f"{v['bias']:+.3f}", f"{v['spread']:.3f}", f"{v['said']:.3f}",
                      f"{v['covers']} of {row['draws']}", f"{v['covers_trusted']} of {v['trusted']}", str(v["far"])]
            cells += [f"{v['seeds']:.2f}"] if args.seeds > 1 else []
        cells += [f"{row['peers'][p][key]:.3f}" if key in row["peers"].get(p, {}) else "" for p in args.peers]
        print("| " + " | ".join(cells) + f" | {row['seconds']:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--only", default="", help="some problems, by the beginnings of their names, with commas between them")
    parser.add_argument("--group", default="all", choices=["all", "chosen", "fresh", "developed", "kept", "later", "judged", "hidden", "blind"])
    parser.add_argument("--first", type=int, default=0, help="number of the first draw: others are other samples")
    parser.add_argument("--peers", default="knn,boosting,mlp")
    parser.add_argument("--options", default="", help="of the program")
    parser.add_argument("--seeds", type=int, default=1, help="of the program, for the same files")
    parser.add_argument("--jobs", type=int, default=1, help="draws side by side")
    parser.add_argument("--without", default="", choices=["", "program"], help="peers alone, where there is no program")
    parser.add_argument("--truths", default="", help="a file that keeps them")
    parser.add_argument("--seconds", type=float, default=0, help="no draw begins later than that")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.peers = [p for p in args.peers.split(",") if p]
    rows = []
    if not args.json:
        said = ["mean error", "bias", "spread", "said", "covers", "covers, trusted", "far, trusted"]
        head = ["", "truth", *(said if not args.without else []), *(["seeds"] if args.seeds > 1 else []), *args.peers, "s"]
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    chosen = [p for p in problems(args.group) if any(p.name.startswith(begin) for begin in args.only.split(","))]
    draws = all_draws(args, chosen)
    for problem in chosen:
        if not draws[problem.name]:
            continue
        rows.append(measure(args, problem, draws[problem.name]))
        if not args.json:
            show(args, rows[-1])
    if args.json:
        print(json.dumps(rows))
    else:
        summarise(args, rows)


if __name__ == "__main__":
    main()
