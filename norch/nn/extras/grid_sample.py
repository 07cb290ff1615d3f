"""affine_grid() and grid_sample(): images sampled at given coordinates (csrc/ops/sample.c; Jaderberg et al., "Spatial
Transformer Networks", 2015, section 3).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ..._binding.library import lib
from ..._binding.numbers import int64 as int_
from ...autograd.differentiable import differentiable
from ...autograd.formula import formula_gradients
from ...autograd.grad_mode import mode as grad_mode
from ...dtype import float32, float64, int64
from ...errors import DTypeError, ShapeError, one_of
from ...ops._entry import composed
from ...ops._operand import tensor_of
from ...ops.composed.grid import meshgrid
from ...ops.copy import cat, stack
from ...ops.create import empty, linspace, ones
from ...ops.pointwise import where
from ...ops.resample import IN_PAGES
from ...tensor import Tensor
from ..functional._vision import cubic_weights

_MODES = ("bilinear", "nearest", "bicubic")  # by number, as in norch_families.h
_PADDINGS = ("zeros", "border", "reflection")


@composed
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid theta @ (x, y, 1) of the pixels (x, y) of images of size (N, C, H, W), with theta (N, 2, 3), for
    grid_sample(): (N, H, W, 2). For size (N, C, D, H, W) and theta (N, 3, 4): (N, D, H, W, 3).

    x and y range over [-1, 1]: from centre to centre of the outer pixels with align_corners, else from edge to edge.
    ShapeError for other shapes, DTypeError unless theta is of floats.

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
    empty(*sizes[:1], *lengths, axes + 1, **like)  # fails before any work if memory is short
    ends = [0.0 if m == 1 else 1.0 if align_corners else (m - 1) / m for m in lengths]
    lines = [linspace(-end, end, m, **like) for end, m in zip(ends, lengths, strict=True)]
    points = stack([*reversed(meshgrid(*lines, indexing="ij")), ones(*lengths, **like)], -1)
    return (points.reshape(-1, axes + 1) @ theta.mT).reshape(*n, *lengths, axes)


def _reflect(x: Tensor, low: float, high: float) -> Tensor:
    """Coordinates reflected at low and high until they are between them."""
    span = high - low
    return low + span - ((x - low) % (2 * span) - span).abs() if span > 0 else x * 0.0


def _one(x: Tensor) -> Tensor:
    """1 for every element, NaN too, with the gradient 0."""
    sign = x.sign()
    return sign - sign.detach() + 1


@composed(autocast="float32 widest")
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """input (N, C, H, W) sampled at the coordinates grid (N, H', W', 2), with (x, y) in [-1, 1] over the image: (N, C,
    H', W'). In three dimensions input is (N, C, D, H, W) and grid (N, D', H', W', 3). DTypeError unless both have the
    same float dtype.

    mode is "bilinear" (linear between pixels), "nearest" or, for images, "bicubic" (Keys 1981, a = -0.75). padding_mode
    chooses the values outside the image: "zeros", "border" (the nearest pixel) or "reflection". align_corners acts as
    in affine_grid(). With "nearest" the gradient of the grid is 0. A coordinate that is not finite gives NaN for
    "bilinear" with "zeros" (in PyTorch not in three dimensions), 0 for "nearest" with "zeros", and otherwise a value of
    the edge.

    >>> image = norch.tensor([[[[1.0, 3.0]]]])
    >>> norch.nn.functional.grid_sample(image, norch.tensor([[[[0.0, 0.0], [-0.5, 0.0]]]]), align_corners=False)
    tensor([[[[2., 1.]]]])
    """
    x, points = tensor_of(input, "grid_sample"), tensor_of(grid, "grid_sample")
    axes = x.ndim - 2
    if axes not in (2, 3) or points.ndim != x.ndim or points.shape[0] != x.shape[0] or points.shape[-1] != axes:
        shapes = f"{tuple(x.shape)} and a grid of shape {tuple(points.shape)}"
        raise ShapeError(f"grid_sample: expected (N, C, H, W) and (N, H', W', 2), or one axis more, got {shapes}")
    if mode not in _MODES:
        raise NotImplementedError(f"grid_sample: mode is one of {_MODES}, not {mode!r}")
    if mode == "bicubic" and axes != 2:
        raise NotImplementedError(f"grid_sample: mode 'bicubic' takes images (N, C, H, W), not {tuple(x.shape)}")
    one_of("grid_sample: padding_mode", padding_mode, _PADDINGS)
    if not (x.is_floating_point() and points.is_floating_point()):
        raise DTypeError(f"grid_sample: expected floats, got {x.dtype} and {points.dtype}")
    if x.dtype is not points.dtype:
        raise DTypeError(f"grid_sample: the grid must be of the input's {x.dtype}, not of {points.dtype}")
    sizes = tuple(x.shape[2:])
    if min(sizes) < 1:
        raise ShapeError(f"grid_sample: expected non-empty images, got shape {tuple(x.shape)}")
    dtype = x.dtype
    if dtype not in (float32, float64):
        x, points = x.float(), points.float()
    sample = _composed if x.is_cuda or IN_PAGES else _sampled
    return sample(x, points, mode, padding_mode, bool(align_corners)).to(dtype)


def _sampled_backward(
    g: Tensor,
    x: Tensor,
    points: Tensor,
    mode: str,
    padding_mode: str,
    align_corners: bool,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    how = mode, padding_mode, align_corners
    if grad_mode.enabled:
        return formula_gradients(_composed, g, (x, points), needs_input_grad, *how)
    grads = [
        lib.norch_empty(lib.norch_shape(t), t._dtype, (t._device_type, t._device_index)) if needed else None
        for t, needed in zip((x, points), needs_input_grad, strict=True)
    ]
    lib.norch_grid_sample_backward(g, x, points, *_codes(*how), *grads)
    return tuple(grads)


@differentiable("grid_sample", inputs=("x", "points"), backward=_sampled_backward)
def _sampled(x: Tensor, points: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    return lib.norch_grid_sample(x, points, *_codes(mode, padding_mode, align_corners))


def _codes(mode: str, padding_mode: str, align_corners: bool) -> tuple[int, int, bool]:
    return _MODES.index(mode), _PADDINGS.index(padding_mode), align_corners


def _composed(x: Tensor, points: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    """grid_sample() as recorded operations: for derivatives of the gradient, and for CUDA."""
    sizes = tuple(x.shape[2:])
    along = []  # for each axis, the pixels that are read: offsets in the flat image, and weights
    outside = math.prod(sizes)  # the index of an added pixel with value 0, so that a weight of NaN gives NaN
    for axis, (size, coordinate) in enumerate(zip(sizes, reversed(points.unbind(-1)), strict=True)):
        at = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2

        def inside(at: Tensor, size: int = size) -> Tensor:
            if padding_mode == "reflection":
                at = _reflect(at, 0, size - 1) if align_corners else _reflect(at, -0.5, size - 0.5)
            if padding_mode != "zeros":
                at = where(at > 0, at, 0.0)  # gradient 0 at the edges, and NaN to 0, as in PyTorch
                at = where(at < size - 1, at, float(size - 1))
            return at

        at = at if mode == "bicubic" else inside(at)  # the neighbours are moved inside instead
        low = at.detach().round() if mode == "nearest" else at.detach().floor()
        if mode == "nearest":
            ends = [(low, _one(at))]
        elif mode == "bilinear":
            ends = [(low, 1 - (at - low)), (low + 1, at - low)]
        else:
            ends = [(inside(low + k), weight) for k, weight in zip(range(-1, 3), cubic_weights(at - low), strict=True)]
        step = math.prod(sizes[axis + 1 :])
        along.append(
            [
                (where((end >= 0) & (end < size), end.to(int64).clamp(0, size - 1) * step, outside), weight)
                for end, weight in ends
            ]
        )
    flat, out = cat([x.flatten(2), x.new_zeros(*x.shape[:2], 1)], 2), x.new_zeros(())
    for corner in itertools.product(*along):
        index = sum((index for index, _ in corner[1:]), corner[0][0]).clamp(max=outside).flatten(1).unsqueeze(1)
        weight = math.prod((weight for _, weight in corner[1:]), start=corner[0][1]).flatten(1).unsqueeze(1)
        out = out + flat.gather(2, index.expand(-1, flat.shape[1], -1)) * weight
    return out.reshape(*x.shape[:2], *points.shape[1:-1])
