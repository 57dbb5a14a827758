"""The examples of docs/python.md, run in their order, print what the page says.

Numbers may differ by 0.15, or 15 % if they are large: the page shows a run, not a promise.
"""
import contextlib
import importlib.util
import io
import re
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n```text\n(.*?)```", re.S)
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def run(code, namespace):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(PAGE), "exec"), namespace)
    return out.getvalue()


class Page(unittest.TestCase):
    def check_output(self, got, expected):
        self.assertEqual(NUMBER.sub("#", got).split(), NUMBER.sub("#", expected).split(), got)
        for a, b in zip(map(float, NUMBER.findall(got)), map(float, NUMBER.findall(expected))):
            self.assertAlmostEqual(a, b, delta=max(0.15, 0.15 * abs(b)), msg=got)

    def test_examples(self):
        examples, namespace = EXAMPLE.findall(PAGE.read_text()), {}
        self.assertGreaterEqual(len(examples), 7)
        for code, expected in examples:
            if any(f"import {name}" in code and not importlib.util.find_spec(name)
                   for name in ("torch", "jax")):
                continue
            with self.subTest(code=code):
                self.check_output(run(code, namespace), expected)


if __name__ == "__main__":
    unittest.main()
