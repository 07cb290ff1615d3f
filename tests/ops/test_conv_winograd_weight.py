"""Gradients of weights of 3 x 3 taps at stride 1 in float32, which sum factors of tiles: the bound of their errors that
docs/reliability.md states, what is not finite, threads, and memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from checks import refusals
from test_conv_winograd import SHAPES as FORWARD_SHAPES
from test_conv_winograd import SMALL

import norch
import norch.nn.functional as F

pytestmark = [pytest.mark.host, pytest.mark.kernel]

SHAPES = [*FORWARD_SHAPES, *SMALL, (5, 64, 130, 16, 16, 1)]


def drawn(seed: int, *shape: int) -> Any:
    return norch.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def inputs(shape: Any) -> tuple[Any, Any, Any]:
    """x, a gradient of y, and the padding."""
    batch, fan_in, fan_out, rows, columns, padding = shape
    x = drawn(0, batch, fan_in, rows, columns)
    y = F.conv2d(x, norch.zeros(fan_out, fan_in, 3, 3), None, 1, padding)
    return x, drawn(1, *y.shape), padding


def gradients(x: Any, g: Any, padding: Any) -> tuple[Any, Any]:
    """Of the weight and of the bias."""
    w = norch.zeros(g.shape[1], x.shape[1], 3, 3, dtype=x.dtype, requires_grad=True)
    b = norch.zeros(g.shape[1], dtype=x.dtype, requires_grad=True)
    return norch.autograd.grad(F.conv2d(x, w, b, 1, padding), [w, b], g)


@pytest.mark.parametrize("scale", [1.0, 1e-18, 1e15])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_errors_have_the_bound_that_is_stated(shape: Any, scale: float) -> None:
    x, g, padding = inputs(shape)
    x = x * scale
    (mine, bias), (wanted, sums) = gradients(x, g, padding), gradients(x.double(), g.double(), padding)
    error = (mine.double() - wanted).abs()
    tiles = g.shape[0] * math.ceil(g.shape[2] / 2) * math.ceil(g.shape[3] / 2)
    size = g.abs().double().sum((0, 2, 3)) * float(x.abs().amax())
    assert bool((error <= (16 * (tiles + 12) * 2.0**-24 * size).reshape(-1, 1, 1, 1)).all())
    assert float(error.amax()) <= 2e-6 * float(wanted.abs().amax())
    assert bool(((bias.double() - sums).abs() <= 1e-5 * sums.abs().amax()).all())


@pytest.mark.parametrize("value", [norch.inf, -norch.inf, norch.nan])
@pytest.mark.parametrize("where", ["x", "y"])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (7, 8), (14, 16)])
def test_what_is_not_finite_is_summed_over_taps(row: int, column: int, where: str, value: float) -> None:
    x, g, padding = inputs(SHAPES[1])
    (x if where == "x" else g)[1, 5, row, column] = value
    mine, wanted = gradients(x, g, padding)[0], gradients(x.double(), g.double(), padding)[0]
    assert mine.isnan().equal(wanted.isnan()) and mine.isposinf().equal(wanted.isposinf())
    finite = wanted.isfinite()
    assert mine.isfinite().equal(finite)
    assert bool(((mine.double() - wanted)[finite].abs() < 1e-3).all())


def test_factors_that_overflow() -> None:
    x, g, padding = inputs(SHAPES[0])
    x, g = x.sign() * 3e38, g * 1e-38
    mine, wanted = gradients(x, g, padding)[0], gradients(x.double(), g.double(), padding)[0]
    assert mine.isfinite().all() and bool(((mine.double() - wanted).abs() < 1e-4 * wanted.abs().amax()).all())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_threads_change_nothing(shape: Any) -> None:
    before, found = norch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            norch.set_num_threads(threads)
            found.append(gradients(*inputs(shape)))
    finally:
        norch.set_num_threads(before)
    assert all(one.equal(other) for later in found[1:] for one, other in zip(found[0], later, strict=True))


def test_memory_that_is_refused() -> None:
    x, g, padding = inputs(SHAPES[2])
    w = norch.zeros(33, 70, 3, 3, requires_grad=True)
    y = F.conv2d(x, w, None, 1, padding)

    def unchanged() -> None:
        assert w.grad is None

    assert refusals(lambda: y.backward(g, retain_graph=True), unchanged)
    assert w.grad is not None and w.grad.equal(gradients(x, g, padding)[0])
