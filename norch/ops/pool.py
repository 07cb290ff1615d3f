"""Pooling (csrc/ops/pool.c), with the arguments of torch.nn.functional.

C reduces windows over the last two axes. One axis is two of which the first has size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._handle import Handle
from .._lib import lib
from ..autograd import derivatives as d
from ..device import place
from ..dtype import int64 as index_dtype
from ..errors import ArgumentError, ShapeError
from ._forms import hang
from ._operand import rounded_once, tensor_of
from .conv import per_axis

Sizes = int | Sequence[int]
# For the means: the window, whether padding counts, and the divisor (0: the size of the window).
Averaging = tuple[tuple[int, ...], bool, float]


def places_of_largest(x: Any, window: tuple[int, ...], result: Sequence[int]) -> tuple[Any, Any]:
    """The largest elements, and their places in the planes of x."""
    index = lib.norch_empty((*x.shape[:-2], *result), index_dtype.code, place(x.device))
    out = lib.norch_pool_max(x, window, index)
    return hang(out, d.MaxPool, x, index=index, window=window, size=x.shape[-2:]), index


def _pool_max_spread(x: Any, index: Any, window: tuple[int, ...], size: Sequence[int]) -> Any:
    out = lib.norch_pool_max_backward(x, index, window, size)
    return hang(out, d.MaxPoolSpread, x, index=index)


def _pool_avg(x: Any, window: Averaging) -> Any:
    return hang(lib.norch_pool_avg(x, *window), d.AvgPool, x, window=window, size=x.shape[-2:])


def _pool_avg_spread(x: Any, window: Averaging, size: Sequence[int]) -> Any:
    return hang(lib.norch_pool_avg_backward(x, *window, size), d.AvgPoolSpread, x, window=window)


def _window(
    name: str, axes: int, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """x with two axes to pool over, the window as C takes it, and the sizes of the result."""
    shape = tuple(tensor_of(x, name).shape)
    if len(shape) not in (axes + 1, axes + 2):
        raise ShapeError(f"{name}: expected {axes + 1} (unbatched) or {axes + 2} dimensions, got shape {shape}")
    kernel = per_axis(kernel_size, axes, name, "kernel_size")
    step = kernel if stride is None or stride == () or stride == [] else per_axis(stride, axes, name, "stride")
    before, spread = per_axis(padding, axes, name, "padding"), per_axis(dilation, axes, name, "dilation")
    result = []
    for i, size in enumerate(shape[-axes:]):
        if kernel[i] < 1 or step[i] < 1 or spread[i] < 1:
            raise ArgumentError(
                f"{name}: kernel_size {kernel[i]}, stride {step[i]} and dilation {spread[i]} start at 1"
            )
        room = size + 2 * before[i] - spread[i] * (kernel[i] - 1) - 1
        count = (room + (step[i] - 1 if ceil_mode else 0)) // step[i] + 1
        if ceil_mode and (count - 1) * step[i] >= size + before[i]:
            count -= 1  # a window must not begin in the padding after x
        if count < 1:
            raise ShapeError(
                f"{name}: a kernel of size {kernel[i]} does not fit size {size} with padding {before[i]}: shape {shape}"
            )
        result.append(count)
    if axes == 1:
        x = x.unsqueeze(-2)
        kernel, step, before, spread = (1, *kernel), (1, *step), (0, *before), (1, *spread)
        result = [1, *result]
    return x, (*kernel, *step, *before, *spread, *result), tuple(result)


def largest(
    name: str,
    axes: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    x, window, result = _window(name, axes, x, kernel_size, stride, padding, dilation, ceil_mode)
    out, index = places_of_largest(x, window, result)
    if axes == 1:
        out, index = out.squeeze(-2), index.squeeze(-2)
    return (out, index) if return_indices else out


@rounded_once
def max_pool1d(
    input: Any,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window along the last axis of input (N, C, L) or (C, L); as max_pool2d."""
    return largest("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@rounded_once
def max_pool2d(
    input: Any,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window of input (N, C, H, W) or (C, H, W); NaN wins. stride: kernel_size unless given.

    padding, at most half of kernel_size, never wins; ceil_mode rounds the size of the result up. return_indices adds
    the places of the maxima in their planes (int64). The gradient goes to the maximum, of equal ones the first.

    >>> norch.nn.functional.max_pool2d(norch.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2)
    tensor([[[4.]]])
    """
    return largest("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def average(
    name: str,
    axes: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count: bool,
    divisor: Any,
) -> Any:
    if divisor is not None and divisor == 0:
        raise ArgumentError(f"{name}: divisor_override must not be zero")
    x, window, _ = _window(name, axes, x, kernel_size, stride, padding, 1, ceil_mode)
    out = _pool_avg(x, (window, bool(count), float(divisor or 0)))
    return out.squeeze(-2) if axes == 1 else out


@rounded_once
def avg_pool1d(
    input: Any,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window along the last axis of input (N, C, L) or (C, L); as avg_pool2d."""
    return average("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@rounded_once
def avg_pool2d(
    input: Any,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window of input (N, C, H, W) or (C, H, W). stride: kernel_size unless given.

    The zeros of the padding count as elements unless count_include_pad is False; divisor_override divides instead.

    >>> norch.nn.functional.avg_pool2d(norch.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2)
    tensor([[[2.5000]]])
    """
    return average("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


class PoolMethods(Handle):
    """The sums that derivatives of pooling are written in."""

    __slots__ = ()

    _pool_max_spread, _pool_avg, _pool_avg_spread = _pool_max_spread, _pool_avg, _pool_avg_spread
