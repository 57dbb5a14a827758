"""Library, options, errors, interruption: what does not need a fitted model."""
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import numpy as np

import n2ce
from n2ce import _core, _library


class Loading(unittest.TestCase):
    def run_python(self, code, **environment):
        return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment},
                              capture_output=True, text=True)

    def test_version_is_that_of_the_library(self):
        self.assertRegex(n2ce.__version__, r"^\d+\.\d+\.\d+$")

    def test_named_library_that_is_missing(self):
        seen = self.run_python("import n2ce", N2CE_LIBRARY="/nowhere/libn2ce.so")
        self.assertIn("ImportError: libn2ce could not be loaded", seen.stderr)
        self.assertIn("/nowhere/libn2ce.so", seen.stderr)

    def test_function_that_an_older_library_lacks(self):
        library = _library.Library(_core.lib.path)
        with unittest.mock.patch.dict(_library._FUNCTIONS, {"n2ce_new_thing": (None, [])}):
            with self.assertRaisesRegex(ImportError, "has no n2ce_new_thing: it is older"):
                library.n2ce_new_thing

    def test_importing_does_not_import_scikit_learn_or_torch(self):
        seen = self.run_python("import sys, n2ce; print({'sklearn', 'torch'} & set(sys.modules))")
        self.assertEqual(seen.stdout, "set()\n", seen.stderr)

    def test_structures_have_the_sizes_of_the_header(self):
        """The context and the objective check struct_size; a wrong one is refused."""
        _core.Context(1)
        n2ce.n2ce_loss([0.0], [0.0])


class Tasks(unittest.TestCase):
    small = dict(dim=2, n=20, runs=4, steps=10, magnitudes=[1, 10])

    def test_tasks_are_listed(self):
        self.assertIn("study gaussian", n2ce.tasks())

    def test_answer_has_text_and_json(self):
        answer = n2ce.run("study gaussian", **self.small)
        self.assertIn("Gaussian location family", str(answer))
        self.assertEqual(json.loads(json.dumps(answer.details)), answer.details)
        self.assertIsNone(answer.model)

    def test_result_does_not_depend_on_threads(self):
        one = n2ce.run("study gaussian", n_jobs=1, **self.small)
        two = n2ce.run("study gaussian", n_jobs=2, **self.small)
        self.assertEqual(str(one), str(two))

    def test_unknown_task(self):
        with self.assertRaisesRegex(ValueError, "no task 'study gausian'; there are: .*gaussian"):
            n2ce.run("study gausian")

    def test_unknown_keyword_names_the_nearest(self):
        with self.assertRaisesRegex(TypeError, r"run\(\) got an unexpected keyword argument "
                                    "'rnus'; did you mean 'runs'"):
            n2ce.run("study gaussian", rnus=3)
        with self.assertRaisesRegex(TypeError, "argument 'completely_different'$"):
            n2ce.run("study gaussian", completely_different=3)

    def test_bad_value_is_the_librarys_message(self):
        with self.assertRaisesRegex(n2ce.InvalidArgument, "^runs: 1.5 is not a whole number"):
            n2ce.run("study gaussian", runs=1.5)
        with self.assertRaisesRegex(ValueError, "magnitudes is 0.5; it must be between 1 and"):
            n2ce.run("study gaussian", magnitudes=[0.5])

    def test_value_of_a_strange_type(self):
        with self.assertRaisesRegex(TypeError, "runs is a object"):
            n2ce.run("study gaussian", runs=object())

    def test_n_jobs(self):
        with self.assertRaisesRegex(ValueError, "n_jobs is 0"):
            n2ce.run("study gaussian", n_jobs=0)


class OptionTexts(unittest.TestCase):
    def test_texts(self):
        for value, text in ((True, "true"), (np.False_, "false"), (3, "3"), (np.int64(3), "3"),
                            (100.0, "100"), (0.1, "0.10000000000000001"), (np.float32(0.5), "0.5"),
                            ("auto", "auto"), ([1, 2.5], "1,2.5"), (np.array([1.0, 10]), "1,10"),
                            (("a", "b"), "a,b")):
            self.assertEqual(_core.option_text("x", value), text)

    def test_null_character(self):
        with self.assertRaisesRegex(ValueError, "null character"):
            _core.option_text("x", "a\0b")

    def test_seeds(self):
        self.assertIsNone(_core.seed_of(None))
        self.assertEqual(_core.seed_of(7), 7)
        for make in (np.random.default_rng, np.random.RandomState):
            self.assertEqual(_core.seed_of(make(1)), _core.seed_of(make(1)))
        with self.assertRaisesRegex(ValueError, "random_state is 'x'"):
            _core.seed_of("x")


class Errors(unittest.TestCase):
    def test_every_status_of_the_header_has_an_exception(self):
        for status in range(-1, -10, -1):
            error = _core.error_of(status, "text")
            self.assertIsInstance(error, n2ce.Error)
            self.assertEqual((error.status, str(error)), (status, "text"))
        texts = {_core.lib.n2ce_status_text(-9), _core.lib.n2ce_status_text(-10)}
        self.assertTrue(any(b"unknown" in text for text in texts), texts)

    def test_options_are_spelled_as_keywords(self):
        self.assertEqual(str(_core.error_of(-1, "--stage-count is 0; use --n, not -1 or --.")),
                         "stage_count is 0; use n, not -1 or --.")
        self.assertEqual(str(_core.error_of(-1, "Leave --M and --lambda out.")),
                         "Leave magnitude and regularisation out.")

    def test_they_are_pythons_kinds_too(self):
        for kind, builtin in ((n2ce.InvalidArgument, ValueError), (n2ce.NotFinite, ValueError),
                              (n2ce.BadData, ValueError), (n2ce.OutOfMemory, MemoryError),
                              (n2ce.OutOfRange, OverflowError), (n2ce.FileProblem, OSError),
                              (n2ce.FileExists, FileExistsError)):
            self.assertTrue(issubclass(kind, builtin))

    def test_warnings_of_the_library(self):
        context = _core.Context(1)
        context.warnings.append("careful")
        with self.assertWarnsRegex(n2ce.Warning, "careful"):
            context.emit_warnings()


class Interruption(unittest.TestCase):
    forever = dict(dim=5, n=500, runs=10**9)

    def setUp(self):
        """Counts the runs inside the library: none may be left when an exception arrives."""
        self.running, fulfil = [], _core._fulfil

        def counted(*arguments):
            self.running.append(1)
            fulfil(*arguments)
            self.running.pop()

        patch = unittest.mock.patch.object(_core, "_fulfil", counted)
        self.addCleanup(patch.stop)
        patch.start()

    def assert_idle(self):
        time.sleep(0.1)  # from "done" to the end of the thread
        self.assertEqual(self.running, [])

    def interrupt_after(self, seconds, number):
        timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
        timer.start()
        self.addCleanup(timer.join)

    def test_ctrl_c(self):
        self.interrupt_after(0.5, signal.SIGINT)
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            n2ce.run("study gaussian", **self.forever)
        self.assertLess(time.monotonic() - start, 10)
        self.assert_idle()
        n2ce.run("study gaussian", **Tasks.small)  # and life goes on

    def test_ctrl_c_again_while_it_stops(self):
        self.interrupt_after(0.5, signal.SIGINT)
        cancel, calls = _core.lib.n2ce_ctx_cancel, []

        def interrupted(handle):
            calls.append(handle)
            if len(calls) == 1:
                raise KeyboardInterrupt
            cancel(handle)

        with unittest.mock.patch.object(_core.lib, "n2ce_ctx_cancel", interrupted):
            with self.assertRaises(KeyboardInterrupt):
                n2ce.run("study gaussian", **self.forever)
        self.assertGreater(len(calls), 1)
        self.assert_idle()

    def test_exception_of_another_handler(self):
        def on_alarm(_number, _frame):
            raise TimeoutError("time is up")

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, on_alarm))
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with self.assertRaisesRegex(TimeoutError, "time is up"):
            n2ce.run("study gaussian", **self.forever)
        self.assert_idle()

    def test_other_threads_run_tasks_too(self):
        texts = []
        workers = [threading.Thread(target=lambda: texts.append(
            str(n2ce.run("study gaussian", **Tasks.small)))) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(texts, [str(n2ce.run("study gaussian", **Tasks.small))] * 2)


if __name__ == "__main__":
    unittest.main()
