"""Adaptive pooling: the caller chooses the output size, and windows divide each axis into that number of parts."""

from __future__ import annotations

from collections.abc import Sequence

from ..._binding.library import lib
from ..._package.typing import Any, Tensor
from ...errors import ShapeError
from .._arguments import named_function, optional_results
from .._entry import composed
from .._operand import tensor_of
from ..conv import per_axis
from ..pool import Window, avg_over, avg_over_volumes, in_volume, max_of_volumes, max_with_indices


def _adaptive(name: str, axes: int, x: Tensor, output_size: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of x, and the sizes of the last axes of the result."""
    shape = lib.norch_shape(tensor_of(x, name))
    if len(shape) not in (axes + 1, axes + 2) or 0 in shape[-axes:]:
        raise ShapeError(f"{name}: expected {axes + 1} (unbatched) or {axes + 2} dimensions, none empty, got {shape}")
    if isinstance(output_size, (tuple, list)) and None in output_size:
        output_size = [
            size if wanted is None else wanted for wanted, size in zip(output_size, shape[-axes:], strict=False)
        ]
    return shape, shape[-axes:] if output_size is None else per_axis(output_size, axes, name, "output_size")


def _windows(wanted: Sequence[int]) -> Window:
    """As C takes them: strides of 0 divide the last two axes into so many parts."""
    return (1, 1, 0, 0, 0, 0, 1, 1, *wanted)


def _adaptive_avg(name: str, axes: int, x: Tensor, output_size: Any) -> Tensor:
    shape, wanted = _adaptive(name, axes, x, output_size)
    if wanted == (1,) * axes:
        return x.mean(tuple(range(-axes, 0)), True)
    if 0 in (*shape[:-axes], *wanted):
        return x.narrow(-1, 0, 0).reshape(*shape[:-axes], *wanted)
    if axes == 1:  # of each row of planes
        wanted = (shape[-2], *wanted)
    planes = (_windows(wanted[-2:]), False, 0.0)
    if axes < 3:
        return avg_over(x, planes)
    return avg_over_volumes(x, planes, (_windows((wanted[0], wanted[1] * wanted[2])), False, 0.0))


@composed
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """The means of windows that divide the last axis of input (N, C, L) or (C, L) into output_size parts.

    >>> norch.nn.functional.adaptive_avg_pool1d(norch.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[2., 6.]])
    """
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


@composed
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that divide the last two axes of input (N, C, H, W) or (C, H, W) into output_size parts;
    None keeps a size. Window i of n along an axis of size L goes from i L / n, rounded down, to (i + 1) L / n, rounded
    up.

    >>> norch.nn.functional.adaptive_avg_pool2d(norch.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 1)
    tensor([[[2.5000]]])
    """
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


@composed(autocast="float32 -")
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that divide the last three axes of input (N, C, D, H, W) or (C, D, H, W), as in
    adaptive_avg_pool2d().

    >>> norch.nn.functional.adaptive_avg_pool3d(norch.ones(3, 8, 8, 8), 2).shape
    norch.Size([3, 2, 2, 2])
    """
    return _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)


def _adaptive_max(name: str, axes: int, x: Tensor, output_size: Any, return_indices: bool) -> Any:
    _, wanted = _adaptive(name, axes, x, output_size)
    if 0 in wanted:
        raise ShapeError(f"{name}: output_size {wanted} has an empty axis")
    if axes == 1:
        out, index = max_with_indices(x.unsqueeze(-2), _windows((1, *wanted)), (1, *wanted))
        return (out.squeeze(-2), index.squeeze(-2).long()) if return_indices else out.squeeze(-2)
    planes = _windows(wanted[-2:])
    if axes == 3:
        columns = wanted[1] * wanted[2]
        out, place, layer = max_of_volumes(x, planes, _windows((wanted[0], columns)), wanted)
        return (out, in_volume(layer, place, x)) if return_indices else out
    out, index = max_with_indices(x, planes, wanted)
    return (out, index.long()) if return_indices else out


def _adaptive_max_pool(axes: int, shapes: str) -> Any:
    """adaptive_max_pool1d(), adaptive_max_pool2d() or adaptive_max_pool3d()."""
    name = f"adaptive_max_pool{axes}d"

    @optional_results("return_indices")
    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return _adaptive_max(name, axes, input, output_size, return_indices)

    sizes, wanted = ", ".join("8" * axes), ", ".join("2" * axes)
    about = f"""input {shapes}: the largest of windows as those of adaptive_avg_pool{axes}d.

    return_indices adds their indices in the plane (int64).

    >>> norch.nn.functional.adaptive_max_pool{axes}d(norch.ones(3, {sizes}), 2).shape
    norch.Size([3, {wanted}])
    """
    return composed(autocast="float32 -" if axes == 3 else "")(named_function(function, name, about))


adaptive_max_pool1d = _adaptive_max_pool(1, "(N, C, L) or (C, L)")
adaptive_max_pool2d = _adaptive_max_pool(2, "(N, C, H, W) or (C, H, W)")
adaptive_max_pool3d = _adaptive_max_pool(3, "(N, C, D, H, W) or (C, D, H, W)")
