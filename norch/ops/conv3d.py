"""Convolutions over three axes and their adjoints, with the arguments of torch.nn.functional.

They call the three products over two axes (conv.py): the positions of the kernel along the depth become batches, and
the depth that it covers at each position becomes channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._binding.library import lib
from .._binding.numbers import int64
from ..autograd.differentiable import differentiable
from ..errors import ArgumentError, ShapeError
from .conv import channels_fit, convolution, geometry_of, transposed_convolution
from .copy import cat, padded
from .op import OPCODES
from .reduce import sum_over


class _Geometry(NamedTuple):
    """Strides, paddings and dilations of the three axes."""

    steps: Sequence[int]
    before: Sequence[int]  # zeros before and after each axis
    after: Sequence[int]
    dilations: Sequence[int]
    groups: int

    def of_planes(self) -> tuple[int, ...]:
        """The geometry of the last two axes, as C takes it."""
        return geometry_of(self.steps[1:], self.before[1:], self.after[1:], self.dilations[1:], self.groups)


# ---- the three products, and their derivatives ----------------------------------------------------------------------


def _seen(x: Any, taps: int, geometry: _Geometry) -> Any:
    """The parts of x (N, C, D, H, W) that a kernel covers which has `taps` positions along the depth: (N, D', taps C,
    H, W).
    """
    steps, before, after, dilations, groups = geometry
    batch, channels, depth, *sizes = lib.norch_shape(x)
    count = _windows(depth + before[0] + after[0], taps, steps[0], dilations[0])
    if before[0] or after[0]:
        x = padded(x, (before[0], 0, 0), (after[0], 0, 0), 0)
    apart = lib.norch_reshape(x, (batch, groups, channels // groups, lib.norch_shape(x)[2], *sizes))
    planes = lib.norch_permute(apart, (0, 3, 1, 2, 4, 5))
    begins = range(0, taps * dilations[0], dilations[0])
    parts = [lib.norch_slice(planes, 1, begin, begin + steps[0] * (count - 1) + 1, steps[0]) for begin in begins]
    return lib.norch_reshape(cat(parts, 3), (batch, count, channels * taps, *sizes))


def _windows(size: int, taps: int, step: int, dilation: int) -> int:
    """The number of windows along an axis of a padded size."""
    if taps < 1 or step < 1 or dilation < 1:
        raise ArgumentError(f"conv: kernel size {taps}, stride {step} and dilation {dilation} must be positive")
    span = dilation * (taps - 1) + 1
    if size < span:
        raise ShapeError(f"conv: a kernel that spans {span} does not fit the padded size {size}")
    return (size - span) // step + 1


def _as_batch(y: Any) -> Any:
    """(N, C, D, H, W) as (N D, C, H, W)."""
    batch, channels, depth, *sizes = lib.norch_shape(y)
    return lib.norch_reshape(lib.norch_transpose(y, 1, 2), (batch * depth, channels, *sizes))


def _as_planes(weight: Any) -> Any:
    """(O, C, KD, KH, KW) as (O, KD C, KH, KW)."""
    fan_out, fan_in, taps, *kernel = lib.norch_shape(weight)
    return lib.norch_reshape(lib.norch_transpose(weight, 1, 2), (fan_out, taps * fan_in, *kernel))


@differentiable(
    grad_x=lambda g, weight, x_meta, geometry: _conv_input(g, weight, geometry, lib.norch_shape(x_meta)[2:]),
    grad_weight=lambda g, x, weight_meta, geometry: _conv_weight(x, g, geometry, lib.norch_shape(weight_meta)[2:]),
    grad_bias=lambda g: sum_over(g, (0, 2, 3, 4)),
    depends_on=2,
)
def _conv(x: Any, weight: Any, bias: Any, geometry: _Geometry) -> Any:
    """y (N, O, D', H', W') from x (N, C, D, H, W), weight (O, C / groups, kernel) and bias (O) or None."""
    frames = _seen(x, lib.norch_shape(weight)[2], geometry)
    batch, depth, *_ = lib.norch_shape(frames)
    planes = lib.norch_conv(lib.norch_flatten(frames, 0, 1), _as_planes(weight), bias, geometry.of_planes())
    volumes = lib.norch_reshape(planes, (batch, depth, *lib.norch_shape(planes)[1:]))
    return lib.norch_contiguous(lib.norch_transpose(volumes, 1, 2))


@differentiable(
    grad_y=lambda g, weight, geometry: _conv(g, weight, None, geometry),
    grad_weight=lambda g, y, weight_meta, geometry: _conv_weight(g, y, geometry, lib.norch_shape(weight_meta)[2:]),
    depends_on=2,
)
def _conv_input(y: Any, weight: Any, geometry: _Geometry, size: Sequence[int]) -> Any:
    """x (N, C, *size) from y and weight: the sum of the contributions of all positions of the kernel along the
    depth.
    """
    steps, before, _, dilations, groups = geometry
    batch, _, depth = lib.norch_shape(y)[:3]
    fan_in, taps = lib.norch_shape(weight)[1:3]
    planes = lib.norch_conv_input(_as_batch(y), _as_planes(weight), None, geometry.of_planes(), size[1:])
    apart = lib.norch_reshape(planes, (batch, depth, groups, taps, fan_in, *size[1:]))
    parts = lib.norch_permute(apart, (3, 0, 2, 4, 1, 5, 6))
    padded = max(before[0] + size[0], (depth - 1) * steps[0] + dilations[0] * (taps - 1) + 1)
    out = parts.new_zeros((batch, groups, fan_in, padded, *size[1:]))
    for tap in range(taps):
        begin = tap * dilations[0]
        seen = lib.norch_slice(out, 3, begin, begin + (depth - 1) * steps[0] + 1, steps[0])
        lib.norch_binary_into(seen, OPCODES["add"], seen, lib.norch_select(parts, 0, tap))
    return lib.norch_contiguous(lib.norch_slice(lib.norch_flatten(out, 1, 2), 2, before[0], before[0] + size[0], 1))


@differentiable(
    grad_x=lambda g, y, x_meta, geometry: _conv_input(y, g, geometry, lib.norch_shape(x_meta)[2:]),
    grad_y=lambda g, x, geometry: _conv(x, g, None, geometry),
)
def _conv_weight(x: Any, y: Any, geometry: _Geometry, kernel: Sequence[int]) -> Any:
    """weight (O, C / groups, *kernel) from x and y."""
    frames = lib.norch_flatten(_seen(x, kernel[0], geometry), 0, 1)
    planes = lib.norch_conv_weight(frames, _as_batch(y), geometry.of_planes(), kernel[1:], None)
    fan_in, fan_out = lib.norch_shape(x)[1] // geometry.groups, lib.norch_shape(y)[1]
    volumes = lib.norch_reshape(planes, (fan_out, kernel[0], fan_in, *kernel[1:]))
    return lib.norch_contiguous(lib.norch_transpose(volumes, 1, 2))


# ---- arguments, as PyTorch takes them ------------------------------------------------------------------------------


def _volumes(name: str, x: Any, weight: Any, groups: Any, channels: int) -> Any:
    """x with a batch axis. ShapeError unless it has the channels that weight expects for this number of groups."""
    if int64(groups, f"{name}: groups") < 1:
        raise ShapeError(f"{name}: {groups} groups")
    channels_fit(name, 3, x, weight, groups, channels)
    return x.unsqueeze(0) if x.ndim == 4 else x


def _over_volumes(name: str, axes: int, x: Any, weight: Any, bias: Any, geometry: Any) -> Any:
    volumes = _volumes(name, x, weight, geometry[-1], weight.shape[1] * geometry[-1])
    out = _conv(volumes, weight, bias, _Geometry(*geometry))
    return out.squeeze(0) if x.ndim == 4 else out


def _transposed_over_volumes(
    name: str, axes: int, x: Any, weight: Any, bias: Any, geometry: Any, size: Sequence[int]
) -> Any:
    steps, _, _, dilations, groups = geometry
    _windows(1 << 31, min(weight.shape[2:]), min(steps), min(dilations))
    out = _conv_input(_volumes(name, x, weight, groups, weight.shape[0]), weight, _Geometry(*geometry), size)
    out = out if bias is None else out + bias.reshape(-1, 1, 1, 1)
    return out.squeeze(0) if x.ndim == 4 else out


conv3d = convolution(
    3,
    _over_volumes,
    """input (N, C, D, H, W) or (C, D, H, W) with weight (O, C / groups, KD, KH, KW) and bias (O); otherwise as conv1d.
    While it runs it takes KD times the memory of input.

    >>> norch.nn.functional.conv3d(norch.ones(1, 4, 4, 4), norch.ones(2, 1, 3, 3, 3), padding=1).shape
    norch.Size([2, 4, 4, 4])
    """,
)
conv_transpose3d = transposed_convolution(
    3,
    _transposed_over_volumes,
    """The adjoint of conv3d: input (N, C, D, H, W) with weight (C, O / groups, KD, KH, KW) and bias (O).

    >>> norch.nn.functional.conv_transpose3d(norch.ones(1, 2, 2, 2), norch.ones(1, 3, 2, 2, 2), stride=2).shape
    norch.Size([3, 4, 4, 4])
    """,
)
