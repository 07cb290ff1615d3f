"""Convolutions and their adjoints (csrc/ops/conv.c), with the arguments of torch.nn.functional.

C knows two axes, one geometry and three products: y of x and weight, x of y and weight (a transposed convolution),
weight of x and y. Each is the derivative of the other two. One axis is two of which the first has size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._handle import Handle
from .._lib import int64, lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge
from ..errors import ArgumentError, ShapeError
from ._operand import rounded_once

Sizes = int | Sequence[int]
Geometry = tuple[int, ...]  # what norch_conv takes
_PLAIN = 1 << 31


def _conv(x: Any, weight: Any, bias: Any, geometry: Geometry) -> Any:
    """y (N, O, ...) of x (N, C, H, W), weight (O, C / groups, kernel) and bias (O) or None."""
    out = lib.norch_conv(x, weight, bias, geometry)
    return _recorded(out, d.Conv, x, weight, bias, geometry, lambda: (x.shape[2:], weight.shape[2:]))


def _conv_input(y: Any, weight: Any, bias: Any, geometry: Geometry, size: Sequence[int]) -> Any:
    """x (N, C, *size) of y and weight, plus bias (C) or None."""
    out = lib.norch_conv_input(y, weight, bias, geometry, size)
    return _recorded(out, d.ConvInput, y, weight, bias, geometry, lambda: weight.shape[2:])


def _conv_weight(x: Any, y: Any, geometry: Geometry, kernel: Sequence[int]) -> Any:
    """weight (O, C / groups, *kernel) of x and y."""
    out = lib.norch_conv_weight(x, y, geometry, kernel, None)
    return _recorded(out, d.ConvWeight, x, y, None, geometry, lambda: x.shape[2:])


def _recorded(out: Any, node_class: Any, a: Any, b: Any, bias: Any, geometry: Geometry, sizes: Any) -> Any:
    if not mode.enabled:
        return out
    to_a, to_b, to_bias = edge(a), edge(b), None if bias is None else edge(bias)
    if to_a is not None or to_b is not None or to_bias is not None:
        if node_class is d.ConvWeight:
            node = node_class(to_a, to_b)
        else:
            node = node_class(to_a, to_b, to_bias)
            node._c = None
        node._a = a if to_b is not None else None
        node._b = b if to_a is not None else None
        node._out = node.likes = None
        node.geometry, node.sizes = geometry, sizes()
        out._node = node
    return out


# ---- what PyTorch takes ------------------------------------------------------------------------------------------


def per_axis(value: Any, axes: int, name: str, what: str) -> tuple[int, ...]:
    """One number for every axis, or a number for each; at least 0."""
    if type(value) is int and 0 <= value < _PLAIN:  # as modules and most calls have it: nothing to find fault with
        return (value,) * axes
    if type(value) is tuple and len(value) == axes == 2:
        first, second = value
        if type(first) is int and type(second) is int and 0 <= first < _PLAIN and 0 <= second < _PLAIN:
            return value
    listed = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(listed) == 1:
        listed *= axes
    if len(listed) != axes:
        raise ShapeError(f"{name}: {what} takes 1 or {axes} numbers, not {value}")
    for one in listed:
        if not hasattr(one, "__index__") or isinstance(one, bool):
            raise TypeError(f"{name}: {what} takes integers, not {value!r}")
        if int64(one, f"{name}: {what}") < 0:
            raise ArgumentError(f"{name}: negative {what} {value}")
    return listed


def _check(name: str, axes: int, **tensors: Any) -> None:
    for what, x in tensors.items():
        if x is None and what == "bias":
            continue
        if not isinstance(x, Handle):
            raise TypeError(f"{name}: expected a tensor as {what}, not {type(x).__name__}")
        ndim = x.ndim
        if ndim != axes + 2 if what == "weight" else what == "input" and ndim not in (axes + 1, axes + 2):
            wanted = axes + 2 if what == "weight" else f"{axes + 1} (unbatched) or {axes + 2}"
            raise ShapeError(f"{name}: expected {what} of {wanted} dimensions, got shape {tuple(x.shape)}")


def _two_axes(values: Sequence[int], first: int) -> tuple[int, ...]:
    return (first, *values) if len(values) == 1 else tuple(values)


def _geometry(stride: Any, before: Any, after: Any, dilation: Any, groups: Any) -> Geometry:
    two = (*_two_axes(stride, 1), *_two_axes(before, 0), *_two_axes(after, 0), *_two_axes(dilation, 1))
    return (*two, groups)


def batched(x: Any, axes: int) -> Any:
    """(C, L), (N, C, L), (C, H, W) or (N, C, H, W) as (N, C, H, W)."""
    if x.ndim == axes + 1:
        x = x.unsqueeze(0)
    return x.unsqueeze(-2) if axes == 1 else x


def unbatched(out: Any, like: Any, axes: int) -> Any:
    """The axes that batched() added to like, gone from out again."""
    if axes == 1:
        out = out.squeeze(-2)
    return out.squeeze(0) if like.ndim == axes + 1 else out


def paddings(name: str, padding: Any, weight: Any, stride: Any, dilation: Any, axes: int) -> Any:
    """Zeros before and after each axis."""
    if not isinstance(padding, str):
        both = per_axis(padding, axes, name, "padding")
        return both, both
    if padding == "valid":
        return (0,) * axes, (0,) * axes
    if padding != "same":
        raise ArgumentError(f"{name}: padding is a number, 'valid' or 'same', not {padding!r}")
    if any(one != 1 for one in stride):
        raise ArgumentError(f"{name}: padding='same' needs a stride of 1, not {tuple(stride)}")
    total = [step * (size - 1) for step, size in zip(dilation, weight.shape[2:], strict=True)]
    return [one // 2 for one in total], [one - one // 2 for one in total]


def _convolve(
    name: str, axes: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    _check(name, axes, input=x, weight=weight, bias=bias)
    steps, spread = per_axis(stride, axes, name, "stride"), per_axis(dilation, axes, name, "dilation")
    before, after = paddings(name, padding, weight, steps, spread, axes)
    kernel = weight.unsqueeze(-2) if axes == 1 else weight
    out = _conv(batched(x, axes), kernel, bias, _geometry(steps, before, after, spread, groups))
    return unbatched(out, x, axes) if axes == 1 or x.ndim == 3 else out


@rounded_once
def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    """input (N, C, L) or (C, L) with weight (O, C / groups, K) and bias (O): (N, O, L') or (O, L').

    L' = (L + 2 padding - dilation (K - 1) - 1) / stride + 1, rounded down. padding may be "valid" (none) or, at
    stride 1, "same" (L' = L). Floats; ShapeError where channels, groups or sizes do not fit.

    >>> norch.nn.functional.conv1d(norch.tensor([[1.0, 2.0, 4.0]]), norch.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2.]])
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@rounded_once
def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    """input (N, C, H, W) or (C, H, W) with weight (O, C / groups, KH, KW) and bias (O); otherwise as conv1d.

    >>> norch.nn.functional.conv2d(norch.ones(1, 4, 4), norch.ones(2, 1, 3, 3), padding=1).shape
    norch.Size([2, 4, 4])
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def _convolve_transposed(
    name: str,
    axes: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Any:
    _check(name, axes, input=x, weight=weight, bias=bias)
    steps, spread = per_axis(stride, axes, name, "stride"), per_axis(dilation, axes, name, "dilation")
    before, more = per_axis(padding, axes, name, "padding"), per_axis(output_padding, axes, name, "output_padding")
    for i in range(axes):
        if more[i] >= max(steps[i], spread[i]):
            raise ArgumentError(f"{name}: output_padding {more[i]} must be smaller than stride or dilation")
    size = [
        (length - 1) * steps[i] - 2 * before[i] + spread[i] * (weight.shape[2 + i] - 1) + more[i] + 1
        for i, length in enumerate(x.shape[-axes:])
    ]
    if min(size) < 1:
        raise ShapeError(f"{name}: input of shape {tuple(x.shape)} would make an output of size {tuple(size)}")
    after = [p - extra if extra >= step else p for p, extra, step in zip(before, more, steps, strict=True)]
    kernel = weight.unsqueeze(-2) if axes == 1 else weight
    geometry = _geometry(steps, before, after, spread, groups)
    return unbatched(_conv_input(batched(x, axes), kernel, bias, geometry, _two_axes(size, 1)), x, axes)


@rounded_once
def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Any:
    """The adjoint of conv1d: input (N, C, L) with weight (C, O / groups, K) and bias (O) gives (N, O, L').

    L' = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1.
    """
    return _convolve_transposed(
        "conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@rounded_once
def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Any:
    """The adjoint of conv2d: input (N, C, H, W) with weight (C, O / groups, KH, KW) and bias (O).

    >>> norch.nn.functional.conv_transpose2d(norch.ones(1, 1, 2, 2), norch.ones(1, 3, 2, 2), stride=2).shape
    norch.Size([1, 3, 4, 4])
    """
    return _convolve_transposed(
        "conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


class ConvMethods(Handle):
    """The products that derivatives of convolutions are written in."""

    __slots__ = ()

    _conv, _conv_input, _conv_weight = _conv, _conv_input, _conv_weight
