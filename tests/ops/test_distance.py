"""Distances between rows: their kernels beside NumPy in float64, at widths around those of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from case import source

import norch
from norch.ops.resample import IN_PAGES

pytestmark = pytest.mark.kernel

WIDTHS = (0, 1, 3, 7, 8, 15, 16, 17, 33, 300, 2100)
ORDERS = (1.0, 2.0, math.inf)


def distances(a: Any, b: Any, p: float) -> Any:
    """(..., M, N), in float64."""
    apart = np.abs(a[..., :, None, :].astype(float) - b[..., None, :, :].astype(float))
    return np.max(apart, -1, initial=0.0) if p == math.inf else (apart**p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("width", WIDTHS)
def test_distances(width: int, p: float, dtype: str) -> None:
    """Of all rows, of matrices that broadcast and lie otherwise in memory, and of pairs of rows."""
    rng = source(f"distances {width} {p} {dtype}")
    a, b = rng.normal(size=(2, 1, 5, width)).astype(dtype), rng.normal(size=(3, width, 4)).astype(dtype)
    close = {"rtol": 1e-6 if dtype == "float32" else 1e-14, "atol": 1e-30}
    found = norch.cdist(norch.tensor(a), norch.tensor(b).mT, p)
    np.testing.assert_allclose(found.numpy(), distances(a, np.swapaxes(b, 1, 2), p), **close)
    pairs = norch.pdist(norch.tensor(a[0, 0]), p)
    np.testing.assert_allclose(pairs.numpy(), distances(a[0, 0], a[0, 0], p)[np.triu_indices(5, 1)], **close)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("width", [1, 16, 300])
def test_gradients(width: int, p: float) -> None:
    """Those of float32 are near those of float64, which a recorded gradient computes by other operations."""
    rng = source(f"gradients of distances {width} {p}")
    arrays = [rng.normal(size=shape) for shape in ((2, 5, width), (70, width), (2, 5, 70), (10,))]
    x, y, g, of_pairs = (norch.tensor(array.astype("float32")) for array in arrays)
    found, exact = [], []
    for into, dtype, recorded in ((found, norch.float32, False), (exact, norch.float64, True)):
        a, b = (one.to(dtype).requires_grad_() for one in (x, y))
        norms = norch.cdist(a, b, p, "donot_use_mm_for_euclid_dist")  # whose products are less exact
        into.extend(norch.autograd.grad(norms, [a, b], g.to(dtype), create_graph=recorded))
        into.extend(norch.autograd.grad(norch.pdist(a[0], p), [a], of_pairs.to(dtype), create_graph=recorded))
    for one, other in zip(found, exact, strict=True):
        norch.testing.assert_close(one.double(), other.detach(), rtol=1e-4, atol=1e-5)


def test_extreme_rows() -> None:
    """Squares that overflow or underflow, NaN, infinities, and rows that are equal, whose slope is 0."""
    zeros = norch.zeros(1, 20)
    extremes = {norch.float32: (1e30, 1e-22, 1e-30), norch.float64: (1e200, 1e-160, 1e-200)}
    for value, dtype in ((value, dtype) for dtype, values in extremes.items() for value in values):
        found = norch.cdist(norch.full((1, 20), value, dtype=dtype), zeros.to(dtype))
        np.testing.assert_allclose(found.item(), value * math.sqrt(20), rtol=1e-6)
    for p in ORDERS:
        for place in (0, 19):
            x = zeros.clone()
            x[0, place] = math.nan
            assert norch.cdist(x, zeros, p).isnan().all()
            x[0, place] = -math.inf
            assert norch.cdist(x, zeros, p).isposinf().all()
        x = norch.ones(2, 20, requires_grad=True)
        (g,) = norch.autograd.grad(norch.cdist(x, x.detach(), p).sum() + norch.pdist(x, p).sum(), [x])
        assert not g.any()


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, math.inf])
@pytest.mark.parametrize("dtype", ["float32", "float16"])  # with a kernel and without
def test_a_difference_that_is_no_number(dtype: str, p: float) -> None:
    """Its distances are NaN, and so is its own gradient, unless that is 0 everywhere."""
    values = [[1.0, math.nan, 3.0], [2.0, 3.0, 5.0], [1.0, 2.0, 4.0]]
    x = norch.tensor(values, dtype=getattr(norch, dtype), requires_grad=True)
    y = norch.zeros(2, 3, dtype=x.dtype)
    assert norch.cdist(x, y, p).isnan().tolist() == [[True] * 2, [False] * 2, [False] * 2]
    assert norch.pdist(x, p).isnan().tolist() == [True, True, False]
    for distances in (norch.cdist(x, y, p), norch.pdist(x, p)):
        (g,) = norch.autograd.grad(distances.sum(), [x], create_graph=dtype == "float32")
        assert bool(g[0, 1].isnan()) is (p != 0)


def test_renorm_passes_gradients_of_rows_that_it_leaves(torch: Any) -> None:
    found = []
    for lib in (norch, torch):
        x = lib.tensor([[1.0, math.nan], [20.0, 3.0], [1.0, 0.5], [0.0, 0.0]], requires_grad=True)
        for p in (1, 2, math.inf):
            x.renorm(p, 0, 2.0).square().sum(1).nansum().backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize("p", ORDERS)
def test_recorded(p: float) -> None:
    """A replay gives the bits of the call. On CUDA pdist() takes indices from the host, which a recording refuses."""
    x, y = (norch.randn(rows, 33, device="cpu") for rows in (70, 40))
    replayed = norch.capture(lambda a, b: (norch.cdist(a, b, p), norch.pdist(a, p)))
    for _ in range(3):
        for one, other in zip(replayed(x, y), (norch.cdist(x, y, p), norch.pdist(x, p)), strict=True):
            assert norch.equal(one, other)
        x = x.neg()


@pytest.mark.parametrize("rows", [2**40, 316_036_705_537_063_830])
def test_more_pairs_than_fit(rows: int) -> None:
    """Rows without elements may be more than memory has pairs for: of the second number they are 39 modulo 2**64."""
    with pytest.raises((norch.ShapeError, MemoryError)):  # the latter where there is no kernel
        norch.pdist(norch.empty(rows, 0, device="cpu"))


@pytest.mark.skipif(IN_PAGES, reason="the library for pages has no kernel of distances")
def test_a_product_of_matrices_computes_distances_from_a_million_differences_on():
    """Before, small distances of rows that lie far away are exact; a product of matrices loses them."""
    x = norch.zeros(40, 3, device="cpu")
    x[0], x[1] = 1e4, 1e4 + 0.0625
    exact = 0.0625 * 3**0.5
    assert norch.cdist(x, x)[0, 1].item() == pytest.approx(exact, rel=1e-6)
    assert norch.cdist(x.repeat(20, 1), x.repeat(20, 1))[0, 1].item() != pytest.approx(exact, rel=1e-2)
