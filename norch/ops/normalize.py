"""Normalisation of rows of the last axes (csrc/ops/normalize.c), with the arguments of torch.nn.functional."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .._lib import lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge
from ..dtype import finfo
from ..errors import ShapeError
from ._operand import rounded_once, tensor_of


def normalized(x: Any, weight: Any, bias: Any, axes: int, eps: float, centered: bool) -> Any:
    """The last axes of x, or -axes groups of its channels, normalised, times weight, plus bias (or None each)."""
    out = lib.norch_normalize(x, weight, bias, axes, eps, centered)
    if not mode.enabled:
        return out
    to_x, to_weight, to_bias = (None if one is None else edge(one) for one in (x, weight, bias))
    if to_x is not None or to_weight is not None or to_bias is not None:
        node = d.Normalize(to_x, to_weight, to_bias)
        node._a, node._b, node._c, node._out = x, weight, None, None
        node.likes = weight, bias
        node.axes, node.eps, node.centered = axes, eps, centered
        out._node = node
    return out


def _rows(name: str, x: Any, normalized_shape: Any) -> int:
    """How many axes are normalised."""
    shape = tuple(tensor_of(x, name).shape)
    wanted = tuple(normalized_shape) if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    if not wanted or shape[-len(wanted) :] != wanted:
        raise ShapeError(f"{name}: normalized_shape {wanted} is not how shape {shape} ends")
    return len(wanted)


@partial(rounded_once, mixed=True)
def layer_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """The last axes of input, whose sizes are normalized_shape, with mean 0 and variance 1; times weight, plus bias.

    weight and bias: of normalized_shape. Floats; ShapeError where the sizes differ.

    >>> norch.nn.functional.layer_norm(norch.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    return normalized(input, weight, bias, _rows("layer_norm", input, normalized_shape), eps, True)


@partial(rounded_once, mixed=True)
def rms_norm(input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    """The last axes of input over the root of their mean square (plus eps: the dtype's unless given); times weight.

    >>> norch.nn.functional.rms_norm(norch.tensor([3.0, -3.0]), (2,), eps=0.0)
    tensor([ 1., -1.])
    """
    axes = _rows("rms_norm", input, normalized_shape)
    return normalized(input, weight, None, axes, finfo(input.dtype).eps if eps is None else eps, False)
