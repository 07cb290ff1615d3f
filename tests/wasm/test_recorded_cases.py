"""The cases of tests/cases_*.py in Pyodide: results and gradients are those that record.py wrote on another machine.

make test-wasm names the file in NORCH_TEST_RECORDED; elsewhere there is nothing to compare with.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import norch
from norch.testing import assert_close

RECORDED = os.environ.get("NORCH_TEST_RECORDED")
if not RECORDED:
    pytest.skip("make test-wasm records what is compared here", allow_module_level=True)


class Absent(ModuleType):
    """Stands in for NumPy while the cases are imported, whose references and inputs are not asked for here."""

    inf = float("inf")  # which names of cases show

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self


sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
for name in ("numpy", "numpy.typing"):
    sys.modules[name] = Absent(name)
import record  # noqa: E402

for name in ("numpy", "numpy.typing"):
    del sys.modules[name]

BY_CASE: dict[str, list[str]] = defaultdict(list)
CALLS = norch.load(RECORDED)
for call in CALLS:
    BY_CASE[call.rpartition(" ")[0]].append(call)
CASES = {case.name: case for case in record.CASES}
# Sums of many terms in another order, or products whose multiply-adds round once there and twice here.
TOLERANCE = {norch.float16: (4e-3, 4e-3), norch.float32: (1e-5, 3e-5), norch.float64: (1e-9, 1e-9)}


@pytest.mark.parametrize("name", BY_CASE)
def test_results_and_gradients(name: str) -> None:
    case = CASES[name.rpartition(" ")[0]]
    for call in BY_CASE[name]:
        wanted = CALLS[call]
        results, grads = record.run(case, [x.clone() for x in wanted["inputs"]])
        for found, expected in ((results, wanted["results"]), (grads, wanted["gradients"])):
            assert len(found) == len(expected)
            for one, other in zip(found, expected):
                rtol, atol = TOLERANCE.get(other.dtype, (0, 0))
                terms = other.double().abs().max().item() if case.scaled and other.numel() else 1.0
                scale = max(1.0, case.slack, terms)
                assert_close(one, other, rtol=rtol, atol=atol * scale, equal_nan=True)
