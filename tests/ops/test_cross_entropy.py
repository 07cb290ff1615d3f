"""The cross-entropy of logits with class indices: the kernels against the same composed in float64; derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import norch
import norch.nn.functional as F
from norch._binding.library import lib
from norch.testing import assert_close, gradcheck, gradgradcheck

pytestmark = pytest.mark.kernel

# Rows of few classes, of more, of odd lengths, whose starts are aligned each in another way; no rows, and one class
SHAPES = [(7,), (1, 1), (5, 3), (300, 10), (33, 64), (9, 65), (6, 129), (3, 5001), (2, 2048), (0, 4)]
REDUCTIONS = ["none", "sum", "mean"]


def drawn(shape: Any, classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(len(shape) + classes)
    x, target = rng.standard_normal(shape) * 4, rng.integers(0, classes, shape[:-1])
    if target.ndim and target.size > 1:
        target[1] = -100
    return x, target


def composed(x: Any, target: Any, smoothing: float, reduction: str) -> Any:
    """The losses in float64, from log_softmax and what stands at the targets."""
    x, target = x.reshape(-1, x.shape[-1]), target.reshape(-1)
    log_p, valid = x.log_softmax(1), target != -100
    hard = log_p.gather(1, norch.where(valid, target, 0)[:, None])[:, 0]
    losses = norch.where(valid, -(1 - smoothing) * hard - smoothing * log_p.mean(1), 0.0)
    if reduction == "none":
        return losses
    return losses.sum() / (valid.sum() if reduction == "mean" else 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_is_what_log_softmax_makes_of_it(shape: Any, smoothing: float, dtype: str) -> None:
    array, indices = drawn(shape, shape[-1])
    for reduction in REDUCTIONS:
        x = norch.tensor(array.astype(dtype), requires_grad=True)
        wide = norch.tensor(array.astype(dtype).astype("float64"), requires_grad=True)
        target = norch.tensor(indices)
        loss = F.cross_entropy(x, target, reduction=reduction, label_smoothing=smoothing)
        wanted = composed(wide, target, smoothing, reduction)
        assert loss.dtype is x.dtype and loss.shape == (target.shape if reduction == "none" else ())
        slack = 2e-6 if dtype == "float32" else 1e-13
        assert_close(loss.double().reshape(wanted.shape), wanted, rtol=slack, atol=10 * slack, equal_nan=True)
        g = np.random.default_rng(1).standard_normal(loss.shape)
        loss.backward(norch.tensor(g.astype(dtype)))
        wanted.backward(norch.tensor(g.astype(dtype).astype("float64").reshape(wanted.shape)))
        assert_close(x.grad.double(), wide.grad, rtol=10 * slack, atol=slack)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_derivatives(reduction: str, smoothing: float) -> None:
    for shape in ((4, 3), (5,)):
        array, indices = drawn(shape, shape[-1])
        x, target = norch.tensor(array / 4, requires_grad=True), norch.tensor(indices)

        def call(x: Any, target: Any = target) -> Any:
            return F.cross_entropy(x, target, reduction=reduction, label_smoothing=smoothing)

        assert gradcheck(call, [x]) and gradgradcheck(call, [x])


def test_what_is_infinite_or_no_number() -> None:
    inf, nan = float("inf"), float("nan")
    array = [[0.0, -inf, 1.0], [-inf, -inf, -inf], [nan, 0.0, 0.0], [inf, 0.0, 0.0], [-inf, -inf, 2.0]]
    x = norch.tensor([row * 5 for row in array], requires_grad=True)
    loss = F.cross_entropy(x, norch.tensor([2, 0, 1, 0, 2]), reduction="none")
    assert loss.isnan().tolist() == [False, True, True, True, False]
    assert F.cross_entropy(x, norch.tensor([1, 0, 1, 0, 2]), reduction="none")[0] == inf
    loss[norch.tensor([0, 4])].sum().backward()
    assert x.grad[0].isfinite().all() and x.grad[4, :2].tolist() == [0.0, 0.0]


def test_layouts_halves_and_targets() -> None:
    array, indices = drawn((6, 20), 20)
    x, target = norch.tensor(array.astype("float32")), norch.tensor(indices)
    wanted = F.cross_entropy(x, target)
    assert_close(F.cross_entropy(x.T.contiguous().T, target), wanted)
    assert_close(F.cross_entropy(norch.cat([x, x], 1)[:, :20], target), wanted)
    assert_close(F.cross_entropy(x, norch.stack([target, target], 1)[:, 0]), wanted)
    assert_close(
        F.cross_entropy(norch.cat([x, x])[1:7], target.roll(-1)), F.cross_entropy(x.roll(-1, 0), target.roll(-1))
    )
    for dtype in (norch.float16, norch.bfloat16):
        half, wide = x.to(dtype).requires_grad_(), x.to(dtype).float().requires_grad_()
        found, full = F.cross_entropy(half, target), F.cross_entropy(wide, target)
        assert found.dtype is dtype and norch.equal(found, full.to(dtype))
        found.backward(), full.backward()
        assert norch.equal(half.grad, wide.grad.to(dtype))
    other = norch.where(target == -100, 0, target)
    assert_close(
        F.cross_entropy(x, norch.where(target == -100, 7, target), ignore_index=7),
        F.cross_entropy(x, norch.where(target == 7, -100, target)),
    )
    assert_close(F.cross_entropy(x, other.int()), F.cross_entropy(x, other))


def test_writes_are_seen() -> None:
    x, target = norch.ones(3, 4, requires_grad=True), norch.tensor([0, 1, 2])
    loss = F.cross_entropy(x, target)
    target[0] = 3
    with pytest.raises(norch.Error, match="changed in place"):
        loss.backward()


def test_refusals() -> None:
    x, target, kept = norch.ones(3, 4), norch.tensor([0, 1, 2]), norch.empty(3, 2)
    with pytest.raises(norch.DTypeError, match="cross_entropy"):
        lib.norch_cross_entropy(x, target.int(), kept, None, -100, True, 0.0)
    with pytest.raises(norch.ShapeError, match="cross_entropy"):
        lib.norch_cross_entropy(x, target[:2], kept, None, -100, True, 0.0)
    with pytest.raises(norch.ShapeError, match="the logarithms of sums"):
        lib.norch_cross_entropy(x, target, kept[:2], None, -100, True, 0.0)
    with pytest.raises(norch.ShapeError, match="cross_entropy_backward"):
        lib.norch_cross_entropy_backward(norch.ones(2), x, target, kept, None, -100, 0.0)


def test_a_target_with_an_axis_too_many_says_what_to_write():
    with pytest.raises(norch.ShapeError, match=r"target of shape \(4, 1\) .*; target.squeeze\(1\) has the shape"):
        F.cross_entropy(norch.zeros(4, 3), norch.zeros(4, 1, dtype=norch.int64))
    with pytest.raises(norch.ShapeError, match=r"of shape \(4, 3\)$"):
        F.cross_entropy(norch.zeros(4, 3), norch.zeros(5, dtype=norch.int64))
