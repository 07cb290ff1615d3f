"""Softmax and its logarithm (csrc/ops/softmax.c)."""

from __future__ import annotations

from typing import Any

from .._handle import Handle, alias
from .._lib import lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge
from ..dtype import dtype as DType  # noqa: N812
from ..dtype import dtype_named
from ._operand import as_operand, numpy_names


@numpy_names
def softmax(input: Any, dim: int, dtype: DType | None = None) -> Any:  # noqa: A002
    """exp(x) over its sum along dim: probabilities that sum to 1, stable for large x. Integers become floats.

    >>> norch.softmax(norch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _softmax(input, dim, dtype, False)


@numpy_names
def log_softmax(input: Any, dim: int, dtype: DType | None = None) -> Any:  # noqa: A002
    """The logarithms of probabilities that sum to 1 along dim: x - logsumexp(x), exact for large x too.

    Integers become floats.
    """
    return _softmax(input, dim, dtype, True)


def _softmax(x: Any, dim: Any, dtype: Any, log: bool) -> Any:
    x = as_operand(x, "log_softmax" if log else "softmax")
    if dtype is not None:
        x = x.to(dtype_named(dtype))
    out = lib.norch_softmax(x, dim, log)
    if mode.enabled and (to_x := edge(x)) is not None:
        node = (d.LogSoftmax if log else d.Softmax)(to_x)
        node._x, node._out, node.dim = None, alias(out), dim
        out._node = node
    return out


class SoftmaxMethods(Handle):
    """The softmax methods of Tensor."""

    __slots__ = ()

    softmax, log_softmax = softmax, log_softmax

    def _softmax_backward(self, result: Any, dim: int, log: bool) -> Any:
        """The gradient of x from self, that of its softmax."""
        out = lib.norch_softmax_backward(self, result, dim, log)
        to_g, to_result = edge(self), edge(result)
        if mode.enabled and (to_g is not None or to_result is not None):
            node = (d.LogSoftmaxBackward if log else d.SoftmaxBackward)(to_g, to_result)
            node._a, node._b, node._out, node.likes, node.dim = self, result, None, None, dim
            out._node = node
        return out
