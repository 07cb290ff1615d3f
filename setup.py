"""Builds libnorch.so through make and ships it in the package; the metadata are in pyproject.toml.

An editable install builds into the checkout; any other writes nothing but build/.
"""

import os
import shutil
import subprocess
import sys
from ctypes import CDLL, c_uint64
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

ROOT = Path(__file__).resolve().parent


def make(library: str) -> None:
    """Builds the library at a path inside the checkout; SetupError in one sentence when that cannot be."""
    if not sys.platform.startswith("linux"):
        raise SetupError(f"norch builds on Linux only, and this is {sys.platform}")
    if not shutil.which("make"):
        raise SetupError("norch needs make: install it (Debian, Ubuntu: apt install build-essential)")
    # Under make its variables hold here too (CC=clang), but its job server is out of reach.
    flags = [word for word in os.environ.get("MAKEFLAGS", "").split(" ") if not word.startswith(("-j", "--jobserver"))]
    env = {**os.environ, "MAKEFLAGS": " ".join(flags)}
    command = ["make", f"LIB={library}", f"PYTHON={sys.executable}", library]
    done = subprocess.run(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "norch needs" in line]
        reason = reasons[0].partition("*** ")[2] or reasons[0] if reasons else "the compiler's words are above"
        raise SetupError(f"libnorch.so was not built: {reason}")


def fits(plugin: Path, library: Path) -> bool:
    """Whether a CUDA backend was built from the same table as a library; says so where it was not."""
    try:
        abis = [getattr(CDLL(str(path)), name) for path, name in ((plugin, "nr_plugin_abi"), (library, "norch_abi"))]
    except (OSError, AttributeError) as error:
        sys.stderr.write(f"norch: the CUDA backend is left out: {error}\n")
        return False
    for abi in abis:
        abi.restype = c_uint64
    if abis[0]() == abis[1]():
        return True
    sys.stderr.write(f"norch: {plugin} was built for another version, and is left out; run make first\n")
    return False


class BuildLibrary(build_py):
    """build_py, then the library."""

    def run(self) -> None:
        if self.editable_mode:
            make("norch/libnorch.so")
            super().run()
        else:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # what an older version left would be shipped
            super().run()
            make("build/wheel/libnorch.so")
            shutil.copy(ROOT / "build/wheel/libnorch.so", Path(self.build_lib) / "norch")
            plugin = ROOT / "norch/libnorch_cuda.so"
            if plugin.exists() and fits(plugin, ROOT / "build/wheel/libnorch.so"):
                shutil.copy(plugin, Path(self.build_lib) / "norch")


class PlatformWheel(bdist_wheel):
    """A wheel for one platform and any Python: the library knows nothing of Python's ABI."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class PlatformDistribution(Distribution):
    """Not pure Python, although no module is compiled."""

    def has_ext_modules(self) -> bool:
        return True


# Generated metadata belong beside the objects, not into the checkout.
(ROOT / "build").mkdir(exist_ok=True)
setup(
    cmdclass={"build_py": BuildLibrary, "bdist_wheel": PlatformWheel},
    distclass=PlatformDistribution,
    options={"egg_info": {"egg_base": "build"}},
)
