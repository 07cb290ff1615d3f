"""Counts of elements by their value."""

from __future__ import annotations

import math

from ..._package.typing import Any, NamedTuple, Tensor
from ...autograd.derivative import derivative
from ...autograd.record import record
from ...dtype import int64
from ...errors import ArgumentError, DTypeError, ShapeError
from .._checks import check_count, floats_of
from .._operand import as_operand
from ..create import linspace, zeros
from ..op import method
from ..pointwise import clamp, refused, where
from ..sort import searchsorted

__all__ = ["histc", "histogram"]

histogram_result = NamedTuple("histogram_result", [("hist", Tensor), ("bin_edges", Tensor)])

_PIECE = 1 << 14  # elements that are counted at once on the CPU: their doubles and indices stay in the cache


def _limits(low: float, high: float, name: str, apart: float) -> tuple[float, float]:
    """low and high; where they are the same, what lies `apart` from them."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ArgumentError(f"{name}: the range from {low} to {high} is not finite")
    if low > high:
        raise ArgumentError(f"{name}: the range from {low} to {high} ends before it begins")
    return (low - apart, high + apart) if low == high else (low, high)


def _extremes(x: Any) -> tuple[float, float]:
    """The least and the largest element; 0 and 1 where there is none."""
    return (x.amin().item(), x.amax().item()) if x.numel() else (0.0, 1.0)


@method(composed=True, out=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The number of elements in each of `bins` equal parts of [min, max], in the dtype of input, a float. Other
    elements are not counted. If min and max are equal, the least and the largest element replace them.

    >>> norch.histc(norch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    x = floats_of(input, "histc").detach().reshape(-1)
    if check_count(bins, "histc: bins") < 1:
        raise ArgumentError(f"histc: bins must be positive, not {bins}")
    is_whole = min == max and x.numel() > 0
    low, high = _extremes(x) if is_whole else (float(min), float(max))
    low, high = _limits(low, high, "histc", 1.0)
    hist = zeros(bins, dtype=int64, device=x.device)
    for part in x.split(_PIECE) if x.is_cpu and x.numel() > _PIECE else (x,):
        wide, inside = part.double(), None
        if not is_whole:
            inside = (wide >= low) & (wide <= high)
            wide = where(inside, wide, low)
        at = ((wide - low) * (bins / (high - low))).to(int64)  # rounded down, as none is negative
        hist = _counted(hist, at.clamp_(max=bins - 1), inside)
    return hist.to(x.dtype)


def _counted(hist: Tensor, at: Tensor, counted: Tensor | None) -> Tensor:
    """hist with 1 added in these bins, for those that are counted (None: all): integers, as sums of ones in float32
    would end at 2**24."""
    ones = at.new_ones(()).expand(at.shape) if counted is None else counted.to(int64)
    return hist.index_add(0, at, ones)


@method(composed=True, out=True)
def histogram(
    input: Tensor, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False
) -> histogram_result:
    """(hist, bin_edges): the number of elements in each bin, or the sum of their weights, and the edges of the bins.

    bins is the number of equal parts of range = (low, high), by default the least and the largest element, or a tensor
    of increasing edges (n + 1,). A bin contains its left edge, the last bin both edges. With density, hist is divided
    by the width of the bin and by its total.

    >>> norch.histogram(norch.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    input = floats_of(input, "histogram")
    x, inputs = input.detach(), [input]
    if isinstance(bins, int):
        if check_count(bins, "histogram: bins") < 1:
            raise ArgumentError(f"histogram: bins must be positive, not {bins}")
        low, high = _extremes(x) if range is None else map(float, range)
        low, high = _limits(low, high, "histogram", 0.5)
        edges = linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    else:
        inputs.append(as_operand(bins, "histogram"))
        edges = inputs[-1].detach()
        if edges.ndim != 1 or edges.shape[0] < 2 or range is not None:
            raise ArgumentError("histogram: bins are a number, or two edges or more without a range")
        if edges.dtype != x.dtype:
            raise DTypeError(f"histogram: edges of {edges.dtype.name} for elements of {x.dtype.name}")
        if not bool((edges[1:] >= edges[:-1]).all()):
            raise ArgumentError("histogram: the edges must not decrease")
    flat, count = x.reshape(-1), edges.shape[0] - 1
    inside = (flat >= edges[0]) & (flat <= edges[-1])
    at = clamp(searchsorted(edges, flat.contiguous(), right=True) - 1, 0, count - 1)
    if weight is None:
        hist = _counted(zeros(count, dtype=int64, device=x.device), at, inside).to(x.dtype)
    else:
        inputs.append(as_operand(weight, "histogram"))
        weight = inputs[-1].detach()
        if weight.dtype != x.dtype:
            raise DTypeError(f"histogram: weights of {weight.dtype.name} for elements of {x.dtype.name}")
        if weight.shape != x.shape:
            raise ShapeError(f"histogram: weights of shape {tuple(weight.shape)} for {tuple(x.shape)}")
        sums = where(inside, weight.reshape(-1).double(), 0.0)
        hist = zeros(count, dtype=sums.dtype, device=x.device).index_add(0, at, sums).to(x.dtype)
    if density:
        hist = hist / (edges[1:] - edges[:-1]) / hist.sum()
    inputs += [input] * (3 - len(inputs))
    return histogram_result(*(record(_Histogram, part, tuple(inputs), ()) for part in (hist, edges)))


_refused = refused("histogram: the derivative")
_Histogram = derivative("histogram", ("x", "bins", "weight"), grad_x=_refused, grad_bins=_refused, grad_weight=_refused)
