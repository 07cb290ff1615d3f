"""The cross-entropy of logits, and of logarithms of probabilities, with class indices: the kernels against the same
composed in float64; derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

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


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "shape", [(7,), (1, 1), (5, 3), (300, 10), (4, 3, 5), (2, 3, 2, 2), (0, 4), (2, 0, 3), (2, 3, 0)]
)
def test_nll_is_what_stands_at_the_targets(shape: Any, weighted: bool, dtype: str) -> None:
    dim = min(len(shape) - 1, 1)
    rng = np.random.default_rng(len(shape))
    array, factors = rng.standard_normal(shape).astype(dtype), rng.random(shape[dim]).astype(dtype) + 1
    indices = np.array(rng.integers(0, max(1, shape[dim]), shape[:dim] + shape[dim + 1 :]))
    indices.reshape(-1)[1 if shape[dim] else 0 :: 3] = -100
    indices = indices if shape[dim] else np.full_like(indices, -100)
    target, valid = norch.tensor(indices), norch.tensor(indices != -100)
    weight = norch.tensor(factors.astype("float64") if weighted else np.ones(shape[dim]))
    for reduction in REDUCTIONS:
        x, wide = (norch.tensor(array.astype(one), requires_grad=True) for one in (dtype, "float64"))
        given = norch.tensor(factors) if weighted else None
        loss = F.nll_loss(x.mT.contiguous().mT if x.ndim > 2 else x, target, given, reduction=reduction)
        at = norch.where(valid, target, 0).unsqueeze(dim)
        each, share = norch.zeros(target.shape, dtype=norch.float64), norch.zeros(target.shape, dtype=norch.float64)
        if shape[dim]:
            share = norch.where(valid, weight[at.squeeze(dim)], 0.0)
            each = -wide.gather(dim, at).squeeze(dim) * share
        wanted = each if reduction == "none" else each.sum() / (share.sum() if reduction == "mean" else 1)
        slack = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
        assert loss.dtype is x.dtype
        assert_close(loss.double(), wanted, rtol=slack, atol=slack, equal_nan=True)
        if not shape[dim]:
            continue
        g = norch.tensor(rng.standard_normal(loss.shape))
        loss.backward(g.to(loss.dtype)), wanted.backward(g)
        assert_close(x.grad.double(), wide.grad, rtol=2 * slack, atol=2 * slack, equal_nan=True)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 2)])
def test_derivatives_of_nll(reduction: str, shape: Any) -> None:
    x = norch.tensor(np.random.default_rng(0).standard_normal(shape), requires_grad=True)
    classes = shape[min(len(shape) - 1, 1)]
    weight = (norch.arange(float(classes)).double() + 1).requires_grad_()
    target = norch.tensor(drawn((*shape[:1], *shape[2:], classes) if len(shape) > 1 else shape, classes)[1])
    for given in ([x], [x, weight]):
        call = lambda x, *w: F.nll_loss(x, target, *w, reduction=reduction)  # noqa: E731
        assert gradcheck(call, given) and gradgradcheck(call, given)


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
    for wrong, given, weight in (
        ("targets of shape", target[:2], None), ("a weight of shape", target, x[0, :2]), ("the count", target, None),
    ):  # fmt: skip
        with pytest.raises(norch.ShapeError, match=f"nll: {wrong}"):
            lib.norch_nll(x, given, weight, norch.empty(1) if wrong == "the count" else None, -100, True)
    with pytest.raises(norch.DTypeError, match="nll"):
        lib.norch_nll(x, target.int(), None, None, -100, True)
    with pytest.raises(norch.ShapeError, match="nll_backward: a gradient of shape"):
        lib.norch_nll_backward(norch.ones(2), target, None, None, -100, 4)
    deepest = norch.zeros([1] * 16, dtype=norch.int64)
    with pytest.raises(norch.ShapeError, match="nll_backward: a gradient of shape"):
        lib.norch_nll_backward(norch.ones(()), deepest, None, None, -100, 4)


@pytest.mark.host  # a device reports them later
@pytest.mark.parametrize("wrong", [-1, 4])
def test_targets_just_out_of_range_write_nothing(wrong: int) -> None:
    x, target, kept, count = norch.ones(3, 4), norch.tensor([0, wrong, 2]), norch.zeros(3, 2), norch.full((), 9.0)
    for name, call in (
        ("cross_entropy", lambda: lib.norch_cross_entropy(x, target, kept, count, -100, True, 0.0)),
        ("cross_entropy", lambda: lib.norch_cross_entropy_backward(norch.ones(()), x, target, kept, count, -100, 0.0)),
        ("nll", lambda: lib.norch_nll(x, target, None, count, -100, True)),
        ("nll", lambda: lib.norch_nll_backward(norch.ones(()), target, None, count, -100, 4)),
    ):
        with pytest.raises(IndexError, match=f"{name}: index {wrong} is out of range for size 4"):
            call()
    assert not kept.any() and count.item() == 9


def test_nll_of_rows_and_images_longer_than_a_task() -> None:
    for shape in ((3, 20_000), (2, 3, 90, 90)):
        x, target = norch.randn(*shape, requires_grad=True), norch.randint(0, 3, shape[:1] + shape[2:])
        loss, picked = F.nll_loss(x, target), -x.gather(1, target.unsqueeze(1)).mean()
        assert_close(loss, picked)
        for one, other in zip(norch.autograd.grad(loss, [x]), norch.autograd.grad(picked, [x]), strict=True):
            assert_close(one, other)


def test_a_target_with_an_axis_too_many_says_what_to_write():
    with pytest.raises(norch.ShapeError, match=r"target of shape \(4, 1\) .*; target.squeeze\(1\) has the shape"):
        F.cross_entropy(norch.zeros(4, 3), norch.zeros(4, 1, dtype=norch.int64))
    with pytest.raises(norch.ShapeError, match=r"of shape \(4, 3\)$"):
        F.cross_entropy(norch.zeros(4, 3), norch.zeros(5, dtype=norch.int64))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_label_smoothing_leaves_ignored_samples_out(reduction: str) -> None:
    """With weights, which go another way than rows without."""
    x = norch.randn(4, 3, 2)
    target = norch.tensor([[0, -100], [2, 1], [-100, -100], [1, 1]])
    weight = norch.tensor([0.5, 1.0, 2.0])
    counts = target != -100
    loss = F.cross_entropy(x, target, weight, label_smoothing=0.2, reduction=reduction)
    kept = F.cross_entropy(x.mT[counts], target[counts], weight, label_smoothing=0.2, reduction=reduction)
    if reduction == "none":
        assert not loss[~counts].any()
        loss = loss[counts]
    assert_close(loss, kept)


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_a_weight_of_another_dtype_is_refused(name: str) -> None:
    """As in PyTorch; autocast gives both float32."""
    loss, x, target = getattr(F, name), norch.zeros(2, 3), norch.tensor([0, 2])
    with pytest.raises(norch.DTypeError, match=f"{name}: weight is float64 but input is float32"):
        loss(x, target, weight=norch.ones(3).double())
    with norch.autocast(DEVICE, dtype=norch.bfloat16):
        assert loss(x.bfloat16(), target, weight=norch.ones(3)).dtype is norch.float32
