"""Order, scans and writes at indices at the sizes where a GPU's kernels change: warps, tiles, digits, parts."""

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
    check_order(lines((1 if n == 4097 else 2, n), dtype), few=min(max(1, n // 9), 100))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    ("shape", "dim"), [((37, 33), 1), ((33, 37), 0), ((5, 256), 1), ((9, 65), 1), ((2, 7), 1), ((3, 300), 1)]
)
def test_short_lanes_side_by_side(shape: tuple[int, int], dim: int, dtype: str) -> None:
    """More lanes than a vector holds, fewer, and a rest; strided ones."""
    for few in (1, 4, 5):
        check_order(lines(shape, dtype), dim, few=min(few, shape[dim]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((1,), 0), ((20, 33), 1), ((33, 20), 0), ((2, 64), 1), ((3, 65), 1), ((4, 4097), 1), ((30_000,), 0)],
)
def test_one_of_many_is_that_of_the_order(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    """kthvalue, median and nanmedian select the element, also among equal ones, that a stable sort puts there."""
    x = lines(shape, "int64" if dtype == "int8" else dtype)
    for array in (x.astype(dtype), np.zeros_like(x, dtype), np.sort(x, dim).astype(dtype)):
        y, size, order = norch.tensor(array), shape[dim], places_in_order(array, dim, False)
        for k in {1, 2, size // 3 + 1, size}:
            if k <= size:
                found = y.kthvalue(k, dim)
                np.testing.assert_array_equal(found.indices, order.take(k - 1, dim))
                np.testing.assert_array_equal(found.values, np.take_along_axis(array, order, dim).take(k - 1, dim))
        valid = (array == array).sum(dim, keepdims=True)
        middle, known = np.where(valid < size, valid, (size - 1) // 2), np.maximum(valid - 1, 0) // 2
        for statistic, place in ((y.median(dim, True), middle), (y.nanmedian(dim, True), known)):
            np.testing.assert_array_equal(statistic.indices, np.take_along_axis(order, place, dim))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 63, 100])
def test_searches_side_by_side(n: int, right: bool) -> None:
    line = np.sort(source(f"search {n}").standard_normal(n)).astype("float32")
    values = np.concatenate([line, line + np.float32(0.01), [-np.inf, np.inf, np.nan, 0]]).astype("float32")
    for some in (values, values[:3], np.repeat(values, 2)[::2]):
        found = norch.searchsorted(norch.tensor(line), norch.tensor(some), right=right)
        np.testing.assert_array_equal(found, np.searchsorted(line, some, "right" if right else "left"))


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


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("n", [300, 9000])
def test_distinct_values_of_long_lanes(n: int, dtype: str) -> None:
    x = lines((n,), dtype) if dtype != "int32" else lines((n,), "int64").astype("int32")
    x = np.round(x, 2)
    np.testing.assert_array_equal(norch.tensor(x).unique(), np.unique(x, equal_nan=False))  # every NaN for itself


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
    ("shape", "dim"),
    [((1000,), 0), ((4100,), 0), ((20_011,), 0), ((3, 9001), 1)]  # parts and tiles
    + [((9, 1), 1), ((40, 7), 1), ((70, 32), 1), ((3, 129), 1), ((5, 256), 1), ((2050, 260), 1)]  # rows, a team each
    + [((700, 9), 0), ((3, 40), 0), ((9000, 3), 0), ((2, 700, 3), 1), ((2, 5000, 40), 1)],  # columns, strips and parts
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 60), (6, 61), (2, 9000), (2, 9001)])
def test_scans_from_the_end(shape: tuple[int, ...], dtype: str) -> None:
    """The gradient of cumsum; and what comes behind NaN and infinities."""
    x, g = source(f"back {shape}").integers(-4, 5, (2, *shape)).astype(dtype)
    y = norch.tensor(x, requires_grad=True)
    y.cumsum(1).backward(norch.tensor(g))
    np.testing.assert_array_equal(y.grad, np.flip(np.cumsum(np.flip(g, 1), 1), 1))
    x[:, shape[1] // 3], x[-1, shape[1] // 2 :] = np.inf, np.nan
    np.testing.assert_array_equal(norch.tensor(x).cumsum(1), np.cumsum(x, 1))
    np.testing.assert_array_equal(norch.tensor(x.T).cumsum(0), np.cumsum(x.T, 0))


def test_a_sum_of_many_keeps_its_small_ones() -> None:
    x = norch.full((30_000,), 0.1)[1:]  # not aligned to a pack
    wanted = np.cumsum(np.full(29_999, np.float32(0.1), np.float64))
    np.testing.assert_allclose(x.cumsum(0), wanted, rtol=1e-7)


# ---- sums at indices ------------------------------------------------------------------------------------------------


def check_sums(n: int, m: int, dtype: str) -> None:
    """scatter_add() of n terms into m numbers, some of them infinite or NaN, against sums in double."""
    rng = source(f"sums {n} {m} {dtype}")
    index, start = rng.integers(0, m, n), rng.integers(0, 2, m).astype(dtype)
    if dtype.startswith("float"):
        terms = (rng.standard_normal(n) * 10.0 ** rng.integers(-20, 20, n)).astype(dtype)
        terms[[5, 6, 7]] = np.inf, -np.inf, np.nan
    else:
        terms = rng.integers(0, 2 if dtype == "bool" else 100, n).astype(dtype)
    wanted, largest = start.astype("float64") if dtype.startswith("float") else start.copy(), np.ones(m)
    with np.errstate(all="ignore"):
        (np.logical_or if dtype == "bool" else np.add).at(wanted, index, terms.astype(wanted.dtype))
        np.maximum.at(largest, index, np.where(np.isfinite(terms), np.abs(terms), 0))
    out = norch.tensor(start).scatter_add(0, norch.tensor(index), norch.tensor(terms)).numpy()
    if not dtype.startswith("float"):
        np.testing.assert_array_equal(out, wanted)
        return
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(out[~finite], wanted[~finite])
    error = np.abs(out[finite] - wanted[finite])
    assert (error <= largest[finite] * (n / m + 4) * {"float32": 1.2e-7, "float64": 3e-16}[dtype]).all()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(("n", "m"), [(100, 7), (3000, 1), (3000, 10), (9000, 5000), (2000, 60_000)])
def test_sums_at_many_and_few_places(n: int, m: int, dtype: str) -> None:
    check_sums(n, m, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    ("dim", "shape", "indexed"),
    [(0, (50, 6), (300, 6)), (1, (4, 90), (4, 500)), (1, (3, 40, 5), (3, 200, 4)), (0, (2000, 3), (2500, 3))],
)
def test_writes_along_an_axis(dim: int, shape: tuple[int, ...], indexed: tuple[int, ...], dtype: str) -> None:
    rng = source(f"writes {shape}")
    x, terms = rng.integers(-3, 4, shape).astype(dtype), rng.integers(-9, 10, indexed).astype(dtype)
    index = rng.integers(0, shape[dim], indexed)
    at = list(np.indices(indexed))
    at[dim] = index
    added = x.copy()
    np.add.at(added, tuple(at), terms)
    np.testing.assert_array_equal(norch.tensor(x).scatter_add(dim, norch.tensor(index), norch.tensor(terms)), added)
    for name, combine in (("amax", np.maximum), ("amin", np.minimum), ("prod", np.multiply)):
        ones, wanted = np.sign(terms) + (terms == 0).astype(dtype), x.copy()
        combine.at(wanted, tuple(at), ones)
        out = norch.tensor(x).scatter_reduce(dim, norch.tensor(index), norch.tensor(ones), name)
        np.testing.assert_array_equal(out, wanted)
    written = x.copy()
    written[tuple(at)] = terms  # the last write stays
    np.testing.assert_array_equal(norch.tensor(x).scatter(dim, norch.tensor(index), norch.tensor(terms)), written)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("n", "m", "columns"), [(700, 3, 9), (2000, 1, 8), (1500, 400, 12), (1100, 50, 3)])
def test_rows_that_many_indices_share(n: int, m: int, columns: int, dtype: str) -> None:
    rng = source(f"rows {n} {m}")
    index, rows = rng.integers(0, m, n), rng.integers(-5, 6, (n, columns)).astype(dtype)
    index[:700] = 0  # more than a piece of a run
    start = rng.integers(0, 3, (m, columns)).astype(dtype)
    added, written = start.copy(), start.copy()
    np.add.at(added, index, rows)
    written[index] = rows
    x, at, y = norch.tensor(start), norch.tensor(index), norch.tensor(rows)
    np.testing.assert_array_equal(x.index_add(0, at, y), added)
    np.testing.assert_array_equal(x.index_put((at,), y, accumulate=True), added)
    np.testing.assert_array_equal(x.index_put((at,), y), written)


def test_reads_of_rows_side_by_side() -> None:
    rng = source("gather")
    x, index = rng.standard_normal((6, 40)).astype("float32"), rng.integers(0, 40, (6, 24))
    for part in (index, index[:, :23], index[:, 1:]):
        np.testing.assert_array_equal(norch.tensor(x).gather(1, norch.tensor(part)), np.take_along_axis(x, part, 1))
    turned = norch.tensor(x.T).T.gather(1, norch.tensor(index))
    np.testing.assert_array_equal(turned, np.take_along_axis(x, index, 1))


# ---- masks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64"])
@pytest.mark.parametrize("n", [1, 15, 4096, 4097, 70_000])
def test_masks_of_tiles(n: int, dtype: str) -> None:
    rng = source(f"mask {n}")
    values = rng.integers(0, 2 if dtype == "bool" else 100, n).astype(dtype)
    for mask in (rng.random(n) < 0.3, np.zeros(n, bool), np.ones(n, bool), np.arange(n) % 4099 == 4098):
        x, held = norch.tensor(values), norch.tensor(mask)
        np.testing.assert_array_equal(x[held], values[mask])
        np.testing.assert_array_equal(x[1:][held[1:]], values[1:][mask[1:]])  # not aligned to what a thread reads
        np.testing.assert_array_equal(held.nonzero().flatten(), np.flatnonzero(mask))
        other = np.flip(values)[mask]
        written = values.copy()
        written[mask] = other
        np.testing.assert_array_equal(x.clone().masked_scatter_(held, norch.tensor(other)), written)


def test_masks_of_more_axes() -> None:
    rng = source("masks")
    values, mask = rng.standard_normal((7, 33, 50)).astype("float32"), rng.random((7, 33, 50)) < 0.4
    x, held = norch.tensor(values), norch.tensor(mask)
    np.testing.assert_array_equal(held.nonzero(), np.argwhere(mask))
    np.testing.assert_array_equal(held.T.nonzero(), np.argwhere(mask.T))
    np.testing.assert_array_equal(
        x.permute(2, 0, 1)[held.permute(2, 0, 1)], values.transpose(2, 0, 1)[mask.transpose(2, 0, 1)]
    )
    np.testing.assert_array_equal(x.masked_select(held[0]), values[np.broadcast_to(mask[0], mask.shape)])
    assert norch.tensor(5.0)[norch.tensor(True)].tolist() == [5.0]
    assert x[:, :0][held[:, :0]].shape == (0,)


def test_gradients_through_masks() -> None:
    mask = norch.tensor([True, False, True])
    for read in (lambda x: x[mask], lambda x: x.masked_select(mask)):
        x = norch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        (read(x) * norch.tensor([10.0, 100.0])).sum().backward()
        assert x.grad.tolist() == [10.0, 0.0, 100.0]
    x = norch.zeros(3, requires_grad=True)
    y = norch.tensor([5.0, 6.0], requires_grad=True)
    ((x * 1).masked_scatter_(mask, y) * norch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([0.0, 2.0, 0.0], [1.0, 3.0])


@pytest.mark.host
@pytest.mark.parametrize("order", ["drawn", "rising", "falling", "equal"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize(("shape", "dim"), [((3, 53), 1), ((53, 37), 0), ((5, 16, 2), 1), ((40, 64), 0), ((2, 17), 1)])
def test_the_extremes_so_far(shape: tuple[int, ...], dim: int, dtype: str, order: str) -> None:
    x = lines(shape, dtype)
    if order != "drawn":
        steps = np.arange(shape[dim]).reshape([-1 if axis == dim else 1 for axis in range(len(shape))])
        x = np.broadcast_to(steps * {"rising": 1, "falling": -1, "equal": 0}[order], shape).astype(dtype)
    for name, reaches in (("cummax", np.greater_equal), ("cummin", np.less_equal)):
        values, indices = (part.numpy() for part in getattr(norch.tensor(x), name)(dim))
        rows = np.moveaxis(x, dim, 0)
        best, place = rows[0].copy(), np.zeros(rows[0].shape, np.int64)
        for i, row in enumerate(rows):
            takes = np.isnan(row) | reaches(row, best)
            best, place = np.where(takes, row, best), np.where(takes, i, place)
            np.testing.assert_array_equal(np.moveaxis(values, dim, 0)[i], best)
            np.testing.assert_array_equal(np.moveaxis(indices, dim, 0)[i], place)
