"""norch beside PyTorch on PyTorch's own databases of modules: values, derivatives, copies, shapes on the device "meta",
replays, inputs that are not contiguous and batches of no sample. What differs stands in module_database_left.txt with a
reason."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

LEFT = Path(__file__).with_name("module_database_left.txt")
LEAST = {  # of true comparisons
    "float16": {"values": 379},
    "float32": {"values": 1214, "copies": 1213, "shapes": 1086, "replays": 1000},
    "float64": {"values": 1214, "gradients": 1173, "second gradients": 930, "strides": 1173, "empty batches": 781},
}


@pytest.fixture(scope="module")
def database() -> Any:
    pytest.importorskip("torch", "2.13")
    pytest.importorskip("expecttest", reason="torch.testing's databases import it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import module_database
    return module_database


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize(("check", "dtype"), [(check, dtype) for dtype, checks in LEAST.items() for check in checks])
def test_modules_of_pytorch(database: Any, check: str, dtype: str, training: bool) -> None:
    """What differs is to be mended, or listed with a reason."""
    found, compared = {}, 0
    for case in database.cases(dtype, training, database.database.listed(LEFT, check)):
        try:
            difference = database.CHECKS[check](case)
        except database.database.NotComparedError:
            continue
        compared += 1
        if difference:
            found[case.name] = difference
    assert not found
    assert compared >= LEAST[dtype][check]
