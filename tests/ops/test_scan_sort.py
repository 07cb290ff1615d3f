"""Scans, softmax and order beyond the cases: against what is composed, over random lines, at zeros, and the errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from case import source
from checks import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch
from norch._binding.library import lib
from norch.testing import assert_close, gradcheck, gradgradcheck

nan, inf = float("nan"), float("inf")


def leaf(*values: Any) -> Any:
    return norch.tensor(list(values), dtype=norch.float64, requires_grad=True)


# ---- softmax --------------------------------------------------------------------------------------------------------


def composed(x: Any, dim: int, log: bool) -> Any:
    shifted = x - x.detach().amax(dim, keepdim=True)
    logs = shifted - shifted.exp().sum(dim, keepdim=True).log()
    return logs if log else logs.exp()


@pytest.mark.kernel
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        *[((3, n), 1) for n in (1, 2, 7, 8, 15, 24, 25, 31, 32, 33, 63, 64, 100, 1023, 1024, 1025, 5000)],
        *[((n, 9), 1) for n in (1, 63, 64, 65, 200)],
        *[((5, n), 0) for n in (1, 2, 63, 64, 65, 130)],
        *[((200, 3), 0), ((2, 130, 3), 1), ((3, 2, 70), 1)],
    ],
)
def test_softmax_is_what_is_composed(shape: tuple[int, ...], dim: int, dtype: str, log: bool) -> None:
    rng = source(f"softmax {shape} {dim}")
    values = (rng.normal(0, 3, shape)).astype(dtype)
    x, y = norch.tensor(values, requires_grad=True), norch.tensor(values, requires_grad=True)
    g = norch.tensor(rng.normal(0, 1, shape).astype(dtype))
    fused = x.log_softmax(dim) if log else x.softmax(dim)
    plain = composed(y, dim, log)
    tolerance = {"float32": 2e-6, "float64": 1e-14}[dtype]
    assert_close(fused, plain, rtol=tolerance, atol=tolerance)
    fused.backward(g)
    plain.backward(g)
    assert_close(x.grad, y.grad, rtol=tolerance * 8, atol=tolerance * 8)


@pytest.mark.kernel
def test_unique_slices_are_in_the_order_of_their_elements() -> None:
    array = np.random.default_rng(0).integers(0, 2, (3, 3, 9))
    for dim in range(3):
        found = norch.unique(norch.tensor(array), return_counts=True, dim=dim)
        for one, wanted in zip(found, np.unique(array, axis=dim, return_counts=True), strict=True):
            assert np.array_equal(one, wanted)


def test_no_difference_joins_nothing() -> None:
    x = norch.arange(3)
    assert x.diff(0, prepend=x).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [3, 40, 3000])
def test_softmax_at_the_edges(n: int, dtype: str) -> None:
    def lines(*values: float) -> Any:
        x = norch.full((2, n), -1.0, dtype=dtype)
        x[1, : len(values)] = norch.tensor(values, dtype=dtype)
        return x

    for dim, turn in ((1, lambda x: x), (0, lambda x: x.T.contiguous())):
        assert_close(turn(lines(1e4)).softmax(dim).sum(dim), np.ones(2))
        assert turn(lines(-inf)).softmax(dim).isfinite().all()
        assert turn(lines(nan)).softmax(dim).isnan().sum() == n
        assert turn(lines(inf)).softmax(dim).isnan().sum() == n
        assert turn(norch.full((2, n), -inf, dtype=dtype)).softmax(dim).isnan().all()
        assert_close(turn(lines(-1e30)).log_softmax(dim).amin(), -1e30)
    assert norch.zeros(0, n).softmax(1).shape == norch.zeros(n, 0).log_softmax(1).T.shape == (0, n)


def test_softmax_refuses() -> None:
    with pytest.raises(IndexError):
        norch.zeros(2).softmax(1)
    with pytest.raises(TypeError):
        norch.softmax(norch.zeros(2), "a")
    with pytest.raises(norch.ShapeError):
        lib.norch_softmax_backward(norch.zeros(2), norch.zeros(3), 0, False)


# ---- products at zeros, and other slopes ----------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [(), (1,), (0, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("call", [lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.cumprod(0)])
def test_products_at_zeros(call: Any, zeros: tuple[int, ...]) -> None:
    x = leaf(*[0.0 if i in zeros else 1.5 - i for i in range(4)])
    assert gradcheck(call, x)
    assert gradgradcheck(call, x)


def test_products_at_zeros_like_torch(torch: Any) -> None:
    values = np.array([[1.5, 0.0, -2.0], [0.0, 3.0, 0.0], [1.0, 2.0, 3.0]])
    for call in (lambda x: x.prod(1).sum(), lambda x: x.cumprod(1).sum(), lambda x: x.cumprod(0).sum()):
        found = []
        for library in (norch, torch):
            x = library.tensor(values)
            x.requires_grad_()
            (first,) = library.autograd.grad(call(x), x, create_graph=True)
            (second,) = library.autograd.grad((first * first).sum(), x)
            found.append((first.detach().numpy(), second.numpy()))
        np.testing.assert_allclose(found[0][0], found[1][0])
        np.testing.assert_allclose(found[0][1], found[1][1])


@pytest.mark.parametrize(
    ("call", "values", "wanted"),
    [
        (lambda x: x.norm(), [0.0, 0.0], [0.0, 0.0]),
        (lambda x: x.norm(3), [0.0, 0.0], [0.0, 0.0]),
        (lambda x: x.norm(inf), [2.0, -2.0, 1.0], [0.5, -0.5, 0.0]),
        (lambda x: x.std(), [1.0, 1.0], [0.0, 0.0]),
        (lambda x: x.amax(), [2.0, 2.0, 1.0], [0.5, 0.5, 0.0]),
        (lambda x: x.max(0).values, [2.0, 2.0, 1.0], [1.0, 0.0, 0.0]),
        (lambda x: x.median(), [1.0, 2.0, 2.0, 3.0], [0.0, 0.5, 0.5, 0.0]),
        (lambda x: x.nanmedian(), [nan, 2.0, 3.0], [0.0, 1.0, 0.0]),
        (lambda x: x.median(), [nan, 2.0, nan], [0.5, 0.0, 0.5]),
        (lambda x: x.quantile(0.5), [1.0, 4.0, 2.0, 3.0], [0.0, 0.0, 0.5, 0.5]),
        (lambda x: x.cummax(0).values.sum(), [1.0, 1.0, 3.0, 2.0], [1.0, 1.0, 2.0, 0.0]),
        (lambda x: x.nansum(), [1.0, nan], [1.0, 0.0]),
        (lambda x: x.aminmax().max, [2.0, 2.0], [0.5, 0.5]),
    ],
)
def test_slopes(call: Any, values: list[float], wanted: list[float]) -> None:
    x = leaf(*values)
    call(x).backward()
    assert_close(x.grad, np.array(wanted))


# ---- random lines ---------------------------------------------------------------------------------------------------

FLOATS = st.floats(allow_nan=True, width=32) | st.sampled_from([nan, inf, -inf, 0.0, -0.0, 1.0])
LISTS = st.lists(FLOATS, max_size=80) | st.lists(st.sampled_from([nan, 0.0, -0.0, 1.0, 2.0]), max_size=80)
WHOLE = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=80)


@pytest.mark.kernel
@settings(max_examples=examples(60), deadline=None)
@given(LISTS, st.booleans(), st.data())
def test_sort_and_topk(values: list[float], descending: bool, data: Any) -> None:
    for dtype in (np.float32, np.float64):
        array = np.array(values, dtype)
        found = norch.sort(norch.tensor(array), descending=descending, stable=True)
        order = found.indices.numpy()
        key = np.where(np.isnan(array), np.inf, array), np.isnan(array)
        wanted = np.lexsort((np.arange(len(array)), *key))
        if descending:
            wanted = np.lexsort((np.arange(len(array)), -key[0], ~key[1]))
        np.testing.assert_array_equal(order, wanted)
        np.testing.assert_array_equal(found.values.numpy(), array[wanted])
        k = data.draw(st.integers(0, len(values)))
        np.testing.assert_array_equal(norch.topk(norch.tensor(array), k, largest=descending).indices, wanted[:k])


@pytest.mark.kernel
@settings(max_examples=examples(60), deadline=None)
@given(WHOLE)
def test_sort_of_integers(values: list[int]) -> None:
    x = norch.tensor(np.array(values, np.int64))
    np.testing.assert_array_equal(x.argsort(stable=True), np.argsort(np.array(values, np.int64), kind="stable"))
    np.testing.assert_array_equal(x.sort(descending=True)[0], np.sort(np.array(values, np.int64))[::-1])


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(FLOATS, max_size=40) | st.lists(st.integers(-3, 3).map(float), max_size=40), st.data())
def test_unique(values: list[float], data: Any) -> None:
    array = np.array(values)
    found = norch.unique(norch.tensor(array), return_inverse=True, return_counts=True)
    wanted = np.unique(array, return_inverse=True, return_counts=True, equal_nan=False)
    for one, other in zip(found[::2], wanted[::2]):
        np.testing.assert_array_equal(one.numpy(), other)
    back = found[1].numpy()  # each NaN is a kind of its own, in no order of NumPy's
    np.testing.assert_array_equal(found[0].numpy()[back], array)
    np.testing.assert_array_equal(np.bincount(back, minlength=len(found[0])), found[2])
    kinds, inverse, counts = norch.unique_consecutive(norch.tensor(array), True, True)
    np.testing.assert_array_equal(kinds.numpy()[inverse.numpy()], array)
    assert counts.sum() == len(values)
    assert not (kinds[1:] == kinds[:-1]).any()
    rows = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=1, max_size=12)))
    found = norch.unique(norch.tensor(rows), dim=0, return_inverse=True, return_counts=True)
    wanted = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    for one, other in zip(found, wanted):
        np.testing.assert_array_equal(one.numpy(), other.reshape(one.shape))


@pytest.mark.kernel
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(-9, 9), max_size=40), st.lists(st.integers(-10, 10), max_size=40), st.booleans())
def test_searchsorted(line: list[int], values: list[int], right: bool) -> None:
    for dtype in (np.float32, np.float64, np.int64, np.int8):
        a, v = np.sort(np.array(line, dtype)), np.array(values, dtype)
        wanted = np.searchsorted(a, v, "right" if right else "left")
        np.testing.assert_array_equal(norch.searchsorted(norch.tensor(a), norch.tensor(v), right=right), wanted)
        np.testing.assert_array_equal(norch.bucketize(norch.tensor(v), norch.tensor(a), right=right), wanted)
        np.testing.assert_array_equal(
            norch.bucketize(norch.tensor(v), norch.tensor(a.repeat(2))[::2], right=right), wanted
        )


def test_searchsorted_forms() -> None:
    line = norch.tensor([5, 1, 3])
    order = line.argsort()
    assert norch.searchsorted(line, norch.tensor([1, 4]), sorter=order).tolist() == [0, 2]
    assert norch.searchsorted(norch.tensor([1, 3]), 2.5).item() == 1
    assert norch.searchsorted(norch.tensor([1, 3]), 3, side="right", out_int32=True).dtype is norch.int32
    rows = norch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert norch.searchsorted(rows, norch.tensor([[2.0], [2.0]])).tolist() == [[1], [0]]
    assert norch.searchsorted(norch.tensor([1.0, nan]), norch.tensor([nan, 2.0])).tolist() == [2, 2]
    for wrong in (
        lambda: norch.searchsorted(rows, norch.zeros(3, 1)),
        lambda: norch.searchsorted(rows, 1.0),
        lambda: norch.searchsorted(line, line, side="middle"),
        lambda: norch.searchsorted(line, line, side="left", right=True),
        lambda: norch.searchsorted(line, line, sorter=order[:2]),
        lambda: norch.bucketize(line, rows),
    ):
        with pytest.raises((norch.ShapeError, norch.ArgumentError)):
            wrong()
    with pytest.raises(TypeError, match="searchsorted: sorter: expected a tensor, not int"):
        norch.searchsorted(line, line, sorter=1)


def test_order_statistics_like_torch(torch: Any) -> None:
    rng = source("order statistics")
    for shape in ((7,), (4, 5), (2, 3, 4)):
        x = rng.normal(0, 1, shape)
        x[rng.random(shape) < 0.2] = nan
        for dim in (None, *range(len(shape))):
            for name in ("median", "nanmedian"):
                mine, theirs = (getattr(m, name)(m.tensor(x), *([] if dim is None else [dim])) for m in (norch, torch))
                if dim is not None:
                    np.testing.assert_array_equal(mine.values, theirs.values)
                    assert mine.indices.shape == tuple(theirs.indices.shape)
                    mine, theirs = mine.values, theirs.values
                np.testing.assert_array_equal(mine, theirs)
            for name in ("quantile", "nanquantile"):
                for way in ("linear", "lower", "higher", "midpoint", "nearest"):
                    for q in (0.0, 0.37, 1.0, [0.1, 0.5, 0.9]):
                        for keep in (False, True):
                            mine, theirs = (
                                getattr(m, name)(
                                    m.tensor(x), m.tensor(q, dtype=m.float64), dim, keep, interpolation=way
                                )
                                for m in (norch, torch)
                            )
                            np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=f"{name} {way} {q} {dim}")


def test_kthvalue() -> None:
    x = norch.tensor([[3.0, 1.0], [2.0, float("nan")]])
    assert x.kthvalue(2, 0).indices.tolist() == [0, 1] and x.kthvalue(1, keepdim=True).values.tolist() == [[1], [2]]
    assert norch.kthvalue(norch.tensor(4), 1).values.item() == 4
    for k, dim in ((0, 0), (3, 0), (-1, 1)):
        with pytest.raises(norch.ArgumentError, match=f"kthvalue: k = {k} is out of range for 2 elements"):
            x.kthvalue(k, dim)
    with pytest.raises(IndexError, match="empty"):
        norch.ones(2, 0).kthvalue(1)


def test_mode_index_is_the_last_of_equals() -> None:
    found = norch.mode(norch.tensor([[3, 1, 3, 1, 0], [2, 2, 5, 5, 5]]))
    assert found.values.tolist() == [1, 5] and found.indices.tolist() == [3, 4]
    assert norch.mode(norch.tensor(4.0)).values.item() == 4


# ---- forms, dtypes, names -------------------------------------------------------------------------------------------


def test_named_results_and_arguments() -> None:
    x = norch.tensor([[3.0, 1.0], [2.0, 4.0]])
    assert x.sort(dim=0).values.tolist() == [[2, 1], [3, 4]]
    assert (
        norch.sum(x, axis=1, keepdims=True).tolist() == norch.sum(input=x, dim=1, keepdim=True).tolist() == [[4], [6]]
    )
    assert x.sum(axis=0).tolist() == x.sum(0).tolist() and x.max(axis=1).indices.tolist() == [0, 1]
    assert x.softmax(axis=-1).shape == (2, 2) and x.cumsum(axis=0).tolist() == [[3, 1], [5, 5]]
    y, one = x.unsqueeze(0), norch.tensor([[1, 0]])
    assert norch.unsqueeze(x, axis=-1).shape == x.unsqueeze(axis=-1).shape == (2, 2, 1)
    assert norch.squeeze(y, axis=0).shape == y.squeeze(axis=(0, 1)).shape == (2, 2)
    assert x.gather(axis=0, index=one).tolist() == norch.take_along_dim(x, one, axis=0).tolist() == [[2, 1]]
    assert x.index_select(axis=1, index=one[0]).tolist() == [[1, 3], [4, 2]]
    assert norch.unflatten(x, axis=1, sizes=(2, 1)).shape == (2, 2, 1)
    assert norch.equal(norch.trapezoid(x, axis=0), norch.trapezoid(x, dim=0))
    assert norch.equal(norch.fft.fft(x, axis=0), norch.fft.fft(x, dim=0))
    assert norch.equal(norch.fft.ifftn(x, axis=(0,)), norch.fft.ifftn(x, dim=(0,)))
    z = norch.randn(3, 2)
    assert norch.equal(norch.linalg.cross(z, z + 1, axis=0), norch.linalg.cross(z, z + 1, dim=0))
    assert norch.max(x, other=x + 1).tolist() == (x + 1).tolist()
    for name, fields in (
        ("max min cummax cummin sort topk median nanmedian mode", ("values", "indices")),
        ("aminmax", ("min", "max")),
    ):
        for one in name.split():
            arguments = {"k": 1} if one == "topk" else {"dim": 0}
            assert getattr(norch, one)(x, **arguments)._fields == fields
    with pytest.raises(TypeError):
        norch.sum(x, nonsense=1)
    with pytest.raises(TypeError):
        x.sum(1, axis=0, nonsense=1)
    for call in (x.squeeze, x.unsqueeze):
        with pytest.raises(TypeError, match="positional"):
            call(0, 0)
    with pytest.raises(TypeError, match="dim"):
        norch.fft.fft(x, axis="first")


def test_dtypes_of_results() -> None:
    x = norch.tensor([1, 2, 3], dtype=norch.int32)
    assert x.cumsum(0).dtype is x.prod().dtype is x.sum().dtype is norch.int64
    assert x.cumsum(0, dtype=norch.float32).dtype is norch.float32
    assert x.cumsum(0, dtype=norch.uint8).tolist() == [1, 3, 6]
    assert (x > 1).cumsum(0).tolist() == [0, 1, 2]
    assert norch.tensor([200, 100], dtype=norch.uint8).cumsum(0, dtype=norch.uint8).tolist() == [200, 44]
    assert x.any().dtype is norch.bool and x.to(norch.uint8).all().dtype is norch.uint8
    assert x.float().softmax(0, dtype=norch.float64).dtype is norch.float64
    assert x.bincount().tolist() == [0, 1, 1, 1]
    assert x.bincount(norch.ones(3)).dtype is norch.float32
    assert x.bincount(norch.ones(3, dtype=norch.int32)).dtype is norch.float64


@pytest.mark.parametrize("dtype", [norch.float16, norch.float32])
@pytest.mark.parametrize(
    "values",
    [
        (0.25, 6e4, 0.5),
        (0.25, 1e6, 0.5, 1e30),
        (1e6, 1e6 + 1, 1e6),
        (2e4, 2e4, 2e4),
        (-inf, 0.5, -inf),
        (3.0, -6e4, 2.0),
    ],
)
def test_gradients_of_logcumsumexp_beside_large_elements(values: tuple[float, ...], dtype: Any) -> None:
    x = norch.tensor(values).to(dtype).requires_grad_()
    if dtype is norch.float16 and max(values) > 65504:
        return
    g = norch.linspace(-1.5, 2.0, len(values)).to(dtype)
    x.logcumsumexp(0).backward(g)
    elements, wanted = x.tolist(), [0.0] * len(values)
    for j, slope in enumerate(g.tolist()):
        top = max(elements[: j + 1])
        parts = [1.0 if one == top else math.exp(one - top) for one in elements[: j + 1]]
        for i, part in enumerate(parts):
            wanted[i] += slope * part / sum(parts)
    assert_close(x.grad, norch.tensor(wanted, dtype=norch.float64).to(dtype))


def test_the_gradient_of_one_factor_is_that_of_the_product() -> None:
    for name in ("prod", "cumprod"):
        x = norch.tensor([[inf], [nan], [0.0], [2.0]], requires_grad=True)
        getattr(x, name)(1).sum().backward()
        assert x.grad.flatten().tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "bool"])
def test_slopes_of_powers_whose_exponents_are_integers(dtype: str) -> None:
    low = -128 if dtype == "int8" else 0
    n = norch.tensor([0, 1, low], dtype=getattr(norch, dtype))
    x = norch.tensor([2.0, 3.0, 1.0], requires_grad=True)
    (x**n).sum().backward()
    assert x.grad.tolist() == [0, 1, low]
    y = norch.tensor([2.0], requires_grad=True)
    norch.special.zeta(norch.tensor([127], dtype=norch.int8), y).sum().backward()
    assert y.grad.item() == pytest.approx(-127 * 2.0**-128)


# ---- nothing, and what is refused -----------------------------------------------------------------------------------


def test_of_nothing() -> None:
    x = norch.zeros(3, 0)
    assert x.cumsum(1).shape == x.cummax(1).indices.shape == x.sort(1).values.shape == x.logcumsumexp(0).shape == (3, 0)
    assert x.topk(0).values.shape == (3, 0) and x.diff().shape == (3, 0)
    assert norch.tensor(2.0).topk(0).indices.tolist() == norch.tensor(2.0).topk(1).indices.tolist() == 0  # as PyTorch
    assert (
        norch.all(norch.tensor([1, 0]), ()).tolist()
        == norch.any(norch.tensor([2, 0]), dim=[]).tolist()
        == [True, False]
    )
    assert x.norm().item() == 0 and x.logsumexp(1).tolist() == [-inf] * 3 and x.nansum(1).tolist() == [0] * 3
    assert norch.zeros(0).median().isnan() and norch.zeros(0).nanmean().isnan() and norch.zeros(0).std().isnan()
    assert x.median(0).values.shape == x.mode(0).values.shape == (0,)
    assert norch.unique(x).shape == (0,) and norch.unique(norch.zeros(0, 3), dim=0).shape == (0, 3)
    assert norch.bincount(norch.zeros(0, dtype=norch.int64), minlength=2).tolist() == [0, 0]
    for wrong in (
        lambda: x.median(1),
        lambda: x.mode(1),
        lambda: x.max(1),
        lambda: x.argmax(),
        lambda: x.amax(1),
    ):
        with pytest.raises(IndexError):
            wrong()
    for wrong in (
        lambda: x.max(),
        lambda: x.amax(),
        lambda: x.aminmax(),
        lambda: x.quantile(0.5),
        lambda: x.topk(1),
        lambda: x.norm(inf),
        lambda: norch.unique(x, dim=0),
    ):
        with pytest.raises(RuntimeError):
            wrong()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda x: x.topk(4), RuntimeError),
        (lambda x: x.topk(-1), RuntimeError),
        (lambda x: x.topk("a"), TypeError),
        (lambda x: x.cumsum(1), IndexError),
        (lambda x: x.cumsum(None), TypeError),
        (lambda x: x.sort(2), IndexError),
        (lambda x: x.mode(1), IndexError),
        (lambda x: x.median(1), IndexError),
        (lambda x: x.quantile(1.5), ValueError),
        (lambda x: x.quantile(0.5, interpolation="cubic"), ValueError),
        (lambda x: x.quantile(0.5, 3), IndexError),
        (lambda x: x.quantile(norch.ones(1, dtype=norch.float64)), norch.DTypeError),
        (lambda x: x.quantile(norch.zeros(1, 1)), norch.ShapeError),
        (lambda x: x.int().quantile(0.5), norch.DTypeError),
        (lambda x: x.int().mean(), norch.DTypeError),
        (lambda x: x.int().nanmean(), norch.DTypeError),
        (lambda x: x.int().norm(), norch.DTypeError),
        (lambda x: x.int().logcumsumexp(0), norch.DTypeError),
        (lambda x: x.bincount(), norch.DTypeError),
        (lambda x: norch.tensor([-1]).bincount(), ValueError),
        (lambda x: norch.tensor([1]).bincount(norch.ones(2)), norch.ShapeError),
        (lambda x: norch.tensor([1]).bincount(minlength=-1), ValueError),
        (lambda x: norch.diff(norch.tensor(1.0)), norch.ShapeError),
        (lambda x: norch.diff(x, n=-1), ValueError),
        (lambda x: norch.diff(x[:0], append=x[:, None]), norch.ShapeError),
        (lambda x: norch.diff(x[:0], prepend=norch.tensor(1.0)), norch.ShapeError),
        (lambda x: x.prod((0,)), TypeError),
        (lambda x: x.sum((0, 0)), ValueError),
        (lambda x: x.var(0, True, correction=1), ValueError),
        (lambda x: norch.linalg.matrix_norm(x), norch.ShapeError),
        (lambda x: norch.linalg.matrix_norm(norch.ones(2, 2), 3), ValueError),
        (lambda x: norch.linalg.matrix_norm(norch.ones(2, 2), 1, (0, 0)), ValueError),
        (lambda x: norch.linalg.matrix_norm(norch.ones(2, 2), 1, (0, 2)), IndexError),
        (lambda x: norch.linalg.norm(norch.ones(2, 2, 2), 1), norch.ShapeError),
        (lambda x: norch.linalg.norm(x, "fro"), (ValueError, norch.ShapeError)),
        (lambda x: norch.linalg.vector_norm(x, "fro"), TypeError),
        (lambda x: norch.sort(None), TypeError),
        (lambda x: norch.sum("a"), TypeError),
        (lambda x: norch.max(x, "a"), TypeError),
        (lambda x: norch.unique([1]), TypeError),
    ],
)
def test_refusals(wrong: Any, error: Any) -> None:
    x = norch.tensor([1.0, 2.0, 3.0])
    with pytest.raises(error):
        wrong(x)
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.cumsum(1),
        lambda x: x.half().cumsum(0),
        lambda x: x.cummax(0),
        lambda x: x.sort(0),
        lambda x: x.int().sort(1),
        lambda x: x.topk(2),
        lambda x: x.T.softmax(0),
        lambda x: x.half().log_softmax(1),
        lambda x: norch.searchsorted(x[0].half(), x.half()),
        lambda x: x.unique(return_inverse=True, return_counts=True),
        lambda x: x.quantile(0.3, 1),
    ],
)
def test_refused_allocations(call: Any) -> None:
    """Each allocation in turn is refused: a MemoryError, and nothing is left behind."""
    x = norch.arange(60, dtype=norch.float32).view(6, 10)
    assert refusals(lambda: call(x))
    assert x.tolist()[5][9] == 59


def lerp(a: float, b: float, weight: float) -> float:
    """Between two numbers, of which one with the weight 0 does not count, and equal ones are the result."""
    if weight in (0, 1) or a == b:
        return b if weight == 1 else a
    return a * (1 - weight) + b * weight


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("way", ["linear", "midpoint", "lower", "higher", "nearest"])
def test_quantiles_beside_infinities(name: str, way: str) -> None:
    """As NumPy's where that is no NaN made of inf - inf; there the limit of large numbers."""
    for values in ([1, 2, inf], [-inf, 1, 2], [-inf, inf], [inf, inf, 1], [-inf, -inf, 3, 4], [inf], [inf, nan, 1]):
        x = np.array(values, float)
        kept = np.sort(x[~np.isnan(x)])
        for q in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0):
            found = getattr(norch, name)(norch.tensor(x), q, interpolation=way).item()
            rank = q * (len(kept) - 1)
            below, above = kept[math.floor(rank)], kept[math.ceil(rank)]
            weight = {"linear": rank % 1, "midpoint": 0.5 * (rank % 1 > 0), "lower": 0, "higher": 1}.get(way, 0)
            wanted = kept[round(rank)] if way == "nearest" else lerp(below, above, weight)
            wanted = nan if name == "quantile" and len(kept) < len(x) else wanted
            np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=f"{values} {q}")
            with np.errstate(all="ignore"):
                theirs = getattr(np, name)(x, q, method=way)
            assert np.isnan(theirs) or found == pytest.approx(theirs)
    x = norch.tensor([1.0, inf, 2.0], dtype=norch.float64, requires_grad=True)
    x.quantile(0.25).backward()
    assert x.grad.tolist() == [0.5, 0, 0.5]


def test_order_statistics_where_they_have_no_kernel() -> None:
    """CUDA devices sort for them; the function of the library, called there, raises and writes nothing."""
    x = norch.tensor([[3.0, 1.0, nan, 2.0], [5.0, 4.0, 7.0, 6.0]])
    assert x.kthvalue(2, 1).values.tolist() == [2.0, 5.0] and x.nanmedian(1).values.tolist() == [2.0, 5.0]
    assert x[1].median().item() == 5.0 and math.isnan(x.median().item())
    if x.is_cuda:
        for place in (0, 3, -1, -2):
            with pytest.raises(norch.DeviceError, match="CUDA devices have no kernel for order statistics"):
                lib.norch_order_index(x, 1, place)
        return
    assert lib.norch_order_index(x, 1, 0).tolist() == [[1], [1]]
