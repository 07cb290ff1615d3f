"""Images read at places of their own: affine_grid() makes the places, grid_sample() reads, composed of indexing
(Jaderberg et al., "Spatial Transformer Networks", 2015, section 3).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from .._lib import int64 as int_
from ..dtype import float32, float64, int64
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ops._operand import rename_errors, tensor_of
from ..ops.composed.grid import meshgrid
from ..ops.copy import cat, stack
from ..ops.create import linspace, ones, ones_like
from ..ops.pointwise import where
from ..tensor import Tensor

_MODES, _PADDINGS = ("bilinear", "nearest"), ("zeros", "border", "reflection")


@rename_errors
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places theta (x, y, 1) of the pixels (x, y) of images of size (N, C, H, W), from theta (N, 2, 3): (N, H, W,
    2), for grid_sample(). Of size (N, C, D, H, W) and theta (N, 3, 4): (N, D, H, W, 3).

    x and y go from -1 to 1: between the centres of the outer pixels with align_corners, else between their edges.

    >>> identity = norch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> norch.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    sizes = tuple(int_(m, "affine_grid: size") for m in size)
    n, lengths, axes = sizes[:1], sizes[2:], len(sizes) - 2
    if tuple(tensor_of(theta, "affine_grid").shape) != (*n, axes, axes + 1) or axes not in (2, 3) or min(sizes) < 1:
        raise ShapeError(f"affine_grid: theta of shape {tuple(theta.shape)} for images of size {sizes}")
    if not theta.is_floating_point():
        raise DTypeError(f"affine_grid: expected floats, got {theta.dtype}")
    like: Any = {"dtype": theta.dtype, "device": theta.device}
    ends = [0.0 if m == 1 else 1.0 if align_corners else (m - 1) / m for m in lengths]
    lines = [linspace(-end, end, m, **like) for end, m in zip(ends, lengths, strict=True)]
    places = stack([*reversed(meshgrid(*lines, indexing="ij")), ones(*lengths, **like)], -1)
    return (places.reshape(-1, axes + 1) @ theta.mT).reshape(*n, *lengths, axes)


def _reflected(at: Tensor, low: float, high: float) -> Tensor:
    """Places mirrored at low and high, as often as it takes to come between."""
    span = high - low
    return low + span - ((at - low) % (2 * span) - span).abs() if span > 0 else at * 0.0


@rename_errors
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """input (N, C, H, W) at the places grid (N, H', W', 2), x before y, which go from -1 to 1 over the image: (N, C,
    H', W'). With a third axis input (N, C, D, H, W) and grid (N, D', H', W', 3).

    mode: "bilinear", between the nearest pixels, or "nearest". padding_mode, what lies beyond the image: "zeros",
    "border", the nearest pixel of it, or "reflection", the image mirrored. align_corners as in affine_grid(). A place
    that is not finite gives NaN with "bilinear" and "zeros" (PyTorch: not with three axes), with "nearest" and "zeros"
    0, else the edge. Both must be of one dtype of floats: DTypeError.

    >>> image = norch.tensor([[[[1.0, 3.0]]]])
    >>> norch.nn.functional.grid_sample(image, norch.tensor([[[[0.0, 0.0], [-0.5, 0.0]]]]), align_corners=False)
    tensor([[[[2., 1.]]]])
    """
    x, places = tensor_of(input, "grid_sample"), tensor_of(grid, "grid_sample")
    axes = x.ndim - 2
    if axes not in (2, 3) or places.ndim != x.ndim or places.shape[0] != x.shape[0] or places.shape[-1] != axes:
        shapes = f"{tuple(x.shape)} and a grid of shape {tuple(places.shape)}"
        raise ShapeError(f"grid_sample: expected (N, C, H, W) and (N, H', W', 2), or one axis more, got {shapes}")
    if mode not in _MODES:
        raise NotImplementedError(f"grid_sample: mode is one of {_MODES}, not {mode!r}")
    if padding_mode not in _PADDINGS:
        raise ArgumentError(f"grid_sample: padding_mode is one of {_PADDINGS}, not {padding_mode!r}")
    if not (x.is_floating_point() and places.is_floating_point()):
        raise DTypeError(f"grid_sample: expected floats, got {x.dtype} and {places.dtype}")
    if x.dtype is not places.dtype:
        raise DTypeError(f"grid_sample: the grid must be of the input's {x.dtype}, not of {places.dtype}")
    sizes = tuple(x.shape[2:])
    if min(sizes) < 1:
        raise ShapeError(f"grid_sample: there is nothing to read in shape {tuple(x.shape)}")
    kept = x.dtype
    x = x if kept in (float32, float64) else x.float()
    along = []  # by axis, the indices that are read, as steps in the flat image, and their weights
    beyond = math.prod(sizes)  # the index of a pixel behind the last, of 0: it hides no weight of NaN
    for axis, (size, place) in enumerate(zip(sizes, reversed(places.to(x.dtype).unbind(-1)), strict=True)):
        at = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
        if padding_mode == "reflection":
            at = _reflected(at, 0, size - 1) if align_corners else _reflected(at, -0.5, size - 0.5)
        if padding_mode != "zeros":
            at = where(at > 0, at, 0.0)  # without a slope at the edges, and a NaN is at 0, as in PyTorch
            at = where(at < size - 1, at, float(size - 1))
        low = at.detach().round() if mode == "nearest" else at.detach().floor()
        ends = [(low, ones_like(low))] if mode == "nearest" else [(low, 1 - (at - low)), (low + 1, at - low)]
        step = math.prod(sizes[axis + 1 :])
        along.append(
            [
                (where((end >= 0) & (end < size), end.to(int64).clamp(0, size - 1) * step, beyond), weight)
                for end, weight in ends
            ]
        )
    flat, out = cat([x.flatten(2), x.new_zeros(*x.shape[:2], 1)], 2), x.new_zeros(())
    for corner in itertools.product(*along):
        index = sum((index for index, _ in corner[1:]), corner[0][0]).clamp(max=beyond).flatten(1).unsqueeze(1)
        weight = math.prod((weight for _, weight in corner[1:]), start=corner[0][1]).flatten(1).unsqueeze(1)
        out = out + flat.gather(2, index.expand(-1, flat.shape[1], -1)) * weight
    return out.reshape(*x.shape[:2], *places.shape[1:-1]).to(kept)
