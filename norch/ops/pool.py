"""Pooling (csrc/ops/pool.c), with the arguments of torch.nn.functional.

C reduces windows over the last two axes. Pooling over one axis takes windows of one row, or, for indices in rows, adds
an axis of size 1. Pooling over three reduces the last two axes first, and then the depth, with these flattened to one
axis: one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .._binding.library import lib
from .._package.typing import Tensor
from .._tensor.handle import Handle
from ..autograd.derivative import derivative
from ..autograd.differentiable import differentiable
from ..autograd.record import record
from ..dtype import int32 as index_dtype
from ..dtype import int64
from ..errors import ArgumentError, ShapeError
from ._arguments import named_function, optional_results
from ._entry import composed
from ._operand import operand, tensor_of
from .conv import per_axis, plane_sizes
from .op import OPCODES

Sizes = int | Sequence[int]
Window = tuple[int, ...]  # as C takes it: kernel, stride, padding, dilation and the sizes of the result, two of each
Averaging = tuple[Window, bool, float]  # whether padding counts, and the divisor (0: the size of the window)
_ADD, _MUL, _FLOOR = (OPCODES[name] for name in ("add", "mul", "floor_divide"))


# ---- the sums, and their derivatives --------------------------------------------------------------------------------


def max_with_indices(x: Tensor, window: Window, result: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The largest elements, and their indices in the planes of x (int32: backward keeps them)."""
    index = lib.norch_empty((*lib.norch_shape(x)[:-2], *result), index_dtype.code, (x._device_type, x._device_index))
    out = lib.norch_pool_max(x, window, index)
    return record(_MaxPool, out, (x,), (index, window)), index


_MaxPool = derivative(
    "max_pool",
    tensors=("index",),
    grad=lambda g, index, window, x_meta: _max_pool_backward(g, index, window, plane_sizes(x_meta)),
    depends_on=1,
)


@differentiable(
    tensors=("index",), grad=lambda g2, index: g2.flatten(-2).gather(-1, index.flatten(-2).long()).reshape(index.shape)
)
def _max_pool_backward(g: Tensor, index: Tensor, window: Window, size: Sequence[int]) -> Tensor:
    """Planes of a size with g added at index."""
    return lib.norch_pool_max_backward(g, index, window, size)


@differentiable(
    "avg_pool", grad=lambda g, x_meta, windows: _avg_pool_backward(g, windows, plane_sizes(x_meta)), depends_on=1
)
def avg_over(x: Tensor, windows: Averaging) -> Tensor:
    return lib.norch_pool_avg(x, *windows)


@differentiable(grad=lambda g2, windows: avg_over(g2, windows))
def _avg_pool_backward(g: Tensor, windows: Averaging, size: Sequence[int]) -> Tensor:
    """Planes of a size in which each window gets its share of g."""
    return lib.norch_pool_avg_backward(g, *windows, size)


def _volume(columns: Tensor, result: Sequence[int]) -> Tensor:
    """(..., D, H W) as (..., D, H, W), the sizes `result`."""
    return lib.norch_view(columns, (*lib.norch_shape(columns)[:-2], *result))


def _columns(volume: Tensor) -> Tensor:
    """(..., D, H, W) as (..., D, H W)."""
    *lead, high, wide = lib.norch_shape(volume)
    return lib.norch_reshape(volume, (*lead, high * wide))


@differentiable(
    "avg_pool3d",
    grad=lambda g, x_meta, planes, depth: _avg_volumes_backward(g, planes, depth, lib.norch_shape(x_meta)[-3:]),
    depends_on=1,
)
def avg_over_volumes(x: Tensor, planes: Averaging, depth: Averaging) -> Tensor:
    """The windows `planes` of the last two axes, and of the results the windows `depth` of the axis before them."""
    out = lib.norch_pool_avg(x, *planes)
    high, wide = plane_sizes(out)
    out = lib.norch_pool_avg(_columns(out), *depth)
    return _volume(out, (lib.norch_shape(out)[-2], high, wide))


@differentiable(grad=lambda g2, planes, depth: avg_over_volumes(g2, planes, depth))
def _avg_volumes_backward(g: Tensor, planes: Averaging, depth: Averaging, size: Sequence[int]) -> Tensor:
    """Volumes of a size in which each window gets its share of g."""
    high, wide = plane_sizes(g)
    layers = lib.norch_pool_avg_backward(_columns(g), *depth, (size[0], high * wide))
    return lib.norch_pool_avg_backward(_volume(layers, (size[0], high, wide)), *planes, size[1:])


def max_of_volumes(x: Tensor, planes: Window, depth: Window, result: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """The largest elements of windows, as in avg_over_volumes(). Also the indices of the maxima of the last two axes in
    their planes, and of the maxima of the depth in the flattened results.
    """
    device = x._device_type, x._device_index
    *lead, layers = lib.norch_shape(x)[:-2]
    place = lib.norch_empty((*lead, layers, *result[1:]), index_dtype.code, device)
    layer = lib.norch_empty((*lead, result[0], result[1] * result[2]), index_dtype.code, device)
    best = lib.norch_pool_max(x, planes, place)
    out = _volume(lib.norch_pool_max(_columns(best), depth, layer), result)
    return record(_MaxOfVolumes, out, (x,), (place, layer, planes, depth)), place, layer


_MaxOfVolumes = derivative(
    "max_pool3d",
    tensors=("place", "layer"),
    grad=lambda g, x_meta, place, layer, planes, depth: _max_of_volumes_backward(
        g, place, layer, planes, depth, plane_sizes(x_meta)
    ),
)


@differentiable(
    tensors=("place", "layer"),
    grad=lambda g2, place, layer: (
        g2.flatten(-2)
        .gather(-1, place.flatten(-2).long())
        .flatten(-2)
        .gather(-1, layer.flatten(-2).long())
        .reshape(*layer.shape[:-1], *place.shape[-2:])
    ),
)
def _max_of_volumes_backward(
    g: Tensor, place: Tensor, layer: Tensor, planes: Window, depth: Window, size: Sequence[int]
) -> Tensor:
    """Volumes with planes of a size, and g added where its maxima were."""
    *_, layers, high, wide = lib.norch_shape(place)
    best = lib.norch_pool_max_backward(_columns(g), layer, depth, (layers, high * wide))
    return lib.norch_pool_max_backward(_volume(best, (layers, high, wide)), place, planes, size)


# ---- arguments, as PyTorch takes them -------------------------------------------------------------------------------


ONE_CHUNK = 1 << 14  # elements that one thread pools


def _window(
    name: str,
    axes: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    by_rows: bool = True,
) -> tuple[Any, Window, tuple[int, ...]]:
    """x with two axes to pool over, the window as C takes it, and the sizes of the result. For pooling over one axis,
    by_rows takes the axis as the rows of planes; otherwise it becomes planes of one row.
    """
    shape = lib.norch_shape(tensor_of(x, name))
    can_cache = type(kernel_size) is type(padding) is type(dilation) is int and type(ceil_mode) is bool
    planned = _planned if can_cache and (stride is None or type(stride) is int) else _planned.__wrapped__
    window, result = planned(name, axes, shape, kernel_size, stride, padding, dilation, ceil_mode, by_rows)
    return x if axes != 1 or by_rows else x.unsqueeze(-2), window, result


@lru_cache(256)  # networks ask for the same few
def _planned(
    name: str,
    axes: int,
    shape: tuple[int, ...],
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    by_rows: bool,
) -> tuple[Window, tuple[int, ...]]:
    """The window and the sizes of the result for an x of this shape."""
    if len(shape) not in (axes + 1, axes + 2):
        raise ShapeError(f"{name}: expected {axes + 1} (unbatched) or {axes + 2} dimensions, got shape {shape}")
    kernel = per_axis(kernel_size, axes, name, "kernel_size")
    step = kernel if stride is None or stride == () or stride == [] else per_axis(stride, axes, name, "stride")
    before, dilations = per_axis(padding, axes, name, "padding"), per_axis(dilation, axes, name, "dilation")
    result = []
    for i, size in enumerate(shape[-axes:]):
        if kernel[i] < 1 or step[i] < 1 or dilations[i] < 1:
            raise ArgumentError(
                f"{name}: kernel_size {kernel[i]}, stride {step[i]} and dilation {dilations[i]} start at 1"
            )
        span = size + 2 * before[i] - dilations[i] * (kernel[i] - 1) - 1
        count = (span + (step[i] - 1 if ceil_mode else 0)) // step[i] + 1
        if ceil_mode and (count - 1) * step[i] >= size + before[i]:
            count -= 1  # a window must not begin in the padding after x
        if count < 1 or not size:
            raise ShapeError(
                f"{name}: a kernel of size {kernel[i]} does not fit size {size} with padding {before[i]}: shape {shape}"
            )
        result.append(count)
    if axes == 1:
        kernel, step, before, dilations = (1, *kernel), (1, *step), (0, *before), (1, *dilations)
        result = [shape[-2] if by_rows else 1, *result]
    return (*kernel, *step, *before, *dilations, *result), tuple(result)


def _by_planes(window: Window) -> tuple[Window, Window]:
    """The window of the last two of three axes, and the window of the depth, for which the results of the first are one
    axis.
    """
    k0, k1, k2, s0, s1, s2, p0, p1, p2, d0, d1, d2, n0, n1, n2 = window
    return (k1, k2, s1, s2, p1, p2, d1, d2, n1, n2), (k0, 1, s0, 1, p0, 0, d0, 1, n0, n1 * n2)


def in_volume(layer: Tensor, place: Tensor, x: Tensor) -> Tensor:
    """The indices of maxima in the volumes of x, from the indices that max_of_volumes() returns."""
    *lead, layers, high, wide = lib.norch_shape(place)
    deep = lib.norch_shape(layer)[-2]
    at = lib.norch_reshape(lib.norch_cast(layer, int64.code), (*lead, deep * high * wide))
    in_plane = lib.norch_gather(lib.norch_reshape(place, (*lead, layers * high * wide)), len(lead), at)
    size, other = plane_sizes(x)
    before = lib.norch_binary(_MUL, lib.norch_binary(_FLOOR, at, operand(high * wide)), operand(size * other))
    return lib.norch_reshape(lib.norch_binary(_ADD, before, in_plane), (*lead, deep, high, wide))


def max_pool(
    name: str,
    axes: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    if isinstance(x, Handle) and x.dtype.kind in "iu":  # whose elements float64 holds, up to 2**53
        pooled = max_pool(name, axes, x.double(), kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        return (pooled[0].to(x.dtype), pooled[1]) if return_indices else pooled.to(x.dtype)
    by_rows = not return_indices and isinstance(x, Handle) and x._numel <= ONE_CHUNK
    x, window, result = _window(name, axes, x, kernel_size, stride, padding, dilation, ceil_mode, by_rows)
    if axes == 3:
        planes, depth = _by_planes(window)
        out, place, layer = max_of_volumes(x, planes, depth, result)
        return (out, in_volume(layer, place, x)) if return_indices else out
    out, index = max_with_indices(x, window, result)
    if axes == 1 and not by_rows:
        out, index = out.squeeze(-2), index.squeeze(-2)
    return (out, index.long()) if return_indices else out


def _max_pool(axes: int, about: str) -> Any:
    """max_pool1d(), max_pool2d() or max_pool3d()."""
    name = f"max_pool{axes}d"

    @optional_results("return_indices")
    def function(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return max_pool(name, axes, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    return composed(autocast="float32 -" if axes == 3 else "")(named_function(function, name, about))


max_pool1d = _max_pool(
    1,
    """The largest element of each window along the last axis of input (N, C, L) or (C, L). See max_pool2d().

    >>> norch.nn.functional.max_pool1d(norch.tensor([[1.0, 2.0, 4.0, 3.0]]), 2)
    tensor([[2., 4.]])
    """,
)
max_pool2d = _max_pool(
    2,
    """The largest element of each window of input (N, C, H, W) or (C, H, W); NaN if the window has a NaN.

    stride is kernel_size by default. Elements of the padding, at most half of kernel_size, are never the largest.
    ceil_mode rounds the size of the result up. return_indices adds the indices of the maxima in their planes, as int64.
    The gradient goes to the maximum, and to the first one of equal maxima.

    >>> norch.nn.functional.max_pool2d(norch.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2)
    tensor([[[4.]]])
    """,
)
max_pool3d = _max_pool(
    3,
    """The largest element of each window of input (N, C, D, H, W) or (C, D, H, W). See max_pool2d(); indices are those
    in volumes.

    >>> norch.nn.functional.max_pool3d(norch.ones(1, 4, 6, 8), 2).shape
    norch.Size([1, 2, 3, 4])
    """,
)


def avg_pool(
    name: str,
    axes: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count: bool,
    divisor: Any,
) -> Tensor:
    if divisor is not None and divisor == 0:
        raise ArgumentError(f"{name}: divisor_override must not be zero")
    x, window, _ = _window(name, axes, x, kernel_size, stride, padding, 1, ceil_mode)
    if axes == 3:
        planes, depth = _by_planes(window)
        of_depth = (depth, bool(count), 1.0 if divisor else 0.0)
        return avg_over_volumes(x, (planes, bool(count), float(divisor or 0)), of_depth)
    return avg_over(x, (window, bool(count), float(divisor or 0)))


@composed
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window along the last axis of input (N, C, L) or (C, L). See avg_pool2d().

    >>> norch.nn.functional.avg_pool1d(norch.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[2., 6.]])
    """
    return avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def _avg_pool_of_planes(axes: int, about: str) -> Any:
    """avg_pool2d() or avg_pool3d()."""
    name = f"avg_pool{axes}d"

    def function(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        return avg_pool(name, axes, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    return composed(autocast="float32 -" if axes == 3 else "")(named_function(function, name, about))


avg_pool2d = _avg_pool_of_planes(
    2,
    """The mean of each window of input (N, C, H, W) or (C, H, W).

    stride is kernel_size by default. The zeros of the padding count as elements unless count_include_pad is False.
    divisor_override replaces the number of elements.

    >>> norch.nn.functional.avg_pool2d(norch.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2)
    tensor([[[2.5000]]])
    """,
)
avg_pool3d = _avg_pool_of_planes(
    3,
    """The mean of each window of input (N, C, D, H, W) or (C, D, H, W). See avg_pool2d().

    >>> norch.nn.functional.avg_pool3d(norch.ones(1, 4, 6, 8), 2).shape
    norch.Size([1, 2, 3, 4])
    """,
)
