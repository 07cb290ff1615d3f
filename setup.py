"""Builds libnorch.so through make and ships it in the package; the metadata are in pyproject.toml.

An editable install builds into the checkout; any other writes nothing but build/. The CUDA backend has a wheel of its
own (release/cuda).
"""

import ast
import io
import os
import shutil
import subprocess
import sys
import tokenize
import zipfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

ROOT = Path(__file__).resolve().parent


def make(library: str, *variables: str) -> None:
    """Builds the library at a path inside the checkout; SetupError in one sentence when that cannot be."""
    if sys.platform == "win32":
        raise SetupError("norch is not built on Windows: install its wheel, or build it inside WSL, Windows' own Linux")
    if not shutil.which("make"):
        raise SetupError("norch needs make: install it (Debian, Ubuntu: apt install build-essential)")
    # Under make its variables hold here too (CC=clang), but its job server is out of reach.
    flags = [word for word in os.environ.get("MAKEFLAGS", "").split(" ") if not word.startswith(("-j", "--jobserver"))]
    env = {**os.environ, "MAKEFLAGS": " ".join(flags)}
    command = ["make", f"-j{os.cpu_count()}", f"LIB={library}", f"PYTHON={sys.executable}", *variables, library]
    done = subprocess.run(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "norch needs" in line]
        reason = reasons[0].partition("*** ")[2] or reasons[0] if reasons else "the compiler's words are above"
        raise SetupError(f"{Path(library).name} was not built: {reason}")


def write_stubs(folder: Path) -> None:
    """Writes the stubs of the package in a folder (release/stubs.py)."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, ROOT / "release" / "stubs.py"], env=env, check=True)


def without_comments(source: str) -> str:
    """A module without comments and the docstring of the module; all else is on the same lines as before."""
    lines = source.split("\n")
    module = ast.parse(source)
    if ast.get_docstring(module) is not None:
        last = module.body[0].end_lineno
        assert last is not None and (len(module.body) == 1 or module.body[1].lineno > last)
        lines[:last] = [""] * last
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(lines)


class BuildLibrary(build_py):
    """build_py, then the library."""

    def run(self) -> None:
        if self.editable_mode:
            make("norch/libnorch.so")
            write_stubs(ROOT)
            super().run()
        else:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # what an older version left would be shipped
            super().run()
            flags = os.environ.get("LDFLAGS", "")
            # make takes BUILD from there, too; for Windows it says that the library is a DLL.
            library = os.environ.get("BUILD", "build") + "/wheel/" + os.environ.get("LIBRARY_NAME", "libnorch.so")
            # Without the names of static functions, which only debuggers read.
            make(library, "LDFLAGS=" + (flags if "-s" in flags.split() else f"{flags} -s"))
            shutil.copy(ROOT / library, Path(self.build_lib) / "norch")
            if "LIBRARY_NAME" not in os.environ:  # `make wheels`, for other machines, has copied those of the checkout
                write_stubs(Path(self.build_lib).resolve())
            if library.endswith(".dll"):
                self.copy_licenses()
            if "wasm32" in os.environ.get("CC", ""):
                self.shrink_for_a_page()

    def shrink_for_a_page(self) -> None:
        """A page waits for every byte, and checks no types. Without comments the wheel is 36 kB smaller, without the
        docstrings of modules, which are for who reads their source, another 41 kB."""
        for stub in [*Path(self.build_lib).rglob("*.pyi"), Path(self.build_lib) / "norch" / "py.typed"]:
            stub.unlink()
        for module in Path(self.build_lib).rglob("*.py"):
            text = module.read_bytes().decode()
            module.unlink()  # which may be a hard link to the checkout's
            module.write_bytes(without_comments(text).encode())

    def copy_licenses(self) -> None:
        """The terms of what zig links into a DLL: the start and the threads of mingw-w64, complex functions of musl."""
        of_zig = Path(os.environ["CC"].split()[0]).parent / "lib" / "libc"
        folder = Path(self.build_lib) / "norch" / "libnorch_licenses"
        folder.mkdir()
        shutil.copy(of_zig / "mingw" / "COPYING", folder / "mingw-w64.txt")
        shutil.copy(of_zig / "musl" / "COPYRIGHT", folder / "musl.txt")


# The platforms of Pyodide (PEP 783), from its versions 0.25 to 314: tests/wasm ran one library in each of them.
PYODIDE = "emscripten_3_1_46_wasm32.pyodide_2024_0_wasm32.pyodide_2025_0_wasm32.pyemscripten_2026_0_wasm32"


class PlatformWheel(bdist_wheel):
    """A wheel for one platform and any Python: the library knows nothing of Python's ABI."""

    def get_tag(self) -> tuple[str, str, str]:
        platform = super().get_tag()[2]
        return "py3", "none", PYODIDE if platform == "wasm32" else platform

    def run(self) -> None:
        """Compresses again: for a page by Zopfli, to 97 % in some 20 s, else at zlib's highest level."""
        super().run()
        wheel = Path(self.distribution.dist_files[-1][2])
        with zipfile.ZipFile(wheel) as made:
            files = [(info, made.read(info)) for info in made.infolist()]
        with self.smallest(wheel) as smaller:
            for info, data in files:
                smaller.writestr(info, data, zipfile.ZIP_DEFLATED, compresslevel=9)

    @staticmethod
    def smallest(wheel: Path) -> zipfile.ZipFile:
        """A ZIP file to write."""
        if "wasm32" not in os.environ.get("CC", ""):
            return zipfile.ZipFile(wheel, "w")
        import zopfli  # of the extra "release"

        return zopfli.ZipFile(wheel, "w", iterations=5)


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
