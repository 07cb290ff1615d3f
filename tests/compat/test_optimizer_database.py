"""norch beside PyTorch on PyTorch's own database of optimizers: parameters and states after each step, states that one
library saved and the other loads, and captured steps. What differs stands in optimizer_database_left.txt with a reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from databases import differences, opened

LEFT = Path(__file__).with_name("optimizer_database_left.txt")
LEAST = {  # of true comparisons
    "float64": {"steps": 87, "states": 87, "groups": 82, "sparse": 12},
    "float32": {"steps": 82, "replays": 61},
    "complex128": {"steps": 75, "states": 75},
}


@pytest.fixture(scope="module")
def database() -> Any:
    return opened("optimizer_database")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("check", "dtype"), [(check, dtype) for dtype, checks in LEAST.items() for check in checks])
def test_optimizers_of_pytorch(database: Any, check: str, dtype: str) -> None:
    """What differs is to be mended, or listed with a reason."""
    shared = database.database  # of all databases
    left = shared.listed(LEFT, f"{check} of {dtype}")
    cases = [case for case in database.cases(dtype, sparse=check == "sparse") if case.name not in left]
    found, compared = differences(
        cases, database.CHECKS[check], lambda case: f"{case.name} {case.options}", shared.NotComparedError
    )
    assert not found
    assert compared >= LEAST[dtype][check]
