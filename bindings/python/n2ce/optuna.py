"""OfflineSampler: ``n2ce optimize`` as a sampler of Optuna's studies (ask and tell).

    study = optuna.create_study(direction="maximize", sampler=n2ce.optuna.OfflineSampler(seed=0))
    study.optimize(objective, n_trials=100)

Learns from the finished trials, and asks for the designs that it proposes, several before it learns
again. Needs Optuna.
"""
import os
import tempfile

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import StudyDirection
from optuna.trial import TrialState

from .optimizer import OfflineOptimizer


def _number(distribution, value):
    """A value as a column of X has it: levels by their places, logarithms where they are asked for."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices.index(value)
    return float(np.log(value)) if distribution.log else float(value)


def _value(distribution, number):
    """The other way round, within the bounds and on the steps of the distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(number)]
    value = float(np.exp(number) if distribution.log else number)
    if distribution.step:
        steps = round((value - distribution.low) / distribution.step)
        value = distribution.low + steps * distribution.step
    value = min(max(value, distribution.low), distribution.high)
    return value if isinstance(distribution, FloatDistribution) else int(round(value))


class OfflineSampler(BaseSampler):
    """Proposes parameters by ``OfflineOptimizer`` fitted to the trials that are complete.

    Parameters
    ----------
    startup_trials : trials by chance before anything is learnt; at least 8.
    batch : trials that are asked for before it learns again.
    options : of ``n2ce optimize``, as OfflineOptimizer takes them; by default short training.
    seed : a whole number, or None.

    One objective; parameters that every trial has. Others, and those before the first trials are
    complete, are drawn by Optuna's RandomSampler.
    """

    def __init__(self, startup_trials=16, batch=8, options=None, seed=None):
        if startup_trials < 8 or batch < 1:
            raise ValueError("startup_trials must be at least 8 and batch at least 1.")
        self._startup, self._batch = startup_trials, batch
        self._options = {"effort": 0.1, "rounds": 8} if options is None else dict(options)
        self._seed = seed
        self._random = RandomSampler(seed=seed)
        self._space = IntersectionSearchSpace()
        self._waiting, self._learnt = [], 0

    def reseed_rng(self):
        self._random.reseed_rng()

    def infer_relative_search_space(self, study, trial):
        space = self._space.calculate(study)
        return {name: d for name, d in space.items() if not d.single()}

    def sample_independent(self, study, trial, param_name, param_distribution):
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def sample_relative(self, study, trial, search_space):
        if len(study.directions) != 1:
            raise ValueError("OfflineSampler takes one objective; weigh several into one.")
        done = [t for t in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
                if all(name in t.params for name in search_space)]
        if not search_space or len(done) < self._startup:
            return {}
        if not self._waiting or len(done) >= self._learnt + self._batch:
            self._learn(study, search_space, done)
        return self._waiting.pop(0) if self._waiting else {}

    def _learn(self, study, space, done):
        names = sorted(space)
        X = np.array([[_number(space[n], t.params[n]) for n in names] for t in done], dtype=float)
        y = np.array([t.value for t in done])
        self._learnt, self._waiting = len(done), []
        if y.min() == y.max():  # nothing to learn from yet
            return
        table = X.astype(object)
        levels = [j for j, n in enumerate(names) if isinstance(space[n], CategoricalDistribution)]
        for j in levels:
            table[:, j] = [str(int(code)) for code in X[:, j]]
        for design in self._propose(study, space, names, table if levels else X, y, levels):
            self._waiting.append({n: _value(space[n], v) for n, v in zip(names, design)})

    def _propose(self, study, space, names, X, y, levels):
        with tempfile.TemporaryDirectory() as folder:
            bounds = os.path.join(folder, "bounds.csv")
            with open(bounds, "w") as f:
                f.write("column,low,high\n")
                for j, n in enumerate(names):
                    if j not in levels:
                        f.write(f"{j},{_number(space[n], space[n].low)!r},"
                                f"{_number(space[n], space[n].high)!r}\n")
            options = dict(self._options)
            if len(levels) < len(names):
                options["bounds"] = bounds
            model = OfflineOptimizer(minimize=study.direction == StudyDirection.MINIMIZE,
                                     categorical=levels or None, options=options,
                                     random_state=self._seed)
            return model.fit(X, y).propose(self._batch).designs
