"""norch beside PyTorch on PyTorch's own databases of modules: values, derivatives, copies, shapes on the device "meta",
replays, inputs that are not contiguous and batches of no sample. What differs stands in module_database_left.txt with a
reason."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

LEFT = Path(__file__).with_name("module_database_left.txt")
CALLS = [
    *(("values", dtype) for dtype in ("float32", "float64", "float16")),
    *((check, "float64") for check in ("gradients", "second gradients", "strides", "empty batches")),
    *((check, "float32") for check in ("copies", "shapes", "replays")),
]


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
@pytest.mark.parametrize(("check", "dtype"), CALLS)
def test_modules_of_pytorch(database: Any, check: str, dtype: str, training: bool) -> None:
    """What differs is to be mended, or listed with a reason."""
    found, checked = {}, 0
    for case in database.cases(dtype, training, database.database.listed(LEFT, check)):
        checked += 1
        if difference := database.CHECKS[check](case):
            found[case.name] = difference
    assert checked > (300 if dtype == "float16" else 1000)
    assert not found
