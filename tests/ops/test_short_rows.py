"""Elementwise operations on rows of a few elements, which the CPU joins or turns to columns (csrc/cpu/pointwise.c): the
results are to the bit those of contiguous copies."""

from __future__ import annotations

from typing import Any

import pytest

import norch

ROWS = (1, 16, 17, 333, 1024, 1025, 2100)
DTYPES = ("float32", "float64", "float16", "int64", "int8", "bool", "complex64")
FORMS: dict[str, Any] = {
    "negation": lambda x, y, row: x.logical_not() if x.dtype is norch.bool else -x,
    "two": lambda x, y, row: x * y,
    "number": lambda x, y, row: x * 3,
    "row": lambda x, y, row: x * row,
    "column": lambda x, y, row: x * y[:, :1],
    "truth": lambda x, y, row: x == y,
    "choice": lambda x, y, row: norch.where(x == y, row, x),
    "in place": lambda x, y, row: x.clone().mul_(row),
}


def bits(x: norch.Tensor) -> Any:
    return norch.view_as_real(x).tolist() if x.is_complex() else x.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_rows_that_lie_apart(form: str, dtype: str) -> None:
    kind = getattr(norch, dtype)
    norch.manual_seed(0)
    for rows in ROWS:
        for columns in (1, 2, 3, 8, 9):
            x, y = (norch.randint(-9, 9, (rows, columns + 2)).to(kind)[:, 1:-1] for _ in "xy")
            row = norch.randint(-9, 9, (columns,)).to(kind)
            found = FORMS[form](x, y, row)
            wanted = FORMS[form](x.contiguous(), y.contiguous(), row)
            assert found.dtype is wanted.dtype and bits(found) == bits(wanted), (rows, columns)


def test_functions_of_rows_that_lie_apart() -> None:
    norch.manual_seed(0)
    for shape in ((333, 3), (40, 50, 3), (3, 5, 700, 2), (2, 1100, 2, 4)):
        whole = norch.randn(*shape[:-1], shape[-1] + 1)
        x = whole[..., 1:]
        for function in (norch.exp, norch.sin, norch.erf, norch.nn.functional.gelu, norch.sqrt):
            found, wanted = function(x), function(x.contiguous())
            assert norch.equal(found.nan_to_num(7.0), wanted.nan_to_num(7.0)), (shape, function)
        out = norch.zeros(whole.shape)
        norch.add(x, 1.0, out=out[..., :-1])
        assert norch.equal(out[..., :-1], x.contiguous() + 1.0) and not out[..., -1].any()


def test_a_divisor_of_zero_in_rows_that_lie_apart() -> None:
    x = norch.arange(1, 401).reshape(100, 4)
    assert norch.equal(x[:, :3] // x[:, 1:], x[:, :3].contiguous() // x[:, 1:].contiguous())
    x[77, 2] = 0
    with pytest.raises(ZeroDivisionError):
        x[:, :3] // x[:, 1:]
