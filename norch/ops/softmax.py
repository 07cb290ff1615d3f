"""Softmax and its logarithm (csrc/ops/softmax.c), with their derivatives."""

from __future__ import annotations

from .._binding.library import lib
from .._package.typing import Tensor
from ..autograd.derivative import derivative
from ..autograd.differentiable import differentiable
from ..autograd.record import record
from ..dtype import dtype as DType
from ..dtype import dtype_named
from ._operand import as_operand
from .op import method


@method(numpy=True, autocast="- float32")
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """exp(x) over its sum along dim: probabilities that sum to 1, without overflow for large x. Integers become floats.

    >>> norch.softmax(norch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _softmax(input, dim, dtype, False)


@method(numpy=True, autocast="- float32")
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """The logarithms of probabilities that sum to 1 along dim: x - logsumexp(x), exact for large x too.

    Integers become floats.

    >>> norch.log_softmax(norch.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _softmax(input, dim, dtype, True)


def _softmax(x: Tensor, dim: int, dtype: DType | None, log: bool) -> Tensor:
    x = as_operand(x, "log_softmax" if log else "softmax")
    if dtype is not None:
        x = x.to(dtype_named(dtype))
    return record(_LogSoftmax if log else _Softmax, lib.norch_softmax(x, dim, log), (x,), (dim,))


_Softmax = derivative("softmax", grad=lambda g, out, dim: softmax_backward(g, out, dim))
_LogSoftmax = derivative("log_softmax", grad=lambda g, out, dim: _log_softmax_backward(g, out, dim))


@differentiable(
    grad_g=lambda g2, y, dim: softmax_backward(g2, y, dim),
    grad_y=lambda g2, g, y, dim: g2 * (g - (g * y).sum(dim, True)) - g * (g2 * y).sum(dim, True),
)
def softmax_backward(g: Tensor, y: Tensor, dim: int) -> Tensor:
    """y (g - sum(g y)), the gradient of softmax, where y is its result."""
    return lib.norch_softmax_backward(g, y, dim, False)


@differentiable(
    grad_g=lambda g2, y, dim: g2 - (g2 * y.exp()).sum(dim, True),
    grad_y=lambda g2, g, y, dim: -g2 * y.exp() * g.sum(dim, True),
)
def _log_softmax_backward(g: Tensor, y: Tensor, dim: int) -> Tensor:
    """g - exp(y) sum(g), the gradient of log_softmax, where y is its result."""
    return lib.norch_softmax_backward(g, y, dim, True)
