"""Sorting, selection and scans at the sizes where a GPU's kernels change: warps, tiles, digits and parts of lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case import source

import norch

pytestmark = pytest.mark.kernel


def lines(shape: tuple[int, ...], dtype: str) -> Any:
    """Random numbers, of floats a fifth special, so that many are equal."""
    rng = source(f"order {shape} {dtype}")
    if dtype == "int64":
        return rng.integers(-300, 300, shape)
    x = rng.standard_normal(shape).astype(dtype)
    special = rng.random(shape) < 0.2
    x[special] = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0], int(special.sum()))
    return x


def places_in_order(x: Any, dim: int, descending: bool) -> Any:
    """argsort by NumPy: stable, -0 as 0, NaN above all."""
    ranks = np.unique(x + x.dtype.type(0), return_inverse=True)[1].reshape(x.shape)
    return np.argsort(-ranks if descending else ranks, dim, kind="stable")


def check_order(x: Any, dim: int = -1, few: int = 0) -> None:
    """sort() and argsort(), and with few topk(), each bit of the values included."""
    y = norch.tensor(x)
    for descending in (False, True):
        wanted = places_in_order(x, dim, descending)
        values, places = y.sort(dim, descending)
        np.testing.assert_array_equal(places, wanted)
        np.testing.assert_array_equal(y.argsort(dim, descending), wanted)
        assert values.numpy().tobytes() == np.take_along_axis(x, wanted, dim).tobytes()
        if few:
            values, places = y.topk(few, dim, descending)
            wanted = np.take(wanted, range(few), dim)
            np.testing.assert_array_equal(places, wanted)
            assert values.numpy().tobytes() == np.take_along_axis(x, wanted, dim).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("n", [1, 31, 129, 513, 1025, 2049, 4097, 8500])
def test_lanes_of_all_lengths(n: int, dtype: str) -> None:
    check_order(lines((1 + (n < 3000), n), dtype), few=min(max(1, n // 9), 100))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "float16"])
def test_narrow_dtypes(dtype: str) -> None:
    x = source(dtype).integers(0, 2 if dtype == "bool" else 100, (2, 300)).astype(dtype)
    check_order(x, few=20)


def test_layouts() -> None:
    x = lines((300, 7), "float32")
    check_order(x, 0, few=3)
    check_order(lines((5, 9, 4), "float32"), 1, few=1)
    turned = norch.tensor(x).T[1:, ::2]
    values, places = turned.sort(1)
    wanted = places_in_order(x.T[1:, ::2], 1, False)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x.T[1:, ::2], wanted, 1))
    assert norch.tensor(2.0).sort().indices.item() == 0


def test_digits_that_all_keys_share() -> None:
    rng = source("digits")
    check_order(rng.integers(-(2**62), 2**62, 5000))
    check_order(rng.integers(0, 4, (2, 3000)) << 40)
    check_order(np.zeros(5000, np.float32))
    check_order(np.full((2, 20), 7))


def test_a_few_of_a_long_line() -> None:
    """So many parts that what they find is selected from again."""
    check_order(lines((140_000,), "float32"), few=128)


def test_gradients_of_sorted_values() -> None:
    x = norch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, places = x.sort()
    (values * norch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]
    assert places.tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="k is 4"):
        x.topk(4)


# ---- scans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    ("shape", "dim"), [((1000,), 0), ((4100,), 0), ((20_011,), 0), ((3, 9001), 1), ((2, 700, 3), 1)]
)
def test_scans_of_parts(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    x = source(f"scan {shape}").integers(-4, 5, shape).astype(dtype)
    y = norch.tensor(x)
    np.testing.assert_array_equal(y.cumsum(dim), np.cumsum(x, dim))
    np.testing.assert_array_equal(y.flip(dim).cumsum(dim).flip(dim), np.flip(np.cumsum(np.flip(x, dim), dim), dim))
    for name, best in (("cummax", np.maximum), ("cummin", np.minimum)):
        values, places = getattr(y, name)(dim)
        wanted = best.accumulate(x, dim)
        np.testing.assert_array_equal(values, wanted)
        seen = np.where(x == wanted, np.arange(shape[dim]).reshape(-1, *[1] * (x.ndim - 1 - dim)), 0)
        np.testing.assert_array_equal(places, np.maximum.accumulate(seen, dim))  # the last of equals
    if dtype != "int64":
        wanted = np.logaddexp.accumulate(x.astype("float64"), dim)
        np.testing.assert_allclose(y.logcumsumexp(dim), wanted, rtol=3e-6 if dtype == "float32" else 1e-12)


def test_a_sum_of_many_keeps_its_small_ones() -> None:
    x = norch.full((30_000,), 0.1)[1:]  # not aligned to a pack
    wanted = np.cumsum(np.full(29_999, np.float32(0.1), np.float64))
    np.testing.assert_allclose(x.cumsum(0), wanted, rtol=1e-7)
