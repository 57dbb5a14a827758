"""check_docs.py ROOT PROGRAM: what README and docs/ name is there.

Links lead somewhere; files that are named exist; a verb behind "n2ce" is a verb; options belong to a verb, to ./run
or to a benchmark; variables N2CE_* and functions n2_*, n2ce_* occur in the sources. A page that speaks of what is
no more fails here.
"""
import fnmatch
import os
import re
import subprocess
import sys

ROOT, PROGRAM = sys.argv[1], sys.argv[2]
MISSPELT = {"--rnus"}  # the README shows what the program says to it
FOREIGN_OPTIONS = {  # of cmake, ctest, git, pkg-config, compute-sanitizer, mpirun, pip
    "--build", "--install", "--prefix", "--cflags", "--libs", "--tool", "--test-dir", "--output-on-failure", "--oversubscribe"}
SOURCE_FOLDERS = ("src", "include", "cli", "tests", "bench", "bindings", "cmake", "examples", "packaging")
PATH = re.compile(r"(?<![\w/.])((?:src|include|cli|tests|bench|docs|examples|cmake|bindings|packaging|tools)/[\w./*-]*\w)")
FILE = re.compile(r"`(?:\w+/)*(\w[\w*]*\.(?:c|h|cu|cuh|py|sh|md|cmake))`")


def tracked_files():
    listed = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith((".", "build")) and f != "__pycache__"]
        listed += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return listed


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def say(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False).stdout


def verbs_of(help_page):
    lines = help_page.split("Verbs\n")[1].split("\n\n")[0].splitlines()
    return [re.split(r"  +| \[| bash", line.strip())[0] for line in lines if line.startswith("  ")]


class Checker:
    def __init__(self):
        self.files = tracked_files()
        self.names = {os.path.basename(f) for f in self.files}
        sources = [f for f in self.files if f.startswith(SOURCE_FOLDERS) or f in ("run", "CMakeLists.txt")]
        self.code = "\n".join(read(f) for f in sources
                              if f.endswith((".c", ".h", ".cu", ".py", ".sh", ".cmake", ".txt", ".cc", "run")))
        self.verbs = verbs_of(say("help"))
        help_pages = "\n".join(say("help", *verb.split()) for verb in [""] + self.verbs)
        scripts = "\n".join(read(f) for f in sources if f == "run" or f.startswith("bench/"))
        known = re.findall(r"--[a-z][\w-]*", help_pages + scripts, re.IGNORECASE)
        self.options = set(known) | FOREIGN_OPTIONS | MISSPELT
        self.complaints = []

    def exists(self, path):
        path = path.rstrip("/")
        return any(fnmatch.fnmatch(f, path) or f.startswith(path + "/") for f in self.files)

    def check_line(self, page, line):
        line = line.replace("NAME", "*")  # of whatever file
        for path in PATH.findall(line):
            if not self.exists(path):
                yield f"there is no {path}"
        for name in FILE.findall(line):
            if not fnmatch.filter(self.names, name):
                yield f"there is no file {name}"
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", line):
            target = os.path.normpath(os.path.join(ROOT, os.path.dirname(page), link))
            if not os.path.exists(target):
                yield f"the link {link} leads nowhere"
        for option in re.findall(r"(?<![\w-])--[A-Za-z][\w-]*", line):
            if option not in self.options:
                yield f"nothing has the option {option}"
        for name in re.findall(r"\b(?:N2CE_[A-Z0-9_]+|n2ce?_[a-z0-9_]+|n2g_[a-z0-9_]+)\b", line):
            if name not in self.code and not name.endswith("_"):
                yield f"{name} is not in the sources"

    def check_verbs(self, text):
        """Words behind n2ce, in code spans and at the beginning of lines of blocks."""
        first_words = {verb.split()[0] for verb in self.verbs}
        for word in re.findall(r"(?:^|`|\$ )n2ce ([a-z]+)", text, re.MULTILINE):
            if word not in first_words:
                yield f"n2ce has no verb {word}"

    def check_page(self, page):
        text = read(page)
        for number, line in enumerate(text.splitlines(), 1):
            self.complaints += [f"{page}:{number}: {c}" for c in self.check_line(page, line)]
        self.complaints += [f"{page}: {c}" for c in self.check_verbs(text)]


def main():
    checker = Checker()
    pages = sorted(f for f in checker.files if f.endswith(".md") and f != "CHANGELOG.md")
    for page in pages:
        checker.check_page(page)
    print("\n".join(checker.complaints) or f"docs: {len(pages)} pages, {len(checker.verbs)} verbs, all there")
    return 1 if checker.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
