"""norch beside PyTorch on PyTorch's own databases of modules: values, derivatives, copies, shapes on the device "meta",
replays, inputs that are not contiguous and batches of no sample. What differs stands in module_database_left.txt with a
reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from databases import differences, opened

LEFT = Path(__file__).with_name("module_database_left.txt")
LEAST = {  # of true comparisons
    "float16": {"values": 379},
    "float32": {"values": 1214, "copies": 1213, "shapes": 1086, "replays": 1000},
    "float64": {"values": 1214, "gradients": 1173, "second gradients": 930, "strides": 1173, "empty batches": 781},
}


@pytest.fixture(scope="module")
def database() -> Any:
    return opened("module_database")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize(("check", "dtype"), [(check, dtype) for dtype, checks in LEAST.items() for check in checks])
def test_modules_of_pytorch(database: Any, check: str, dtype: str, training: bool) -> None:
    """What differs is to be mended, or listed with a reason."""
    shared = database.database  # of all databases
    cases = database.cases(dtype, training, shared.listed(LEFT, check))
    found, compared = differences(cases, database.CHECKS[check], lambda case: case.name, shared.NotComparedError)
    assert not found
    assert compared >= LEAST[dtype][check]
