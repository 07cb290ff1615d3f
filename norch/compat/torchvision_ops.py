"""torchvision's operators in C++, composed of norch's operations here: non-maximum suppression of boxes (nms), features
of regions of interest (roi_align, roi_pool, ps_roi_align), deform_conv2d.

Definitions: He et al., "Mask R-CNN" (2017), Girshick, "Fast R-CNN" (2015), Dai et al., "R-FCN" (2016) and "Deformable
Convolutional Networks" (2017); details follow torchvision's CPU kernels.
"""

from __future__ import annotations

import math
from typing import Any

import norch

from ..errors import ShapeError
from ..tensor import Tensor
from .operators import COMPOSITE, REGISTERED, Operation


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of boxes (N, 4) by falling score, without boxes whose intersection over union with an earlier one exceeds
    the threshold."""
    if dets.ndim != 2 or dets.shape[1] != 4:
        raise ShapeError(f"nms: expected boxes of shape (N, 4), got {tuple(dets.shape)}")
    if tuple(scores.shape) != (len(dets),):
        raise ShapeError(f"nms: {len(dets)} boxes and scores of shape {tuple(scores.shape)}")
    order = scores.detach().sort(stable=True, descending=True)[1]
    boxes = dets.detach()[order].cpu()
    x1, y1, x2, y2 = boxes.unbind(1)
    areas = (x2 - x1) * (y2 - y1)
    alive = norch.ones(len(boxes), dtype=norch.bool)
    kept = []
    for i in range(len(boxes)):
        if not alive[i].item():
            continue
        kept.append(i)
        wide = (x2[i + 1 :].minimum(x2[i]) - x1[i + 1 :].maximum(x1[i])).clamp(min=0)
        high = (y2[i + 1 :].minimum(y2[i]) - y1[i + 1 :].maximum(y1[i])).clamp(min=0)
        both = wide * high
        alive[i + 1 :] &= ~(both / (areas[i] + areas[i + 1 :] - both) > iou_threshold)
    return order[norch.tensor(kept, dtype=norch.int64, device=order.device)]


def _at(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Values of image (C, H, W) interpolated at y, x, which have one shape: (C, ...); 0 at a pixel or more outside."""
    height, width = image.shape[1:]
    outside = (y < -1) | (y > height) | (x < -1) | (x > width)
    y, x = y.clamp(min=0), x.clamp(min=0)
    top, left = y.detach().floor().long().clamp(max=height - 1), x.detach().floor().long().clamp(max=width - 1)
    bottom, right = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    y, x = norch.where(top >= height - 1, top.to(y.dtype), y), norch.where(left >= width - 1, left.to(x.dtype), x)
    low, near = y - top, x - left
    high, far = 1 - low, 1 - near
    value = image[:, top, left] * (high * far) + image[:, top, right] * (high * near)
    value = value + image[:, bottom, left] * (low * far) + image[:, bottom, right] * (low * near)
    return norch.where(outside, norch.zeros((), dtype=image.dtype, device=image.device), value)


def _samples(start: float, size: float, count: int, each: int) -> list[float]:
    """The positions of `each` samples in each of count bins from start on."""
    return [start + i * size + (j + 0.5) * size / each for i in range(count) for j in range(each)]


def _regions(input: Tensor, rois: Tensor) -> list[list[float]]:  # noqa: A002
    if input.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
        raise ShapeError(
            f"rois: expected features (N, C, H, W) and regions (K, 5), got {tuple(input.shape)}, {tuple(rois.shape)}"
        )
    return rois.detach().tolist()


def _sampled(
    input: Tensor,
    roi: list[float],
    scale: float,
    offset: float,
    least: float,
    high: int,
    wide: int,
    ratio: int,  # noqa: A002
) -> Tensor:
    """The mean of the samples in each bin of a region: (C, high, wide)."""
    batch, x1, y1, x2, y2 = roi
    left, top = x1 * scale - offset, y1 * scale - offset
    width, height = x2 * scale - offset - left, y2 * scale - offset - top
    width, height = max(width, least), max(height, least)
    rows = ratio if ratio > 0 else max(math.ceil(height / high), 0)
    columns = ratio if ratio > 0 else max(math.ceil(width / wide), 0)
    channels = input.shape[1]
    if not rows * columns:
        return input.new_zeros(channels, high, wide)
    like: Any = {"dtype": input.dtype, "device": input.device}
    y = norch.tensor(_samples(top, height / high, high, rows), **like)
    x = norch.tensor(_samples(left, width / wide, wide, columns), **like)
    y, x = y[:, None].expand(len(y), len(x)), x[None].expand(len(y), len(x))
    value = _at(input[int(batch)], y, x)
    return value.reshape(channels, high, rows, wide, columns).mean((2, 4))


def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,  # noqa: A002
    sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """Mean interpolated features in the bins of regions (batch, x1, y1, x2, y2): (K, C, height, width)."""
    offset, least = (0.5, -math.inf) if aligned else (0.0, 1.0)
    results = [
        _sampled(input, roi, spatial_scale, offset, least, pooled_height, pooled_width, sampling_ratio)
        for roi in _regions(input, rois)
    ]
    return norch.stack(results) if results else input.new_zeros(0, input.shape[1], pooled_height, pooled_width)


def _position_sensitive(found: Tensor, high: int, wide: int) -> Tensor:
    """Selects each bin's own channels from (C * high * wide, high, wide): (C, high, wide)."""
    each = found.reshape(-1, high, wide, high, wide)
    i, j = norch.meshgrid(norch.arange(high), norch.arange(wide), indexing="ij")
    return each[:, i, j, i, j]


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,  # noqa: A002
) -> tuple[Tensor, Tensor]:
    """roi_align() of each bin's own channels, and their indices."""
    high, wide = pooled_height, pooled_width
    results = [
        _position_sensitive(_sampled(input, roi, spatial_scale, 0.5, -math.inf, high, wide, sampling_ratio), high, wide)
        for roi in _regions(input, rois)
    ]
    channels = input.shape[1] // (high * wide)
    out = norch.stack(results) if results else input.new_zeros(0, channels, high, wide)
    numbers = norch.arange(channels * high * wide, dtype=norch.int32).reshape(channels, high, wide)
    return out, numbers.expand(len(out), channels, high, wide)


def _bins(start: int, size: float, count: int, limit: int) -> list[tuple[int, int]]:
    """The first index and the end of each bin, within an axis."""
    return [
        (min(max(math.floor(i * size) + start, 0), limit), min(max(math.ceil((i + 1) * size) + start, 0), limit))
        for i in range(count)
    ]


def _round(value: float) -> int:
    return math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)  # like C's round()


def roi_pool(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,  # noqa: A002
) -> tuple[Tensor, Tensor]:
    """Maxima of features in the bins of regions, (K, C, height, width), and their indices in a channel, -1 for an empty
    bin."""
    height, width = input.shape[2:]
    values, places = [], []
    for batch, *corners in _regions(input, rois):
        left, top, right, bottom = (_round(corner * spatial_scale) for corner in corners)
        rows = _bins(top, max(bottom - top + 1, 1) / pooled_height, pooled_height, height)
        columns = _bins(left, max(right - left + 1, 1) / pooled_width, pooled_width, width)
        for r0, r1 in rows:
            for c0, c1 in columns:
                if r1 <= r0 or c1 <= c0:
                    values.append(input.new_zeros(input.shape[1]))
                    places.append(norch.full((input.shape[1],), -1))
                    continue
                best, at = input[int(batch), :, r0:r1, c0:c1].flatten(1).max(1)
                values.append(best)
                places.append((r0 + at // (c1 - c0)) * width + c0 + at % (c1 - c0))
    shape = (len(rois), pooled_height, pooled_width, input.shape[1])
    if not values:
        return input.new_zeros(0, input.shape[1], *shape[1:3]), norch.zeros(
            0, input.shape[1], *shape[1:3], dtype=norch.int32
        )
    return norch.stack(values).reshape(shape).permute(0, 3, 1, 2), norch.stack(places).reshape(shape).permute(
        0, 3, 1, 2
    ).int()


def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor,  # noqa: A002
    stride_h: int, stride_w: int, pad_h: int, pad_w: int, dil_h: int, dil_w: int,
    n_weight_grps: int, n_offset_grps: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    """A convolution whose input positions are moved by offset (N, 2 * groups * kh * kw, oh, ow)."""
    batch, channels, height, width = input.shape
    outputs, _, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    moves = offset.reshape(batch, n_offset_grps, kh, kw, 2, oh, ow)
    like: Any = {"dtype": input.dtype, "device": input.device}
    rows = norch.arange(oh, **like)[:, None] * stride_h - pad_h
    columns = norch.arange(ow, **like)[None, :] * stride_w - pad_w
    taps_y, taps_x = norch.arange(kh, **like) * dil_h, norch.arange(kw, **like) * dil_w
    y = moves[:, :, :, :, 0] + rows + taps_y[:, None, None, None]
    x = moves[:, :, :, :, 1] + columns + taps_x[:, None, None]
    each = channels // n_offset_grps
    samples = []
    for n in range(batch):
        for group in range(n_offset_grps):
            sampled = _inside(input[n, group * each : (group + 1) * each], y[n, group], x[n, group])
            if use_mask:
                sampled = sampled * mask.reshape(batch, n_offset_grps, kh, kw, oh, ow)[n, group]
            samples.append(sampled)
    columns_ = norch.stack(samples).reshape(batch, n_weight_grps, -1, oh * ow)
    out = weight.reshape(n_weight_grps, outputs // n_weight_grps, -1) @ columns_
    return out.reshape(batch, outputs, oh, ow) + bias[:, None, None]


def _inside(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Values of image (C, H, W) interpolated at y, x, with zeros around it."""
    height, width = image.shape[1:]
    top, left = y.detach().floor(), x.detach().floor()
    total: Any = 0
    for down in (0, 1):
        for across in (0, 1):
            row, column = top + down, left + across
            weight = (1 - (y - row).abs()) * (1 - (x - column).abs())
            good = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            at = image[:, row.clamp(0, height - 1).long(), column.clamp(0, width - 1).long()]
            total = total + at * norch.where(good, weight, norch.zeros((), dtype=weight.dtype, device=weight.device))
    return total


def _cuda_version() -> int:
    """-1: nothing is compiled for CUDA."""
    return -1


for _function in (nms, roi_align, ps_roi_align, roi_pool, deform_conv2d, _cuda_version):
    _operation = REGISTERED[f"torchvision::{_function.__name__}"] = Operation(f"torchvision::{_function.__name__}")
    _operation.kernels[COMPOSITE] = _function
