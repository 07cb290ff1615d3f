"""Runs the tests that need only the package against a wheel, away from the checkout.

    python release/tests.py WHEEL PYTHON [arguments of pytest]

The wheel is unpacked, not installed, so that PYTHON may be an emulated one. It finds pytest, NumPy and the like itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Tests of the sources, of make and of what else stands in a checkout.
OF_THE_CHECKOUT = "build ci core_links docs examples learn limits mutate recipes site trunk wheels".split()
OTHERS_OF_THE_CHECKOUT = [
    "tests/library/test_lib.py::test_every_function_of_the_header_is_bound",
    "tests/program/test_plans.py::test_a_listing_names_every_family",
    "tests/ops/test_pointwise.py::test_the_formulas_are_as_accurate_as_math_h_says",
    "tests/distributed/test_distributed.py::test_the_page_has_what_the_model_of_scaling_gives",
]


def run_tests(
    wheel: Path,
    python: Sequence[str],
    arguments: Sequence[str],
    search_path: Callable[[list[str]], str] = os.pathsep.join,
) -> int:
    """The status of pytest. python: the words of the command; search_path: how it reads several folders."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for part in ("tests", "examples", "benchmarks"):  # tests train the models of these two
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)  # pytest's options
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "wheel")
        kept = {name: value for name, value in os.environ.items() if name not in ("NORCH_LIBRARY", "NORCH_ISA")}
        path = search_path(list(filter(None, [str(folder / "wheel"), os.environ.get("PYTHONPATH")])))
        left_out = [f"--ignore-glob=tests/*/test_{name}.py" for name in OF_THE_CHECKOUT]
        left_out += [f"--deselect={name}" for name in OTHERS_OF_THE_CHECKOUT]
        command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *left_out, *arguments]
        return subprocess.run(command, cwd=folder, env={**kept, "PYTHONPATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(run_tests(Path(sys.argv[1]).resolve(), [sys.argv[2]], sys.argv[3:]))
