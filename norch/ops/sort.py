"""Order (csrc/ops/sort.c): sorting, and what is composed of it: medians, quantiles, modes, distinct elements.

C gives places only; values are gathered, so that gradients come by themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._handle import Handle
from .._lib import flag, int64, lib
from ..autograd import derivatives as d
from ..device import place
from ..dtype import float32, float64, int32
from ..dtype import int64 as int64_
from ..errors import ArgumentError, BoundsError, DTypeError, ShapeError
from ._operand import must, numpy_names, operand, public
from .copy import cat, result_type
from .pointwise import isnan, lt, mul, ne, where
from .reduce import any, argmax, recorded, sum, taken
from .scan import cummax, cumsum, diff
from .view import axis, reshape


def _order(x: Any, dim: int, k: int = -1, descending: bool = False) -> Any:
    """The places of the k first elements (-1: all) in sorted order."""
    return lib.norch_argsort(x, dim, k, descending)


# ---- sorting ------------------------------------------------------------------------------------------------------


class sort_result(NamedTuple):  # noqa: N801  (as PyTorch's prints)
    values: Any
    indices: Any


class topk_result(NamedTuple):  # noqa: N801
    values: Any
    indices: Any


@numpy_names
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool | None = False) -> Any:  # noqa: A002
    """(values, indices) along dim in ascending or descending order; equal ones keep theirs, NaN is the greatest.

    >>> norch.sort(norch.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """
    x = must(input, "sort")
    flag(stable or False, "sort: stable")
    indices = _order(x, dim, -1, descending)
    return sort_result(x.gather(dim, indices), indices)


@numpy_names
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:  # noqa: A002
    """The indices of sort()."""
    flag(stable, "argsort: stable")
    return _order(must(input, "argsort"), dim, -1, descending)


def msort(input: Any) -> Any:  # noqa: A002
    """The values of sort() along the first axis."""
    return sort(input, 0).values


@numpy_names
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002
    """The k largest (or smallest) elements along dim in order, and their indices: (values, indices).

    >>> norch.topk(norch.tensor([3, 1, 2]), 2).values
    tensor([3, 2])
    """
    x = must(input, "topk")
    if int64(k, "topk: k") < 0:
        raise ArgumentError(f"topk: k is {k}, which is below 0")
    flag(sorted, "topk: sorted")
    indices = _order(x, dim, k, largest)
    return topk_result(x.gather(dim, indices), indices)


# ---- order statistics ---------------------------------------------------------------------------------------------


class median_result(NamedTuple):  # noqa: N801
    values: Any
    indices: Any


class nanmedian_result(NamedTuple):  # noqa: N801
    values: Any
    indices: Any


class mode_result(NamedTuple):  # noqa: N801
    values: Any
    indices: Any


@numpy_names
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:  # noqa: A002
    """The middle element, the lower of two; with dim, (values, indices) along it. NaN where there is one.

    >>> norch.median(norch.tensor([1.0, 9.0, 4.0, 2.0]))
    tensor(2.)
    """
    return _median(must(input, "median"), dim, keepdim, False, median_result)


@numpy_names
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:  # noqa: A002
    """median() of what is not NaN."""
    return _median(must(input, "nanmedian"), dim, keepdim, True, nanmedian_result)


def _median(x: Any, dim: Any, keepdim: bool, ignore_nan: bool, result: Any) -> Any:
    if dim is None:
        flat = x.detach().flatten()
        if not flat.numel():
            if x.dtype.is_floating_point:
                return x.new_full((), float("nan"))
            raise ArgumentError(f"median: the input of shape {tuple(x.shape)} and dtype {x.dtype} is empty")
        out = flat.gather(0, _middle(flat, 0, ignore_nan)).squeeze(0)
        return recorded(d.Median, x, out, None, False)
    dim = axis(dim, x.ndim, "median")
    if x.ndim and not x.shape[dim]:
        raise BoundsError(f"median: axis {dim} of shape {tuple(x.shape)} is empty")
    return taken(x, dim, keepdim, _middle(x.detach(), dim, ignore_nan), result)


def _middle(x: Any, dim: int, ignore_nan: bool) -> Any:
    """The place of the median along dim, kept as 1."""
    order = _order(x, dim)
    size = x.shape[dim] if x.ndim else 1
    middle = (size - 1) // 2
    if not x.dtype.is_floating_point or x.ndim == 0:
        return order.narrow(dim, middle, 1) if x.ndim else order
    valid = sum(isnan(x).logical_not(), dim, True)
    if ignore_nan:
        place = (valid - 1).clamp(min=0).floor_divide(2)
    else:
        place = where(lt(valid, size), valid, middle)  # the first NaN
    return order.gather(dim, place)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@numpy_names
def quantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:  # noqa: A002
    """The q-th quantiles (q a number or 1-d tensor in [0, 1]) of all elements or along dim; NaN where there is one.

    Between two elements: "linear", "lower", "higher", "midpoint" or "nearest". Several q stand along a new first axis.
    float32 and float64 only.

    >>> norch.quantile(norch.tensor([1.0, 2.0, 4.0]), norch.tensor([0.25, 0.5]))
    tensor([1.5000, 2.0000])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@numpy_names
def nanquantile(  # noqa: PLR0913
    input: Any,  # noqa: A002
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    """quantile() of what is not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _quantile(name: str, x: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool) -> Any:
    x = must(x, name)
    flag(keepdim, f"{name}: keepdim")
    if x.dtype not in (float32, float64):
        raise DTypeError(f"{name}: expected float32 or float64, got {x.dtype}")
    if not x.numel():
        raise ArgumentError(f"{name}: the input of shape {tuple(x.shape)} is empty")
    if interpolation not in _INTERPOLATIONS:
        raise ArgumentError(f"{name}: interpolation is one of {', '.join(_INTERPOLATIONS)}, not {interpolation!r}")
    if not isinstance(q, Handle):
        q = x.new_full((), float(q))
    if q.dtype is not x.dtype:
        raise DTypeError(f"{name}: q is {q.dtype}, the input {x.dtype}")
    if q.ndim > 1:
        raise ShapeError(f"{name}: q is a number or a 1-d tensor, not of shape {tuple(q.shape)}")
    if q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
        raise ArgumentError(f"{name}: q lies in [0, 1]")
    whole = dim is None or x.ndim == 0
    line = x.reshape(-1) if whole else x.transpose(dim, -1)
    ordered = sort(line, -1).values
    last = sum(isnan(line).logical_not(), -1, True) - 1
    size = line.shape[-1]
    rank = mul(q.reshape(-1), (last.clamp(min=0) if ignore_nan else size - 1))
    if not ignore_nan:
        rank = where(lt(last, size - 1), size - 1, rank)
    if interpolation in ("lower", "higher", "nearest"):
        rank = {"lower": rank.floor, "higher": rank.ceil, "nearest": rank.round}[interpolation]()
    below = rank.detach().floor().to(int64_)
    out = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        above = ordered.gather(-1, rank.detach().ceil().to(int64_))
        weight = rank - below if interpolation == "linear" else where(ne(rank.detach(), below), 0.5, 0.0)
        step = above - out
        out = where(lt(weight, 0.5), out + step * weight, above - step * (1 - weight))
    if whole:
        out = out.reshape(-1, *[1] * (x.ndim if keepdim else 0))
    else:  # (..., q), the last axis in the place of dim, becomes (q, ..., 1, ...)
        axis = dim % x.ndim + 1
        out = out.unsqueeze(0).transpose(0, -1).transpose(axis, -1)
        out = out if keepdim else out.squeeze(axis)
    return out if q.ndim else out.select(0, 0)


@numpy_names
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:  # noqa: A002
    """The most frequent element along dim (the smallest of those), and the last place of it: (values, indices)."""
    x = must(input, "mode")
    dim = axis(dim, x.ndim, "mode")
    if x.ndim and not x.shape[dim]:
        raise BoundsError(f"mode: axis {dim} of shape {tuple(x.shape)} is empty")
    if x.ndim == 0:
        return taken(x, 0, keepdim, _order(x, 0), mode_result)
    order = _order(x, dim)
    ordered = x.detach().gather(dim, order)
    size = x.shape[dim]
    fresh = ne(ordered.narrow(dim, 1, size - 1), ordered.narrow(dim, 0, size - 1))
    fresh = cat([fresh.new_ones(order.narrow(dim, 0, 1).shape), fresh], dim)
    places = _iota(size, fresh).reshape(-1, *[1] * (x.ndim - 1 - dim)).expand(fresh.shape)
    runs = places - cummax(where(fresh, places, 0), dim).values  # how many equal ones came before
    return taken(x, dim, keepdim, order.gather(dim, argmax(runs, dim, True)), mode_result)


# ---- distinct elements --------------------------------------------------------------------------------------------


@numpy_names
def unique(
    input: Any,  # noqa: A002
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in order (1-d), or with dim the distinct slices along it.

    With return_inverse and return_counts also where each element of input is among them, and how often they occur.

    >>> norch.unique(norch.tensor([2, 1, 2]), return_counts=True)
    (tensor([1, 2]), tensor([1, 2]))
    """
    flag(sorted, "unique: sorted")
    return _distinct(must(input, "unique").detach(), True, return_inverse, return_counts, dim)


@numpy_names
def unique_consecutive(
    input: Any,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """As unique(), but of equal neighbours only, in their order."""
    return _distinct(must(input, "unique_consecutive").detach(), False, return_inverse, return_counts, dim)


def _distinct(x: Any, ordered: bool, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    flag(return_inverse, "unique: return_inverse")
    flag(return_counts, "unique: return_counts")
    if dim is None:
        rows = x.reshape(-1, 1)
    else:
        lines = x.movedim(dim, 0) if x.ndim else x.reshape(1)
        if lines.shape[0] and not lines.numel():
            raise ArgumentError(f"unique: shape {tuple(x.shape)} has an empty axis besides {dim}")
        rows = lines.reshape(lines.shape[0], -1 if lines.numel() else 1)
    count = rows.shape[0]
    order = _iota(count, x)
    if ordered:
        for column in reversed(range(rows.shape[1])):  # stable sorts, by the last column first
            order = order.index_select(0, _order(rows.select(1, column).index_select(0, order), 0))
        rows = rows.index_select(0, order)
    fresh = any(ne(rows[1:], rows[:-1]), 1)
    group = cumsum(cat([fresh.new_zeros((min(count, 1),)), fresh]), 0)
    number = int(group[-1].item()) + 1 if count else 0
    starts = lib.norch_searchsorted(group, _iota(number, x), False)
    chosen = order.index_select(0, starts)
    values = x.reshape(-1).index_select(0, chosen) if dim is None else x.index_select(dim, chosen)
    out = [values]
    if return_inverse:
        inverse = group.new_zeros((count,)).scatter_add(0, order, group)
        out.append(inverse.reshape(x.shape) if dim is None else inverse)
    if return_counts:
        out.append(diff(starts, append=starts.new_full((1,), count)) if number else starts)
    return tuple(out) if len(out) > 1 else values


def _iota(n: int, x: Any) -> Any:
    """0, 1, ... n - 1, on the device of x."""
    return lib.norch_to_device(lib.norch_arange(n, int64_.code, 0.0, 1.0, 0, 1), place(x.device), False)


# ---- search -------------------------------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Any,
    input: Any,  # noqa: A002
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Where each value of input is to be put into the sorted last axis of sorted_sequence, before its equals (side
    "left") or behind them ("right").

    sorted_sequence is 1-d, or has the leading sizes of input; sorter gives the order of one that is not sorted.

    >>> norch.searchsorted(norch.tensor([1, 3, 5]), norch.tensor([3, 6]))
    tensor([1, 3])
    """
    return _search("searchsorted", sorted_sequence, input, out_int32, right, side, sorter)


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:  # noqa: A002
    """searchsorted() of input among 1-d boundaries."""
    if isinstance(boundaries, Handle) and boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries are 1-d, not of {boundaries.ndim} dimensions")
    return _search("bucketize", boundaries, input, out_int32, right, None, None)


def _search(name: str, line: Any, values: Any, out_int32: bool, right: bool, side: Any, sorter: Any) -> Any:
    flag(right, f"{name}: right")
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError(f"{name}: side is 'left' or 'right' and agrees with right, not {side!r} with {right}")
    line = must(line, name).detach()
    values = must(values, name).detach()
    if values.ndim == 0 and values.is_cpu:  # a number goes with any device
        values = values.to(line.device)
    common = result_type(line, values)
    line, values = line.to(common), values.to(common)
    if sorter is not None:
        if operand(sorter) is NotImplemented or sorter.dtype is not int64_ or sorter.shape != line.shape:
            raise ArgumentError(f"{name}: sorter holds int64 indices, of the shape {tuple(line.shape)} of the sequence")
        line = line.gather(-1, sorter)
    out = lib.norch_searchsorted(line, values, True if side == "right" else right)
    return out.to(int32) if out_int32 else out


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Where elements are among test_elements; with invert where they are not. Either may be a number.

    >>> norch.isin(norch.arange(4), norch.tensor([1, 3]))
    tensor([False,  True, False,  True])
    """
    x, among = must(elements, "isin"), must(test_elements, "isin")
    if among.numel() == 0:
        found = (x != x) & False
    else:
        places, _ = reshape(among, -1).sort()
        at = searchsorted(places, x).clamp(max=among.numel() - 1)
        found = reshape(places.index_select(0, reshape(at, -1)), x.shape) == x
    return ~found if invert else found


class SortMethods(Handle):
    """The order of Tensor."""

    __slots__ = ()

    sort, argsort, msort, topk = sort, argsort, msort, topk
    median, nanmedian, quantile, nanquantile, mode = median, nanmedian, quantile, nanquantile, mode
    unique, unique_consecutive = unique, unique_consecutive


__all__ = public(globals())
