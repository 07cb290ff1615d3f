"""What make test-fast chooses of the suite, and what the end of a run says of tests that were left out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import parts
import pytest
from cases import CASES

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]


def collected(*arguments, **variables):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NORCH_TEST_TORCH": "0", "NORCH_TEST_DTYPES": "float32", **variables}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_parts_are_the_folders_of_tests():
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders == {*parts.PARTS, "distributed", "fuzz", "wasm"} and set(parts.LEFT_OUT) < set(parts.PARTS)
    names = {
        path.stem.removeprefix("test_") for part in parts.PARTS for path in (ROOT / "tests" / part).glob("test_*.py")
    }
    assert names >= parts.SLOW_FILES


def test_parameters_are_chosen_evenly():
    assert parts.some(4, 6) == [0, 1, 2, 3]
    assert parts.some(100, 5) == [0, 20, 40, 60, 80]
    assert parts.first_of_each(["sum", "sum dim=0", "mean", "sum dim=1"]) == [0, 2]


def test_every_operation_is_among_the_fast_tests():
    lines = collected("--collect-only", "tests/ops/test_ops.py", "tests/library/test_meta.py", NORCH_TEST_PART="fast")
    values = [line.partition("[")[2] for line in lines if "::test_values[" in line]
    operations = {case.name.split()[0] for case in CASES if "float32" in case.dtypes}
    assert {value.rpartition("-")[0].split()[0] for value in values} == operations and len(values) < len(CASES) / 2
    assert 0 < sum("test_meta.py::test_like_the_cpu" in line for line in lines) <= parts.CASES
    assert not any("like_torch" in line for line in lines)


def test_the_end_of_a_run_counts_what_needs_pytorch():
    lines = collected("tests/ops/test_ops.py", "-k", "test_like_torch and exp")
    assert any(re.match(r"\d+ tests were left out, as they compare with PyTorch", line) for line in lines), lines
