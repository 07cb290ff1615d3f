"""Resampling, patches and rearranged channels of images (N, C, ...), composed of indexing and views."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

from ..._binding.library import lib
from ...autograd.differentiable import differentiable
from ...dtype import check_numbers, float32, float64, int64, uint8
from ...errors import ArgumentError, DTypeError, ShapeError, stacklevel_of_user
from ...ops._checks import with_ndim
from ...ops._entry import composed, rename_errors
from ...ops._operand import tensor_of
from ...ops.composed.adaptive_pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from ...ops.composed.pad import pad
from ...ops.composed.repeat import rearranged
from ...ops.copy import stack
from ...ops.create import arange, ones_like
from ...ops.op import OPCODES
from ...ops.resample import resampled
from ...ops.values import can_cache
from ...tensor import Tensor

__all__ = [
    "channel_shuffle", "fold", "interpolate", "pixel_shuffle", "pixel_unshuffle", "unfold", "upsample",
    "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

# mode: (number of spatial axes, or None for any; whether align_corners is allowed)
_MODES: dict[str, tuple[int | None, bool]] = {
    "nearest": (None, False),
    "nearest-exact": (None, False),
    "area": (None, False),
    "linear": (1, True),
    "bilinear": (2, True),
    "bicubic": (2, True),
    "trilinear": (3, True),
}
_ADD = OPCODES["add"]
_SMOOTH = ("bilinear", "bicubic")
_OF_BYTES = ("nearest", "nearest-exact", *_SMOOTH)


def _per_axis(value: Any, count: int, quantity: str) -> tuple[Any, ...]:
    """One value for each of `count` axes."""
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,) * count
    if len(values) != count:  # rename_errors() replaces the name
        raise ArgumentError(f"interpolate: expected one {quantity} or {count}, got {value!r}")
    for one in values:
        if one is not None:
            check_numbers("interpolate", **{quantity: one})
    return values


# ---- resampling -----------------------------------------------------------------------------------------------------


@composed(autocast="- float32")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """input (N, C, ...) with its one to three spatial axes resampled to `size`, or to scale_factor times their sizes.
    Pass one of the two, as one number or one for each axis. Floats; the modes "nearest", "nearest-exact", "bilinear"
    and "bicubic" take uint8 too, rounded after each axis.

    mode is "nearest" (index rounded down), "nearest-exact" (nearest centre), "linear", "bilinear" and "trilinear" (for
    1, 2 and 3 axes), "bicubic" (2 axes; Keys 1981, a = -0.75) or "area" (means of windows). With align_corners the
    centres of the outer elements coincide, instead of their edges. With recompute_scale_factor the ratio of the sizes
    replaces scale_factor. antialias, for "bilinear" and "bicubic" (a = -0.5), computes the elements of a smaller image
    as means, as Pillow does.

    >>> norch.nn.functional.interpolate(norch.tensor([[[0.0, 2.0]]]), scale_factor=2, mode="linear")
    tensor([[[0.0000, 0.5000, 1.5000, 2.0000]]])
    """
    x = with_ndim(input, "interpolate", 3, 4, 5)
    count = x.ndim - 2
    if mode not in _MODES or _MODES[mode][0] not in (None, count):
        modes = [name for name, (axes, *_) in _MODES.items() if axes in (None, count)]
        raise NotImplementedError(f"interpolate: shape {tuple(x.shape)} takes the modes {modes}, not {mode!r}")
    if align_corners is not None and not _MODES[mode][1]:
        raise ArgumentError(f"interpolate: mode {mode!r} has no align_corners")
    if not (x.is_floating_point() or x.dtype is uint8 and mode in _OF_BYTES):
        kinds = "floats or uint8" if mode in _OF_BYTES else "floats"
        raise DTypeError(f"interpolate: expected {kinds} for mode {mode!r}, got {x.dtype}")
    if antialias and mode not in _SMOOTH:
        raise ArgumentError(f"interpolate: antialias is of the modes {_SMOOTH} over two axes, not of {mode!r}")
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: give either size or scale_factor")
    old = x.shape[2:]
    scales = _per_axis(None if recompute_scale_factor or size is not None else scale_factor, count, "scale_factor")
    if size is None:
        new = [math.floor(n * s) for n, s in zip(old, _per_axis(scale_factor, count, "scale_factor"), strict=True)]
    else:
        new = [int(n) for n in _per_axis(size, count, "size")]
    if min(new) < 1 or min(old) < 1:
        raise ArgumentError(f"interpolate: sizes must be positive, not {tuple(old)} to {tuple(new)}")
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[count - 1](x, new)
    if antialias or (x.dtype is uint8 and mode in _SMOOTH):
        from ..extras.antialias import resized  # lazy: few programs need it

        return resized(x, new, scales, mode, bool(align_corners), antialias)
    out = x if x.dtype in (float32, float64) else x.float()
    of_images = mode == "nearest" and count == 2  # for one and three axes PyTorch tests only the scale
    for dim, (n, m, scale) in enumerate(zip(old, new, scales, strict=True), 2):
        if m != n or not (of_images or mode.endswith("linear")):
            ratio = n / m if scale is None or (of_images and m == 2 * n) else 1 / scale
            out = _resample(out, dim, n, m, ratio, mode, bool(align_corners))
    return x.clone() if out is x else out.to(x.dtype)


def _resample(x: Tensor, dim: int, old: int, new: int, ratio: float, mode: str, align: bool) -> Tensor:
    """x resampled along dim from `old` to `new` elements. ratio: old elements per new element."""
    cached = new <= _SMALL and can_cache(x)
    index, weights = (_cached_sources if cached else _sources)(old, new, ratio, mode, align, x.dtype, x.device)
    return resampled(x, dim, index, weights)


def cubic_weights(t: Tensor) -> tuple[Tensor, ...]:
    """The weights of the four elements around a point at the fraction t behind the second (Keys 1981, a = -0.75)."""
    a = -0.75
    inner = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    outer = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (1 + t, 2 - t)]
    return outer[0], *inner, outer[1]


def _sources(old: int, new: int, ratio: float, mode: str, align: bool, dtype: Any, device: Any) -> tuple[Any, Any]:
    """The elements of an axis that are read for each new element, and their weights."""
    index = arange(new, dtype=dtype, device=device)
    if mode.startswith("nearest"):
        source = ((index + 0.5 if mode == "nearest-exact" else index) * ratio).floor().clamp(max=old - 1)
        source = source.to(int64).clamp(max=old - 1)  # old - 1 as a float may be rounded up
        return source.unsqueeze(0), ones_like(index).unsqueeze(0)
    source = index * ((old - 1) / (new - 1) if new > 1 else 0.0) if align else (index + 0.5) * ratio - 0.5
    source = source if mode == "bicubic" else source.clamp(min=0)
    below = source.floor()
    t = source - below
    weights = (1 - t, t) if mode != "bicubic" else cubic_weights(t)
    first = 0 if mode != "bicubic" else -1
    whole = below.clamp(-1, old).to(int64)  # floats round the places in large inputs
    places = stack([(whole + (first + k)).clamp(0, old - 1) for k in range(len(weights))])
    return places, stack(weights)


_SMALL = 1024  # sizes of results whose sources are cached
_cached_sources = functools.lru_cache(maxsize=64)(_sources)


# ---- patches --------------------------------------------------------------------------------------------------------


def _windows(name: str, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, ...]:
    """kernel, dilation, padding and stride as pairs, and the number of windows along both axes."""
    k, d = _per_axis(kernel, 2, "kernel_size"), _per_axis(dilation, 2, "dilation")
    p, s = _per_axis(padding, 2, "padding"), _per_axis(stride, 2, "stride")
    if min(*k, *d, *s) < 1 or min(p) < 0:
        raise ArgumentError(f"{name}: kernel_size {k}, dilation {d}, padding {p}, stride {s}")
    counts = tuple((n + 2 * p[i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i, n in enumerate(size))
    if min(counts) < 1:
        raise ShapeError(f"{name}: a kernel of {k} with dilation {d} and padding {p} does not fit {tuple(size)}")
    return k, d, p, s, counts


@composed
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The patches of input (N, C, H, W) or (C, H, W) that conv2d() reads, as columns: (N, C * kh * kw, patches).

    >>> norch.nn.functional.unfold(norch.arange(6.0).reshape(1, 2, 3), (2, 2))
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    x = with_ndim(input, "unfold", 3, 4)
    k, d, p, s, counts = _windows("unfold", x.shape[-2:], kernel_size, dilation, padding, stride)
    x = pad(x, (p[1], p[1], p[0], p[0])) if any(p) else x
    return _unfold(x, k, d, s, counts)


@differentiable(grad=lambda g, x_meta, k, d, s, counts: _fold(g, tuple(x_meta.shape)[-2:], k, d, (0, 0), s, counts))
def _unfold(x: Any, k: Any, d: Any, s: Any, counts: Any) -> Tensor:
    *batch, channels, _, _ = lib.norch_shape(x)
    n = len(batch) + 1
    for i in (0, 1):  # (..., H', W', kh, kw)
        size = d[i] * (k[i] - 1) + 1
        x = lib.norch_slice(lib.norch_unfold(x, n + i, size, s[i]), n + 2 + i, 0, size, d[i])
    x = lib.norch_clone(lib.norch_permute(x, (*range(n), n + 2, n + 3, n, n + 1)))
    return lib.norch_reshape(x, (*batch, channels * k[0] * k[1], counts[0] * counts[1]))


@differentiable(grad=lambda g, kernel, dilation, padding, stride: unfold(g, kernel, dilation, padding, stride))
def _fold(x: Tensor, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any, counts: Any) -> Tensor:
    batch, channels = x.shape[:-2], x.shape[-2] // (kernel[0] * kernel[1])
    parts = x.reshape(*batch, channels, *kernel, *counts)
    covered = tuple(count * k for count, k in zip(counts, kernel, strict=True))
    if kernel == stride and dilation == (1, 1) and padding == (0, 0) and size == covered:
        return parts.movedim((-2, -1), (-4, -2)).clone().reshape(*batch, channels, *size)  # no patch overlaps another
    out = x.new_zeros((*batch, channels, size[0] + 2 * padding[0], size[1] + 2 * padding[1]))
    n = len(batch) + 1
    rows, columns = (
        [(k * dilation[i], k * dilation[i] + stride[i] * (counts[i] - 1) + 1, stride[i]) for k in range(kernel[i])]
        for i in (0, 1)
    )
    for i, down in enumerate(rows):
        into, of_row = lib.norch_slice(out, n, *down), lib.norch_select(parts, n, i)
        for j, across in enumerate(columns):
            places = lib.norch_slice(into, n + 1, *across)
            lib.norch_binary_into(places, _ADD, places, lib.norch_select(of_row, n, j))
    if padding == (0, 0):
        return out
    return out[..., padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]


@composed
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The adjoint of unfold(): sums patches, input (N, C * kh * kw, patches) or without N, to images (N, C,
    *output_size).

    >>> norch.nn.functional.fold(norch.ones(4, 2), (2, 3), 2)
    tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """
    x = tensor_of(input, "fold")
    size = _per_axis(output_size, 2, "output_size")
    k, d, p, s, counts = _windows("fold", size, kernel_size, dilation, padding, stride)
    if x.ndim not in (2, 3) or x.shape[-2] % (k[0] * k[1]) or x.shape[-1] != counts[0] * counts[1]:
        wanted = f"(N, C * {k[0] * k[1]}, {counts[0] * counts[1]})"
        raise ShapeError(f"fold: expected {wanted}, got shape {tuple(x.shape)}")
    return _fold(x, size, k, d, p, s, counts)


# ---- rearranged channels --------------------------------------------------------------------------------------------


@rename_errors
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C * r^2, H, W) to (..., C, H * r, W * r): channels become blocks of pixels (Shi et al. 2016).

    ShapeError if the number of channels is not a multiple of r^2, with r = upscale_factor.

    >>> norch.nn.functional.pixel_shuffle(norch.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    shape, r = lib.norch_shape(tensor_of(input, "pixel_shuffle")), upscale_factor
    if len(shape) < 3 or r < 1 or shape[-3] % (r * r):
        raise ShapeError(
            f"pixel_shuffle: shape {shape} and factor {r}; the number of channels must be a multiple of its square"
        )
    *lead, c, h, w = shape
    n = len(lead)
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return rearranged(input, (*lead, c // (r * r), r, r, h, w), order, (*lead, c // (r * r), h * r, w * r))


@rename_errors
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H * r, W * r) to (..., C * r^2, H, W), with r = downscale_factor: the inverse of pixel_shuffle().

    >>> norch.nn.functional.pixel_unshuffle(norch.zeros(1, 4, 6), 2).shape
    norch.Size([4, 2, 3])
    """
    shape, r = lib.norch_shape(tensor_of(input, "pixel_unshuffle")), downscale_factor
    if len(shape) < 3 or r < 1 or shape[-1] % r or shape[-2] % r:
        raise ShapeError(f"pixel_unshuffle: shape {shape} and factor {r}; height and width must be multiples of it")
    *lead, c, h, w = shape
    n = len(lead)
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return rearranged(input, (*lead, c, h // r, r, w // r, r), order, (*lead, c * r * r, h // r, w // r))


@rename_errors
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Reorders the channels of (N, C, ...): channel i of group g moves to position i * groups + g (Zhang et al. 2018).

    ShapeError if C is not a multiple of groups.

    >>> norch.nn.functional.channel_shuffle(norch.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    shape = lib.norch_shape(tensor_of(input, "channel_shuffle"))
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise ShapeError(f"channel_shuffle: the channels of shape {shape} are not divisible by {groups} groups")
    split = (shape[0], groups, shape[1] // groups, *shape[2:])
    return rearranged(input, split, (0, 2, 1, *range(3, len(split))), shape)


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """interpolate() under its former name.

    >>> norch.nn.functional.upsample(norch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate() with mode "nearest".

    >>> norch.nn.functional.upsample_nearest(norch.ones(1, 1, 2, 2), scale_factor=2).shape
    norch.Size([1, 1, 4, 4])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate() with mode "bilinear" and align_corners.

    >>> norch.nn.functional.upsample_bilinear(norch.tensor([[[[0.0, 4.0]]]]), size=(1, 3))
    tensor([[[[0., 2., 4.]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"nn.functional.{name} is deprecated; use nn.functional.interpolate instead", stacklevel=stacklevel_of_user()
    )
