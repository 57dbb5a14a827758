"""What pyproject.toml cannot say: the version is that of include/n2ce.h, and the package carries
the shared library, which is

- the file that the environment variable N2CE_LIBRARY names, if it is set; if it names a folder,
  the libraries in it, libn2ce.so and those that it needs,
- else built here with cmake from the checkout that this folder is part of.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]


def version():
    header = CHECKOUT / "include" / "n2ce.h"
    if not header.is_file():
        raise SystemExit(f"{header} is missing. Install from a whole checkout of n2ce: "
                         "pip install ./bindings/python")
    return ".".join(re.findall(r"#define N2CE_VERSION_\w+ (\d+)", header.read_text()))


def build_library(folder):
    """Configures and builds libn2ce in a folder; its path."""
    if not shutil.which("cmake"):
        raise SystemExit("cmake was not found; it builds libn2ce. Install cmake and a C compiler "
                         "(Debian: apt install cmake gcc libc6-dev make), or name a library that "
                         "is built already in the environment variable N2CE_LIBRARY.")
    subprocess.run(["cmake", "-S", CHECKOUT, "-B", folder, "-DN2CE_TESTS=OFF",
                    "-DCMAKE_BUILD_TYPE=Release"], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "n2ce_shared", "--parallel",
                    str(os.cpu_count() or 1)], check=True)
    return Path(folder, "libn2ce.so")


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        named = os.environ.get("N2CE_LIBRARY")
        library = Path(named or build_library(HERE / "build" / "cmake"))
        editable = getattr(self, "editable_mode", False)
        target = HERE / "n2ce" if editable else Path(self.build_lib, "n2ce")
        if library.is_dir():
            shutil.copytree(library, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(library, target / "libn2ce.so")


class PlatformWheel(bdist_wheel):
    """Any Python 3, this platform only."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    """Goes where compiled packages go, though setuptools compiles nothing."""

    def has_ext_modules(self):
        return True


setup(version=version(), distclass=WithLibrary,
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel})
