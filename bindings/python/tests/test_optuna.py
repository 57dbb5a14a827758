"""OfflineSampler: n2ce as a sampler of Optuna's studies."""
import unittest
import warnings

import n2ce

try:
    import optuna

    from n2ce.optuna import OfflineSampler
except ImportError:
    optuna = None

FAST = {"effort": 0.02, "rounds": 4}


def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    rate = trial.suggest_float("rate", 1e-4, 1, log=True)
    n = trial.suggest_int("n", 1, 9, step=2)
    kind = trial.suggest_categorical("kind", ["red", "green", "blue"])
    return -((x - 1) ** 2) - (n - 5) ** 2 + (kind == "green") - abs(rate - 0.01)


@unittest.skipIf(optuna is None, "Optuna is not installed")
class Sampler(unittest.TestCase):
    def study(self, sampler, trials, direction="maximize", of=objective):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(direction=direction, sampler=sampler)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", n2ce.Warning)
            study.optimize(of, n_trials=trials)
        return study

    def test_what_is_learnt_beats_chance(self):
        study = self.study(OfflineSampler(startup_trials=24, batch=8, options=FAST, seed=1), 40)
        values = [t.value for t in study.trials]
        self.assertGreater(max(values[24:]), max(values[:24]))
        self.assertGreater(sum(values[24:]) / 16, sum(values[:24]) / 24 + 5)

    def test_minimizing_turns_it_round(self):
        study = self.study(OfflineSampler(startup_trials=16, batch=8, options=FAST, seed=2), 24,
                           "minimize", lambda t: (t.suggest_float("x", -5, 5) - 2) ** 2)
        self.assertLess(max(t.value for t in study.trials[16:]), 4)

    def test_two_objectives_are_refused(self):
        study = optuna.create_study(directions=["maximize", "maximize"],
                                    sampler=OfflineSampler(options=FAST))
        with self.assertRaisesRegex(ValueError, "one objective"):
            study.optimize(lambda t: (t.suggest_float("x", 0, 1), 1.0), n_trials=3)


if __name__ == "__main__":
    unittest.main()
