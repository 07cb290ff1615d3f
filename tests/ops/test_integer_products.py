"""Products of integers, whose sums wrap: sizes around those of a tile, operands that lie in any order, and few rows."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICE

import norch

pytestmark = pytest.mark.kernel
DTYPES = ["uint8", "int8", "int16", "int32", "int64"]
SIZES = [(1, 70, 300), (3, 65, 40), (2, 3, 9), (5, 1, 20), (9, 64, 1), (8, 33, 257), (30, 129, 300), (4, 16, 0)]


def operand(rows: int, columns: int, dtype: str, transposed: bool, seed: int) -> norch.Tensor:
    """Integers of all bits, part of a larger matrix or of one that is transposed."""
    shape = (columns, rows + 3) if transposed else (rows, columns + 3)
    limits = np.iinfo(dtype)
    whole = np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    x = norch.tensor(whole, device=DEVICE)
    return x[:, :rows].T if transposed else x[:, :columns]


def product(a: norch.Tensor, b: norch.Tensor) -> np.ndarray:
    """Of 64 bits, which wrap, so that fewer of them are those of fewer."""
    x, y = a.cpu().numpy(), b.cpu().numpy()
    return np.einsum("...ik,...kj->...ij", x.astype(np.uint64), y.astype(np.uint64)).astype(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_sums_wrap(dtype: str, layout: str) -> None:
    for m, n, k in SIZES:
        a, b = operand(m, k, dtype, layout[0] == "t", 1), operand(k, n, dtype, layout[1] == "t", 2)
        found = a @ b
        assert found.dtype == a.dtype
        assert np.array_equal(found.cpu().numpy(), product(a, b)), (m, n, k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_and_any_number_of_threads(dtype: str) -> None:
    a, b = (
        norch.stack([operand(*s, dtype, t, seed) for seed in range(4)])
        for s, t in (((50, 90), False), ((90, 70), True))
    )
    count = norch.get_num_threads()
    for threads in (1, 2, 3):
        norch.set_num_threads(threads)
        try:
            assert np.array_equal((a @ b).cpu().numpy(), product(a, b))
        finally:
            norch.set_num_threads(count)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bias_wraps_too(dtype: str) -> None:
    x, weight, bias = (
        operand(9, 40, dtype, False, 1),
        operand(35, 40, dtype, False, 2),
        operand(1, 35, dtype, False, 3)[0],
    )
    wanted = product(x, weight.T) + bias.cpu().numpy()
    assert np.array_equal(norch.nn.functional.linear(x, weight, bias).cpu().numpy(), wanted)
