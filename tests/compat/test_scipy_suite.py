"""Files of SciPy's own test suite, whose functions compute on tensors of `torch`, here norch (the array API)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = (
    "differentiate/tests/test_differentiate.py fft/tests/test_basic.py fft/tests/test_helper.py"
    " integrate/tests/test_cubature.py integrate/tests/test_tanhsinh.py interpolate/tests/test_bsplines.py"
    " optimize/tests/test_chandrupatla.py signal/tests/test_bsplines.py signal/tests/test_filter_design.py"
    " signal/tests/test_short_time_fft.py signal/tests/test_windows.py spatial/transform/tests/test_rotation.py"
    " special/tests/test_logsumexp.py special/tests/test_support_alternative_backends.py"
    " stats/tests/test_hypotests.py stats/tests/test_morestats.py stats/tests/test_stats.py"
).split()
LEFT = {  # the tests that fail, by file
    # x[0] of a 0-d x is x
    "interpolate/tests/test_bsplines.py": "TestBSpline::test_integral TestInsert::test_insert_periodic",
    "optimize/tests/test_chandrupatla.py": (  # other words in an error
        "TestChandrupatlaMinimize::test_input_validation TestFindRoot::test_input_validation"
    ),
    "stats/tests/test_stats.py": (
        "TestFOneWay::test_large_integer_array TestFOneWay::test_result_attributes"  # uint16
        " TestXP_Mean::test_dtype"  # expects that a mean overflows
    ),
}


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("file", FILES)
def test_file_of_scipy(file: str) -> None:
    """The tests that fail are those that are listed."""
    scipy = pytest.importorskip("scipy", minversion="1.17")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCIPY_ARRAY_API": '["torch"]', "SCIPY_DEVICE": "cpu"}
    options = "-p norch.as_torch -p no:cacheprovider -q --tb=no -rfEp -W ignore --timeout 300 -k torch -o addopts="
    path = Path(scipy.__file__).parent / file
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), f"--rootdir={path.parent}", str(path)],
        cwd=path.parent, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    results = re.findall(r"^(PASSED|FAILED|ERROR) \S+?::([^\[\s]+)", done.stdout, re.MULTILINE)
    assert any(result == "PASSED" for result, _ in results), done.stdout[-2000:] + done.stderr[-2000:]
    assert {name for result, name in results if result != "PASSED"} == set(LEFT.get(file, "").split())
