"""Sorting, medians, and search in sorted sequences (csrc/ops/sort.c). The rest: composed/order.py.

C returns indices, and for sort() and topk() values too; the gradient of the values is that of gather().
"""

from __future__ import annotations

from .._binding.library import constants, lib
from .._binding.numbers import flag, int64
from .._package.typing import Any, NamedTuple, Operand, Tensor, overload
from .._tensor.handle import Handle
from ..autograd.derivative import derivative
from ..autograd.record import record
from ..dtype import int32
from ..dtype import int64 as int64_
from ..errors import ArgumentError, BoundsError, ShapeError
from ._arguments import public
from ._entry import rename_errors
from ._operand import as_operand, tensor_of
from ._out import takes_out
from .copy import result_type
from .op import method
from .pointwise import isnan, lt, where
from .reduce import share_among, sum
from .scatter import gather_node, taken
from .view import axis

sort_result = NamedTuple("sort_result", [("values", Tensor), ("indices", Tensor)])
topk_result = NamedTuple("topk_result", [("values", Tensor), ("indices", Tensor)])
median_result = NamedTuple("median_result", [("values", Tensor), ("indices", Tensor)])
nanmedian_result = NamedTuple("nanmedian_result", [("values", Tensor), ("indices", Tensor)])


def order_of(x: Tensor, dim: int, k: int = -1, descending: bool = False) -> Tensor:
    """The places of the k first elements (-1: all) in sorted order."""
    return lib.norch_argsort(x, dim, k, descending, None)


def sorted_by(x: Tensor, dim: int, k: int, descending: bool) -> tuple[Tensor, Tensor]:
    """The k first elements (-1: all) in sorted order, and their places."""
    shape = lib.norch_shape(x)
    if shape and k >= 0:
        place = axis(dim, len(shape), "sort")
        shape = (*shape[:place], min(k, shape[place]), *shape[place + 1 :])
    values = lib.norch_empty(shape, x._dtype, (x._device_type, x._device_index))
    indices = lib.norch_argsort(x, dim, k, descending, values)
    return record(gather_node("sort" if k < 0 else "topk"), values, (x,), (indices, dim)), indices


# ---- sorting ------------------------------------------------------------------------------------------------------


@method(numpy=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = False) -> sort_result:
    """(values, indices): the elements along dim in ascending or descending order. Equal elements keep their order. NaN
    is larger than all numbers.

    >>> norch.sort(norch.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """
    x = as_operand(input, "sort")
    flag(stable or False, "sort: stable")
    return sort_result(*sorted_by(x, dim, -1, descending))


@method(numpy=True, out=False)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort input along dim: the second result of sort().

    >>> norch.argsort(norch.tensor([30, 10, 20]))
    tensor([1, 2, 0])
    """
    flag(stable, "argsort: stable")
    return order_of(as_operand(input, "argsort"), dim, -1, descending)


@method(out=True)
def msort(input: Tensor) -> Tensor:
    """The values of sort() along the first axis.

    >>> norch.msort(norch.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return sort(input, 0).values


@method(numpy=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> topk_result:
    """(values, indices): the k largest (or smallest) elements along dim in order, and their indices.

    >>> norch.topk(norch.tensor([3, 1, 2]), 2).values
    tensor([3, 2])
    """
    x = as_operand(input, "topk")
    if int64(k, "topk: k") < 0:
        raise ArgumentError(f"topk: k is {k}, which is below 0")
    flag(sorted, "topk: sorted")
    return topk_result(*sorted_by(x, dim, k, largest))


# ---- order statistics ---------------------------------------------------------------------------------------------


@overload
def median(input: Tensor, dim: None = ..., keepdim: bool = ...) -> Tensor: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool = ...) -> median_result: ...
@method(numpy=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, or the lower one of two; with dim, (values, indices) along it. NaN if there is a NaN.

    >>> norch.median(norch.tensor([1.0, 9.0, 4.0, 2.0]))
    tensor(2.)
    """
    return _median(as_operand(input, "median"), dim, keepdim, False, median_result)


@overload
def nanmedian(input: Tensor, dim: None = ..., keepdim: bool = ...) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = ...) -> nanmedian_result: ...
@method(numpy=True)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """median() of the elements that are not NaN.

    >>> norch.nanmedian(norch.tensor([1.0, norch.nan, 3.0, 2.0]))
    tensor(2.)
    """
    return _median(as_operand(input, "nanmedian"), dim, keepdim, True, nanmedian_result)


def _median(x: Tensor, dim: int | None, keepdim: bool, ignore_nan: bool, result: Any) -> Any:
    flag(keepdim, "median: keepdim")
    if dim is None:
        flat = lib.norch_reshape(x, (-1,))
        if not x._numel:
            if x.dtype.is_floating_point:
                return x.new_full((), float("nan"))
            raise ArgumentError(f"median: the input of shape {tuple(x.shape)} and dtype {x.dtype} is empty")
        out = lib.norch_squeeze(lib.norch_gather(flat, 0, _middle(flat, 0, ignore_nan)), (0,))
        return record(_Median, out, (x,))
    dim = axis(dim, x.ndim, "median")
    if x.ndim and not lib.norch_shape(x)[dim]:
        raise BoundsError(f"median: axis {dim} of shape {tuple(x.shape)} is empty")
    return taken(x, dim, keepdim, _middle(x.detach(), dim, ignore_nan), result)


# Of all elements: the equals of the median share the gradient.
_Median = derivative(
    "median", grad=lambda g, x, out: share_among(g, (x == out) | (x.isnan() & out.isnan()), None, False)
)


def index_at(x: Tensor, dim: int, k: int) -> Tensor:
    """The index of the element at place k in sorted order. dim stays, with size 1."""
    if x.is_cuda:
        return order_of(x, dim).narrow(dim, k, 1).clone() if x.ndim else order_of(x, dim)  # not all of the order
    return lib.norch_order_index(x, dim, k)


def _middle(x: Tensor, dim: int, ignore_nan: bool) -> Tensor:
    """The place of the median along dim. dim stays, with size 1."""
    if not x.is_cuda:
        return lib.norch_order_index(x, dim, constants["NANMEDIAN" if ignore_nan else "MEDIAN"])
    order = order_of(x, dim)
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


# ---- search -------------------------------------------------------------------------------------------------------


@takes_out
def searchsorted(
    sorted_sequence: Tensor,
    input: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """The index at which each value of input belongs in the sorted last axis of sorted_sequence: before equal elements
    (side="left") or after them ("right"). sorted_sequence is 1-d, or has the leading sizes of input. If it is not
    sorted, sorter has the indices that sort it.

    >>> norch.searchsorted(norch.tensor([1, 3, 5]), norch.tensor([3, 6]))
    tensor([1, 3])
    """
    return _search("searchsorted", sorted_sequence, input, out_int32, right, side, sorter)


@rename_errors(out=True)
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """searchsorted() of input among 1-d boundaries.

    >>> norch.bucketize(norch.tensor([1, 4, 9]), norch.tensor([2, 5]))
    tensor([0, 1, 2])
    """
    if isinstance(boundaries, Handle) and boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries are 1-d, not of {boundaries.ndim} dimensions")
    return _search("bucketize", boundaries, input, out_int32, right, None, None)


def _search(
    name: str, line: Tensor, values: Any, out_int32: bool, right: bool, side: str | None, sorter: Tensor | None
) -> Tensor:
    flag(right, f"{name}: right")
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError(f"{name}: side is 'left' or 'right' and agrees with right, not {side!r} with {right}")
    line, values = as_operand(line, name), as_operand(values, name)
    if line._dtype != values._dtype or values.ndim == 0 or sorter is not None:
        line, values = line.detach(), values.detach()
        if values.ndim == 0 and values.is_cpu:  # a number goes with any device
            values = values.to(line.device)
        common = result_type(line, values)
        if values.ndim == 0 and values.dtype.kind in "iu" and line.dtype.kind in "iu":  # which acts by its value
            common = int64_
        line, values = line.to(common), values.to(common)
    if sorter is not None:
        if tensor_of(sorter, f"{name}: sorter").dtype is not int64_ or sorter.shape != line.shape:
            raise ArgumentError(f"{name}: sorter holds int64 indices, of the shape {tuple(line.shape)} of the sequence")
        line = line.gather(-1, sorter)
    out = lib.norch_searchsorted(line, values, True if side == "right" else right)
    return out.to(int32) if out_int32 else out


__all__ = public(globals(), "index_at", "order_of", "sorted_by")
