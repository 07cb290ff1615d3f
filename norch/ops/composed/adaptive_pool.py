"""Adaptive pooling: the output size is given, and windows divide each axis into so many parts."""

from __future__ import annotations

from collections.abc import Sequence

from ..._package.typing import Any, Tensor
from ...errors import ShapeError
from .._arguments import named_function, optional_results
from .._halves import composed
from .._operand import tensor_of
from ..conv import per_axis
from ..copy import cat
from ..pool import avg_pool, in_volume, max_pool, max_with_indices
from ..view import connect


def _adaptive(name: str, axes: int, x: Tensor, output_size: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of the last axes of x, and of the result."""
    shape = tuple(tensor_of(x, name).shape)
    if len(shape) not in (axes + 1, axes + 2) or 0 in shape[-axes:]:
        raise ShapeError(f"{name}: expected {axes + 1} (unbatched) or {axes + 2} dimensions, none empty, got {shape}")
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * axes
    wanted = tuple(size if one is None else one for one, size in zip(given, shape[-axes:], strict=False))
    return shape[-axes:], per_axis(wanted, axes, name, "output_size")


def _parts(size: int, count: int) -> list[tuple[int, int, int]]:
    """Begin and length of each window, and how many in a row are the same: they cover the axis and may overlap.

    However large count is, these are at most two for each element.
    """
    parts, i = [], 0
    while i < count:
        begin, end = i * size // count, -(-(i + 1) * size // count)
        beyond = min(-(-(begin + 1) * count // size), end * count // size)  # the first window with another begin or end
        parts.append((begin, end - begin, beyond - i))
        i = beyond
    return parts


def _repeated(x: Tensor, axis: int, times: int) -> Tensor:
    """x, of size 1 along axis, seen so many times."""
    if times == 1:
        return x
    sizes = list(x.shape)
    sizes[axis] = times
    return x.expand(sizes)


def _adaptive_avg(name: str, axes: int, x: Tensor, output_size: Any) -> Tensor:
    sizes, wanted = _adaptive(name, axes, x, output_size)
    if set(wanted) == {1}:
        return x.mean(tuple(range(-axes, 0)), True)
    if all(count and size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
        kernel = [size // count for size, count in zip(sizes, wanted, strict=True)]
        return avg_pool(name, axes, x, kernel, kernel, 0, False, True, None)
    x = connect(x)
    for axis, size, count in zip(range(-axes, 0), sizes, wanted, strict=True):
        means = [
            _repeated(x.narrow(axis, begin, length).mean(axis, True), axis, times)
            for begin, length, times in _parts(size, count)
        ]
        x = cat(means, axis) if means else x.narrow(axis, 0, 0)
    return x


@composed
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """input (N, C, L) or (C, L): means of windows that divide the last axis into output_size parts."""
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


@composed
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """input (N, C, H, W) or (C, H, W): means of windows that divide the last two axes; None keeps a size.

    Window i of n along an axis of size L reaches from i L / n, rounded down, to (i + 1) L / n, rounded up.

    >>> norch.nn.functional.adaptive_avg_pool2d(norch.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 1)
    tensor([[[2.5000]]])
    """
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


@composed
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """input (N, C, D, H, W) or (C, D, H, W): means of windows as those of adaptive_avg_pool2d."""
    return _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)


def _adaptive_max(name: str, axes: int, x: Tensor, output_size: Any, return_indices: bool) -> Any:
    sizes, wanted = _adaptive(name, axes, x, output_size)
    if all(count and size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
        kernel = [size // count for size, count in zip(sizes, wanted, strict=True)]
        return max_pool(name, axes, x, kernel, kernel, 0, 1, False, return_indices)
    if 0 in wanted:
        raise ShapeError(f"{name}: output_size {wanted} has an empty axis")
    if axes == 1:
        out, index = (one.squeeze(-2) for one in _largest(x.unsqueeze(-2), (1, *sizes), (1, *wanted)))
    elif axes == 2:
        out, index = _largest(x, sizes, wanted)
    else:
        best, place = _largest(x, sizes[1:], wanted[1:])
        columns = best.flatten(-2).mT.unsqueeze(-2)
        out, layer = (one.squeeze(-2).mT for one in _largest(columns, (1, sizes[0]), (1, wanted[0])))
        out, index = out.unflatten(-1, wanted[1:]).contiguous(), in_volume(layer, place, x)
    return (out, index) if return_indices else out


def _largest(planes: Any, sizes: Sequence[int], wanted: Sequence[int]) -> tuple[Any, Any]:
    """The maxima of windows that divide the last two axes into so many parts, and their indices."""
    (height, width), (rows, columns) = sizes, wanted
    outs, indices = [], []
    across = _parts(width, columns)
    for top, high, down in _parts(height, rows):
        found = []
        for left, wide, times in across:
            part = planes.narrow(-2, top, high).narrow(-1, left, wide)
            best, index = max_with_indices(part, (high, wide, high, wide, 0, 0, 1, 1, 1, 1), (1, 1))
            index = index.long()
            position = (index // wide + top) * width + index % wide + left
            found.append((_repeated(best, -1, times), _repeated(position, -1, times)))
        outs.append(_repeated(cat([best for best, _ in found], -1), -2, down))
        indices.append(_repeated(cat([position for _, position in found], -1), -2, down))
    return cat(outs, -2), cat(indices, -2)


def _adaptive_max_pool(axes: int, shapes: str) -> Any:
    """adaptive_max_pool1d(), adaptive_max_pool2d() or adaptive_max_pool3d()."""
    name = f"adaptive_max_pool{axes}d"

    @optional_results("return_indices")
    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return _adaptive_max(name, axes, input, output_size, return_indices)

    about = f"input {shapes}: the largest of windows as those of adaptive_avg_pool{axes}d."
    return composed(named_function(function, name, about))


adaptive_max_pool1d = _adaptive_max_pool(1, "(N, C, L) or (C, L)")
adaptive_max_pool2d = _adaptive_max_pool(2, "(N, C, H, W) or (C, H, W)")
adaptive_max_pool3d = _adaptive_max_pool(3, "(N, C, D, H, W) or (C, D, H, W)")
