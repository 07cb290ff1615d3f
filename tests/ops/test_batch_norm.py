"""Batch normalisation: the kernel against the same in float64, composed of reductions, over long and short planes,
aligned or not, with one part of a channel or several; its derivatives against those of that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import norch
import norch.nn.functional as F
from norch._binding.library import lib
from norch.testing import assert_close, gradcheck, gradgradcheck

pytestmark = pytest.mark.kernel

# (N, C, ...): planes of 1, below 16, of 16 and more, and those that 16 bytes do not divide
SHAPES: Any = [(2, 1), (5, 3), (40, 70), (6, 5, 3), (7, 33, 2, 2), (3, 2, 15), (3, 2, 4, 4), (4, 3, 7, 7), (2, 5, 64)]
SHAPES += [(9000, 2), (300, 2, 48), (5, 2, 3001)]  # more than one part of a channel


def drawn(seed: int, *shape: int, dtype: str = "float64") -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * 3 + 2).astype(dtype)


def composed(x: Any, weight: Any, bias: Any, statistics: Any, eps: float) -> Any:
    """x with the statistics, or with its own; and those that it took."""
    dims, form = (0, *range(2, x.ndim)), (-1, *(1,) * (x.ndim - 2))
    mean, variance = statistics or (x.mean(dims), x.var(dims, correction=0))
    h = (x - mean.reshape(form)) * (variance.reshape(form) + eps).rsqrt()
    h = h if weight is None else h * weight.reshape(form)
    return (h if bias is None else h + bias.reshape(form)), (mean.detach(), variance.detach())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_is_what_reductions_make_of_it(shape: Any, training: bool, dtype: str) -> None:
    parameters = len(shape) + shape[0] % 2  # of some shapes no bias, of some no weight
    arrays = [drawn(0, *shape, dtype=dtype), *(drawn(i, shape[1], dtype=dtype) for i in (1, 2))]
    given = [True, parameters % 3 != 0, parameters % 3 != 1]
    ours, wide = ([norch.tensor(x.astype(t), requires_grad=True) for x in arrays] for t in (dtype, "float64"))
    running = [drawn(3, shape[1], dtype=dtype), drawn(4, shape[1], dtype=dtype) ** 2]
    mine, theirs = ([norch.tensor(x.astype(t)) for x in running] for t in (dtype, "float64"))
    chosen, wanted_of = ([x if g else None for x, g in zip(xs, given)] for xs in (ours, wide))
    y = F.batch_norm(chosen[0], *mine, *chosen[1:], training, 0.3, 1e-3)
    wanted, (mean, variance) = composed(*wanted_of, None if training else theirs, 1e-3)
    slack = 2e-5 if dtype == "float32" else 1e-11
    assert_close(y.double(), wanted, rtol=slack, atol=slack)
    if training:
        n = y.numel() / shape[1]
        theirs[0] = theirs[0] * 0.7 + mean * 0.3
        theirs[1] = theirs[1] * 0.7 + variance * (n / (n - 1)) * 0.3
    for one, other in zip(mine, theirs):
        assert_close(one.double(), other, rtol=slack, atol=slack)
    g = drawn(5, *shape, dtype=dtype)
    y.backward(norch.tensor(g))
    wanted.backward(norch.tensor(g.astype("float64")))
    for one, other, is_given in zip(ours, wide, given):
        if is_given:
            scale = max(float(other.grad.abs().max()), 1.0)
            assert_close(one.grad.double(), other.grad, rtol=slack, atol=10 * slack * scale)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("given", [(True, True), (False, True), (True, False)], ids=str)
def test_derivatives(given: Any, training: bool) -> None:
    sizes = [(3, 2), *((2,) for is_given in given if is_given)]
    leaves = [norch.tensor(drawn(i, *size), requires_grad=True) for i, size in enumerate(sizes)]
    mean, variance = norch.tensor(drawn(5, 2)), norch.tensor(drawn(6, 2) ** 2)

    def call(x: Any, *rest: Any) -> Any:
        parameters = iter(rest)
        weight, bias = (next(parameters) if is_given else None for is_given in given)
        return F.batch_norm(x, mean.clone(), variance.clone(), weight, bias, training)

    assert gradcheck(call, leaves) and gradgradcheck(call, leaves)


def test_nothing_cancels() -> None:
    for first in (0.0, 1e4):  # also where the first element, about which sums are taken, is far from the others
        array = drawn(0, 64, 3, 40) + 1e4
        array[:, :, 0] -= 1e4 - first
        array = array.astype("float32")
        mean, variance = norch.zeros(3), norch.zeros(3)
        F.batch_norm(norch.tensor(array), mean, variance, training=True, momentum=1.0)
        wide = array.astype("float64").transpose(1, 0, 2).reshape(3, -1)
        assert np.allclose(mean.numpy(), wide.mean(1), rtol=1e-6)
        assert np.allclose(variance.numpy(), wide.var(1, ddof=1), rtol=1e-5)


def test_what_the_kernel_does_not_take() -> None:
    x, running = norch.tensor(drawn(0, 6, 4, 5, dtype="float32")), norch.zeros(4)
    wanted = F.batch_norm(x, None, None, training=True)
    assert_close(F.batch_norm(x.transpose(0, 2).contiguous().transpose(0, 2), None, None, training=True), wanted)
    weight = norch.ones(4, dtype=norch.float64)
    assert F.batch_norm(x, None, None, weight, training=True).dtype is norch.float64
    for other in (norch.zeros(4, dtype=norch.float64), norch.zeros(8)[::2]):  # of another dtype, and not contiguous
        F.batch_norm(x, running.zero_(), None, training=True)
        F.batch_norm(x, other, None, training=True)
        assert_close(other.float(), running)
    F.batch_norm(x, other.zero_(), None, training=True, momentum=norch.tensor(0.1))
    assert_close(other, running)
    mean = norch.zeros(4, requires_grad=True)
    F.batch_norm(x, mean, norch.ones(4)).sum().backward()
    assert_close(mean.grad, norch.full((4,), -30.0), rtol=1e-4, atol=1e-4)


def test_writes_to_the_statistics_are_seen() -> None:
    x, mean, variance = norch.ones(3, 2, requires_grad=True), norch.zeros(2), norch.ones(2)
    out = F.batch_norm(x, mean, variance)
    F.batch_norm(x.detach() + norch.arange(3.0)[:, None], mean, variance, training=True)
    with pytest.raises(norch.Error, match="changed in place"):
        out.sum().backward()


def test_values_that_are_no_numbers_stay_in_their_channel() -> None:
    array = drawn(0, 5, 3, 20, dtype="float32")
    array[2, 1, 7] = np.nan
    out = F.batch_norm(norch.tensor(array), None, None, training=True).numpy()
    assert np.isnan(out[:, 1]).all() and np.isfinite(out[:, [0, 2]]).all()


def test_refusals() -> None:
    x, two, three = norch.ones(4, 2), norch.ones(2), norch.ones(3)
    with pytest.raises(norch.ShapeError, match="batch_norm"):
        lib.norch_batch_norm(x, two, three, None, None, None, None, 0.1, 1e-5)
    with pytest.raises(norch.ArgumentError, match="batch_norm: no mean"):
        lib.norch_batch_norm(x, None, None, two, None, None, None, 0.1, 1e-5)
    with pytest.raises(norch.ShapeError, match="not contiguous"):
        lib.norch_batch_norm(x, two, norch.ones(4)[::2], None, None, None, None, 0.1, 1e-5)
    with pytest.raises(norch.DTypeError, match="int64"):
        lib.norch_batch_norm(norch.ones(4, 2, dtype=norch.int64), None, None, None, None, None, None, 0.1, 1e-5)
    grads = (norch.empty(4, 2), norch.empty(2, 3))
    with pytest.raises(norch.ShapeError, match="batch_norm_backward"):
        lib.norch_batch_norm_backward(x, x, two, two, None, 1e-5, True, grads)
