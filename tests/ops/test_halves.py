"""Layers of halves: computed in float32, from the halves as they are, and rounded once. So are their gradients."""

from __future__ import annotations

from typing import Any

import pytest

import norch
from norch.autograd.halves import is_composite
from norch.nn import functional as F

CALLS: dict[str, tuple[Any, ...]] = {
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding=1), (2, 3, 5), (4, 3, 2), (4,)),
    "conv2d": (lambda x, w: F.conv2d(input=x, weight=w, stride=2), (1, 2, 6, 5), (3, 2, 2, 3)),
    "conv_transpose1d": (F.conv_transpose1d, (2, 3, 5), (3, 4, 2), (4,)),
    "conv_transpose2d": (F.conv_transpose2d, (1, 2, 3, 4), (2, 3, 2, 2)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), (2, 3, 6)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (2, 3, 6, 4)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), (2, 3, 6)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (2, 3, 6, 4)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (2, 3, 5, 4)),
    "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 2), (2, 3, 5)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), (3, 4), (4,), (4,)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), (3, 4), (4,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (3, 4, 2), (4,), (4,)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (3, 4, 2), (4,), (4,)),
    "addmm": (lambda x, a, b: norch.addmm(x, a, b, alpha=0.3), (3, 4), (3, 6), (6, 4)),
    "addbmm": (norch.addbmm, (3, 4), (5, 3, 6), (5, 6, 4)),
    "bilinear": (F.bilinear, (3, 4), (3, 5), (2, 4, 5)),
}


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_rounded_once(name: str, dtype: Any) -> None:
    call, *shapes = CALLS[name]
    halves = [norch.randn(shape, generator=norch.Generator().manual_seed(1)).to(dtype) for shape in shapes]
    wide = [x.float() for x in halves]
    for x in (*halves, *wide):
        x.requires_grad_()
    out, wanted = call(*halves), call(*wide)
    assert out.dtype is dtype and norch.equal(out, wanted.to(dtype))
    g = norch.randn_like(wanted).to(dtype)
    out.backward(g)
    wanted.backward(g.float())
    for x, y in zip(halves, wide, strict=True):
        assert x.grad.dtype is dtype and norch.equal(x.grad, y.grad.to(dtype))


def test_what_is_beside_halves() -> None:
    x = norch.ones(2, 4, dtype=norch.float16)
    assert F.layer_norm(x, (4,), norch.ones(4), norch.ones(4)).dtype is norch.float16
    with pytest.raises(norch.DTypeError, match="conv1d|conv"):
        F.conv1d(x, norch.ones(2, 2, 1))
    running = norch.zeros(4, dtype=norch.float16)
    F.batch_norm(norch.arange(8).reshape(2, 4).half(), running, None, training=True, momentum=0.5)
    assert running.tolist() == [1.0, 1.5, 2.0, 2.5]
    z = x[0] * (1 + 0.1j)  # complex64: a distance is not rounded to float16
    assert all(f(x[0], z).dtype is f(z, x[0]).dtype is norch.float32 for f in (F.l1_loss, norch.dist))


def _scaled(g: Any, x: Any) -> Any:
    return (g * 0.1) * x


def _plain(g: Any, x: Any) -> Any:
    return g * x


def test_which_gradient_functions_are_composite() -> None:
    """What is one operation rounds once as it is; a function that another one only calls counts too."""
    assert is_composite(_scaled) and is_composite(lambda g, x: _scaled(g, x))
    assert not is_composite(_plain) and not is_composite(lambda g, x: _plain(g, x)) and not is_composite(lambda g: g)
    assert not is_composite(norch.exp) and not is_composite(abs)


def test_scaled_sums_widen_operands_as_they_lie() -> None:
    """A cast that also transposes took ten times as long as the product of one row."""

    def call(x: Any, y: Any) -> Any:
        return norch.addmm(x[:, :1], x, y)

    x, w = norch.rand(5, 8, dtype=norch.float16), norch.rand(6, 8, dtype=norch.float16)
    for given in ((x, w.T), (x, w.T.contiguous()), (norch.rand(8, 5, dtype=norch.float16).T, w.T)):
        step = norch.capture(call)
        for _ in range(4):
            out = step(*given)
        assert norch.equal(out, call(*given))
        casts = [sizes for name, dtype, sizes, _ in step.program.calls() if name == "copy" and dtype == "float32"]
        assert (40,) in casts and (48,) in casts  # each is one run of memory
