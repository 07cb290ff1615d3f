"""Images resampled by weights, one axis after another: with antialias, and for bytes.

The weights are those of Pillow's Resample.c and of PyTorch's UpSampleKernel.cpp: a triangle or a cubic (Keys, "Cubic
convolution interpolation", 1981), which is as wide as the scale if an image gets smaller.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ...dtype import float32, float64, uint8
from ...ops.resample import resampled
from ...ops.values import can_cache, tensor
from ...tensor import Tensor

Row = dict[int, float]  # the weights of a new element: {old element: weight}


def _triangle(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _smoothed(old: int, new: int, scale: float, cubic: bool) -> list[Row]:
    """The weights of old elements in each new element, with antialias. scale: old elements per new element."""
    stretch, reach = max(scale, 1.0), 2.0 if cubic else 1.0
    rows = []
    for i in range(new):
        center = scale * (i + 0.5)
        first = max(int(center - reach * stretch + 0.5), 0)
        last = min(int(center + reach * stretch + 0.5), old)
        places = [(j - center + 0.5) / stretch for j in range(first, last)]
        taps = [_cubic(place, -0.5) if cubic else _triangle(place) for place in places]
        total = sum(taps)
        rows.append({first + j: tap / total if total else tap for j, tap in enumerate(taps)})
    return rows


def _between(old: int, new: int, scale: float, cubic: bool, align: bool) -> list[Row]:
    """The weights without antialias: of 2 or 4 neighbours. Outside the image the neighbour is the edge."""
    rows = []
    for i in range(new):
        at = scale * i if align else scale * (i + 0.5) - 0.5
        at = at if cubic else max(at, 0.0)
        low = min(math.floor(at), old - 1)
        t = min(max(at - low, 0.0), 1.0)
        row: Row = {}
        for k in range(-1, 3) if cubic else range(2):
            at_edge = min(max(low + k, 0), old - 1)
            row[at_edge] = row.get(at_edge, 0.0) + (_cubic(k - t, -0.75) if cubic else _triangle(k - t))
        rows.append(row)
    return rows


def _integers(rows: list[Row]) -> tuple[list[Row], int]:
    """Weights as integers of 16 bits, and the number of their binary digits behind the point."""
    largest, digits = max(max(row.values()) for row in rows), 0
    while digits < 22 and 0.5 + largest * (1 << (digits + 1)) < 1 << 15:
        digits += 1
    unit = 1 << digits
    return [{j: float(math.trunc(w * unit + math.copysign(0.5, w))) for j, w in row.items()} for row in rows], digits


def _taps(
    old: int, new: int, scale: float, cubic: bool, align: bool, antialias: bool, of_bytes: bool, dtype: Any, device: Any
) -> tuple[Tensor, Tensor, int]:
    """Indices and weights for resampled(). For bytes the weights are integers, and the number of their binary digits
    behind the point is returned too. An element with the weight 0 has no part in a sum, even if it is infinite.
    """
    rows = _smoothed(old, new, scale, cubic) if antialias else _between(old, new, scale, cubic, align)
    rows, digits = _integers(rows) if of_bytes else (rows, 0)
    most = max(map(len, rows))
    pairs = [[*((j if w else -1, w) for j, w in row.items()), *[(-1, 0.0)] * (most - len(row))] for row in rows]
    index, weights = ([[pair[k] for pair in taps] for taps in zip(*pairs)] for k in (0, 1))
    return tensor(index, device=device), tensor(weights, dtype=dtype, device=device), digits


_SMALL = 1024  # sizes of results whose taps are cached
_cached_taps = functools.lru_cache(maxsize=64)(_taps)


def _axis(x: Tensor, dim: int, new: int, *how: Any) -> Tensor:
    of_bytes = x.dtype is uint8
    find: Any = _cached_taps if new <= _SMALL and can_cache(x) else _taps
    index, weights, digits = find(x.shape[dim], new, *how, of_bytes, float64 if of_bytes else x.dtype, x.device)
    if not of_bytes:
        return resampled(x, dim, index, weights)
    product = resampled(x.double(), dim, index, weights)  # exact: sums of 8 and 16 bits
    return ((product + (1 << digits >> 1)) / (1 << digits)).floor().clamp(0, 255).to(uint8)


def resized(x: Tensor, new: list[int], scales: Any, mode: str, align: bool, antialias: bool) -> Tensor:
    """x (N, C, H, W), of floats or bytes, resized to new. scales are the user's ratios of new to old elements, or
    None.
    """
    out = x if x.dtype in (float32, float64, uint8) else x.float()
    for dim in (3, 2):
        n, m, scale = x.shape[dim], new[dim - 2], scales[dim - 2]
        if align:
            ratio = (n - 1) / (m - 1) if m > 1 else 0.0
        else:
            ratio = n / m if scale is None else 1 / scale
        if m == n and ratio in (0.0, 1.0):
            continue
        out = _axis(out, dim, m, ratio, mode == "bicubic", align, antialias)
    return x.clone() if out is x else out.to(x.dtype)
