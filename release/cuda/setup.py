"""The CUDA backend as a distribution of its own: one file beside norch's library, for one version of norch.

`make wheel-cuda` runs this; PLUGIN is the path of libnorch_cuda.so.
"""

import os
import re
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent.parent.parent
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "norch/__init__.py").read_text(), re.M)[1]


class CopyPlugin(build_py):
    """No module: the plugin, where norch looks for it."""

    def run(self) -> None:
        folder = Path(self.build_lib) / "norch"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.environ["PLUGIN"], folder)


class PlatformWheel(bdist_wheel):
    """For one platform and any Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class PlatformDistribution(Distribution):
    """Has something to build, and is not pure Python."""

    def has_pure_modules(self) -> bool:
        return True

    def has_ext_modules(self) -> bool:
        return True


scratch = ROOT / "build/wheel-cuda"
scratch.mkdir(parents=True, exist_ok=True)
setup(
    version=VERSION,
    install_requires=[f"norch-dl=={VERSION}"],
    py_modules=[],
    cmdclass={"build_py": CopyPlugin, "bdist_wheel": PlatformWheel},
    distclass=PlatformDistribution,
    options={"egg_info": {"egg_base": str(scratch)}, "build": {"build_base": str(scratch / "build")}},
)
