"""norch beside PyTorch on PyTorch's own operation database: values, first and second derivatives, replays and vmap.
What differs stands in operation_database_left.txt with a reason."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from databases import opened

LEFT = Path(__file__).with_name("operation_database_left.txt")


@pytest.fixture(scope="module")
def database() -> Any:
    return opened("operation_database")


CHECKS = {
    "values": ("float32", "float64", "complex64", "int64", "bool"),
    "gradients": ("float64", "complex128"),
    "second gradients": ("float64",),
    "replays": ("float32",),
    "vmap": ("float32",),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("check", "dtype"), [(check, dtype) for check, dtypes in CHECKS.items() for dtype in dtypes])
def test_operations_of_pytorch(database: Any, check: str, dtype: str) -> None:
    """What differs is to be mended, or listed with a reason."""
    order = 2 if check.startswith("second") else 1
    compare = {
        "values": database.compared_results,
        "gradients": partial(database.compared_gradients, order=order),
        "second gradients": partial(database.compared_gradients, order=order),
        "replays": database.compared_replays,
        "vmap": database.compared_samples_of_vmap,
    }[check]
    known, found, checked = database.listed(LEFT, check), {}, 0
    for op in database.operations(dtype):
        name, with_gradients = database.full_name(op), "gradients" in check
        if name in known or database.function_of(op) is None:
            continue
        if with_gradients and not (op.supports_autograd and (order == 1 or op.supports_gradgrad)):
            continue
        for sample in database.samples(op, dtype, with_gradients):
            try:
                difference = compare(sample)
            except database.NotComparedError:
                continue
            checked += 1
            if difference:
                found[name] = difference
                break
    assert checked > 1000
    assert not found
