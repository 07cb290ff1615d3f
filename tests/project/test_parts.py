"""What make test and make test-fast choose of the suite, and what the end of a run says of tests that were left out."""

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


def test_a_sample_has_every_value_of_each_parameter():
    rows = [(x, y) for x in range(10) for y in "abc"]
    names, values = [str(row) for row in rows], [set(row) for row in rows]
    kept = parts.covering(names, values)
    assert set().union(*(values[k] for k in kept)) == {*range(10), *"abc"} and 10 <= len(kept) <= 14
    assert len(parts.covering(names, values, least=20)) == 20


def test_a_sample_has_every_case_and_each_operation_with_every_dtype():
    dtypes = ("bool", "int64", "float32")
    variables = {"NORCH_TEST_PART": "sampled", "NORCH_TEST_DTYPES": ",".join(dtypes)}
    lines = collected("--collect-only", "tests/ops/test_ops.py", "tests/autograd/test_derivatives.py", **variables)

    def found(test):
        named = [line.partition("[")[2].rstrip("]") for line in lines if f"::{test}[" in line]
        assert named
        return named

    values = {tuple(name.rsplit("-", 1)) for name in found("test_values")}
    pairs = {(case.name, dtype) for case in CASES for dtype in dtypes if dtype in case.dtypes}
    assert values < pairs and {name for name, _ in values} == {name for name, _ in pairs}
    assert {(parts.operation(n), d) for n, d in values} == {(parts.operation(n), d) for n, d in pairs}
    edges = [name.rsplit("-", 1)[0] for name in found("test_edge_values")]
    assert sorted(edges) == sorted(case.name for case in CASES if case.edges and {*case.dtypes} & {*dtypes})
    like_torch = {name.rsplit("-", 1)[0] for name in found("test_gradients_like_torch")}
    compared = [case for case in CASES if case.grad and case.torch is not False and case.torch_grad is True]
    assert {case.name for case in compared if "float32" in case.dtypes} <= like_torch
    gradients = [parts.operation(name) for name in found("test_gradients")]
    assert sorted(gradients) == sorted({parts.operation(case.name) for case in CASES if case.grad})


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
