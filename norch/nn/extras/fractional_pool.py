"""Fractional max pooling: the maxima of windows whose positions are drawn (Graham, "Fractional Max-Pooling", 2014)."""

from __future__ import annotations

from math import prod
from typing import Any

from ...autograd.halves import widened
from ...errors import ArgumentError, ShapeError
from ...ops._entry import rename_errors
from ...ops._operand import tensor_of
from ...ops.conv import per_axis
from ...ops.copy import cat
from ...ops.create import arange
from ...ops.pool import max_pool
from ...ops.random import rand
from ...tensor import Tensor
from .._layer import Layer, options


def _starts(samples: Any, size: int, count: int, kernel: int) -> Any:
    """The first elements of count windows along an axis, a row for each plane: the last window ends with the axis."""
    last = samples.new_full((*samples.shape, 1), size - kernel)
    if count > 1:
        alpha = (size - kernel) / (count - 1)
        steps = arange(count - 1, dtype=samples.dtype, device=samples.device)
        first = ((steps + samples.unsqueeze(-1)) * alpha).trunc() - (samples.unsqueeze(-1) * alpha).trunc()
        last = cat((first, last), -1)
    return last.long()


def _of_few(name: str, x: Any, first: Any, kernel: tuple[int, ...]) -> Any:
    """The maxima, and their places, of windows whose first elements are at `first` (N, C, counts...) of their plane."""
    elements = arange(1, device=x.device)  # of a window, from its first one
    for size, window in zip(x.shape[2:], kernel, strict=True):
        elements = (elements.unsqueeze(-1) * size + arange(window, device=x.device)).flatten()
    within = first.flatten(2).unsqueeze(-1) + elements  # (N, C, windows, elements)
    values = x.flatten(2).gather(-1, within.flatten(2)).reshape(within.shape)
    row = (1, within.shape[-1])
    result, best = max_pool(name, 2, values, row, row, 0, 1, False, True)
    return result.reshape(first.shape), within.flatten(2).gather(-1, best.flatten(2)).reshape(first.shape)


def _pool(
    name: str, axes: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: bool,
    samples: Any,
) -> Any:  # fmt: skip
    shape = tuple(tensor_of(input, name).shape)
    if len(shape) not in (axes + 1, axes + 2) or 0 in shape[1:]:
        raise ShapeError(f"{name}: expected {axes + 1} (unbatched) or {axes + 2} dimensions, none empty, got {shape}")
    sizes, kernel = shape[-axes:], per_axis(kernel_size, axes, name, "kernel_size")
    if (output_size is None) is (output_ratio is None):
        raise ArgumentError(f"{name}: give output_size or output_ratio, and not both")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * axes
        if len(ratios) != axes or not all(0 < ratio < 1 for ratio in ratios):
            raise ArgumentError(f"{name}: output_ratio must be between 0 and 1, one or {axes}, got {output_ratio}")
        output_size = [int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True)]
    counts = per_axis(output_size, axes, name, "output_size")
    if any(n < 1 or k < 1 or n + k - 1 > size for n, k, size in zip(counts, kernel, sizes, strict=True)):
        raise ShapeError(f"{name}: {counts} windows of {kernel} do not fit an input of {sizes}")
    x = input if len(shape) == axes + 2 else input.unsqueeze(0)
    planes = tuple(x.shape[:2])
    if samples is None:
        samples = rand(*planes, axes, dtype=x.dtype, device=x.device)
    elif tuple(samples.shape) != (*planes, axes):
        raise ShapeError(f"{name}: _random_samples must have shape {(*planes, axes)}, got {tuple(samples.shape)}")
    wide: Any = widened(x)
    first: Any = 0  # the place of each window: that of its first element in the plane, or among all windows
    # A pass over all windows takes less time for each element with two axes than with three, whose loops are plain.
    few = prod(counts) * prod(kernel) * (8 if axes == 2 else 1) < prod(sizes)
    for axis, (size, count, window) in enumerate(zip(sizes, counts, kernel, strict=True)):
        # PyTorch reads the samples of two axes from the last one on
        starts = _starts(samples[..., axis if axes == 3 else 1 - axis], size, count, window)
        starts = starts.reshape(*planes, *[count if i == axis else 1 for i in range(axes)])
        first = first * (size if few else size - window + 1) + starts
    if few:
        result, places = _of_few(name, wide, first, kernel)
    else:  # the maxima of all windows, before the drawn ones are selected
        both = max_pool(name, axes, wide, kernel, 1, 0, 1, False, True)
        result, places = (part.flatten(2).gather(-1, first.flatten(2)).reshape(first.shape) for part in both)
    result = result.to(x.dtype)
    if len(shape) == axes + 1:
        result, places = result.squeeze(0), places.squeeze(0)
    return (result, places) if return_indices else result


@rename_errors(autocast="float32 -")
def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The maxima of output_size windows of input (N, C, H, W) or (C, H, W), whose distances are drawn for each plane
    (Graham 2014).

    kernel_size: of the windows, which may overlap. output_ratio: the size of the result over that of input, between 0
    and 1, in place of output_size; both are one number or two. return_indices: a pair, with the flat indices of the
    maxima. _random_samples: numbers in [0, 1), (N, C, 2), by which the windows are chosen. Other arguments raise
    ArgumentError, windows that do not fit ShapeError.

    >>> norch.nn.functional.fractional_max_pool2d(norch.ones(1, 1, 8, 8), 2, output_ratio=0.7).shape
    norch.Size([1, 1, 5, 5])
    """
    name = "fractional_max_pool2d"
    return _pool(name, 2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


@rename_errors(autocast="float32 -")
def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """fractional_max_pool2d() over three axes: of input (N, C, D, H, W) or (C, D, H, W), with samples (N, C, 3).

    >>> norch.nn.functional.fractional_max_pool3d(norch.ones(1, 1, 8, 8, 8), 2, output_ratio=0.7).shape
    norch.Size([1, 1, 5, 5, 5])
    """
    name = "fractional_max_pool3d"
    return _pool(name, 3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


@options
class _FractionalMaxPool(Layer):
    kernel_size: Any
    output_size: Any = None
    output_ratio: Any = None
    return_indices: bool = False
    _random_samples: Tensor | None = None
    _shown, _result = (), "Any"

    def __post_init__(self) -> None:
        if (self.output_size is None) is (self.output_ratio is None):
            raise ValueError(f"{type(self).__name__}: give output_size or output_ratio, and not both")


class FractionalMaxPool2d(_FractionalMaxPool, function=fractional_max_pool2d):
    """The maxima of windows at positions that are drawn for each plane and call: (N, C, H, W) to (N, C, H', W').

    Graham 2014; see functional.fractional_max_pool2d(). Without output_size and output_ratio, or with both, ValueError.

    >>> norch.nn.FractionalMaxPool2d(3, output_size=(4, 5))(norch.ones(2, 3, 9, 9)).shape
    norch.Size([2, 3, 4, 5])
    """


class FractionalMaxPool3d(_FractionalMaxPool, function=fractional_max_pool3d):
    """As FractionalMaxPool2d, over three axes: (N, C, D, H, W) to (N, C, D', H', W').

    >>> norch.nn.FractionalMaxPool3d(2, output_size=4)(norch.ones(1, 1, 9, 9, 9)).shape
    norch.Size([1, 1, 4, 4, 4])
    """
