"""Dropout: one call that draws what rand() draws, on each device, and its gradients."""

from __future__ import annotations

from typing import Any

import pytest

import norch
import norch.nn.functional as F
from norch._binding.library import lib
from norch.testing import gradcheck, gradgradcheck

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 7), (2, 1030), (0, 4), (40000,)], ids=str)
def test_draws_what_rand_draws(shape: Any, dtype: Any) -> None:
    x = norch.randn(shape, dtype=dtype, requires_grad=True)
    for p in (0.0001, 0.3, 0.9):
        norch.manual_seed(5)
        out, after = F.dropout(x, p), norch.rand(3)
        norch.manual_seed(5)
        kept = norch.rand(shape, dtype=dtype) >= p
        assert norch.equal(norch.rand(3), after)  # the stream goes on behind them
        scale = norch.tensor(1 / (1 - p), dtype=dtype)
        assert norch.equal(out.detach(), x.detach() * kept * scale) and out.dtype is dtype
        g = norch.randn(shape, dtype=dtype)
        (found,) = norch.autograd.grad(out, x, g)
        assert norch.equal(found, g * kept * scale)


def test_layouts_halves_and_places() -> None:
    x = norch.randn(40, 30)
    for one in (x.T, x[:, 1:], x.half(), x.bfloat16(), x[::2, ::3]):
        norch.manual_seed(1)
        out = F.dropout(one, 0.5)
        norch.manual_seed(1)
        wanted = F.dropout(one.float().contiguous(), 0.5)
        assert norch.equal(out, wanted.to(one.dtype)) and out.dtype is one.dtype
    whole = norch.ones(6)
    assert F.dropout(whole, 0.5, inplace=True) is whole and set(whole.tolist()) <= {0.0, 2.0}
    with pytest.raises(norch.DTypeError, match="dropout: the input must be of floats, not int64"):
        F.dropout(norch.ones(4, dtype=norch.int64), 0.5)


def test_what_is_infinite_or_no_number() -> None:
    x = norch.tensor([float("inf"), float("nan"), 1.0] * 50, requires_grad=True)
    out = F.dropout(x, 0.5)
    assert out[1::3].isnan().all() and (out[::3].isnan() | out[::3].isinf()).all()
    out.sum().backward()
    assert set(x.grad.tolist()) == {0.0, 2.0}


def test_derivatives() -> None:
    def call(x: Any) -> Any:
        norch.manual_seed(3)
        return F.dropout(x, 0.4) * x

    x = norch.randn(3, 4, dtype=norch.float64, requires_grad=True)
    assert gradcheck(call, [x]) and gradgradcheck(call, [x])
    (g,) = norch.autograd.grad(F.dropout(x, 0.4).sum(), x, create_graph=True)
    assert not g.requires_grad  # of what is linear


def test_refusals() -> None:
    x, state = norch.ones(3), norch.random.state_of(None)
    with pytest.raises(norch.DTypeError, match="dropout"):
        lib.norch_dropout(state, x.int(), 0.5, 2.0, norch.ones(3, dtype=norch.bool))
    for mask in (norch.ones(3), norch.ones(2, dtype=norch.bool), norch.ones(6, dtype=norch.bool)[::2]):
        with pytest.raises(norch.ShapeError, match="dropout: a mask"):
            lib.norch_dropout(state, x, 0.5, 2.0, mask)
