"""Functions of the array API standard that move, search, sort and reduce."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dtype import dtype as DType
from ..dtype import int64
from ..errors import ArgumentError
from ..ops import copy, reduce, scan, view
from ..ops import index as indexing
from ..ops import sort as sorting
from ..ops._arguments import named_function, public
from ..ops.composed import order
from ..ops.composed import shape as shapes
from ..ops.composed.repeat import repeat_interleave as _repeat_interleave
from ..ops.composed.repeat import tile as _tile
from ..ops.copy import clone
from ..ops.pointwise import where as _where
from ..ops.scatter import take_along_dim
from ..tensor import Tensor
from ._checks import of_one_dtype, promoted, reduced, sum_dtype

Axis = int | tuple[int, ...] | None


# ---- shapes --------------------------------------------------------------------------------------------------------


def concat(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays behind each other along axis; None: flattened first."""
    parts = of_one_dtype(*arrays)
    return copy.cat([x.reshape(-1) for x in parts], 0) if axis is None else copy.cat(parts, axis)


def stack(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    return copy.stack(of_one_dtype(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of x along axis, without it."""
    return tuple(x.unbind(axis))


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """x with a new axis of size 1."""
    return view.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """x without axes of size 1; ArgumentError (a ValueError) if one has another size."""
    axes = (axis,) if isinstance(axis, int) else axis
    for each in axes:
        if x.shape[each] != 1:
            raise ArgumentError(f"squeeze: axis {each} of shape {tuple(x.shape)} has not size 1")
    return view.squeeze(x, axes)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """x with its axes in another order."""
    return view.permute(x, axes)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """x with the axes source moved to the positions destination; the order of the other axes does not change."""
    return shapes.moveaxis(x, source, destination)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """x with the elements along axes in reverse; all axes for None."""
    return shapes.flip(x, tuple(range(x.ndim)) if axis is None else axis) if x.ndim else clone(x)


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Tensor:
    """x with the elements shifted along axes, those at the end to the front."""
    return shapes.roll(x, shift, axis)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element several times; flattened for axis None."""
    return _repeat_interleave(x, repeats, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """x put together from copies of itself."""
    return _tile(x, repetitions)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """x in another shape; copy: True for always, False for never (ArgumentError where it needs one)."""
    out = view.reshape(x, shape)
    shared = out.untyped_storage() is x.untyped_storage()
    if copy is False and not shared:
        raise ArgumentError(f"reshape: shape {tuple(x.shape)} with strides {x.stride()} to {shape} takes a copy")
    return clone(out) if copy and shared else out


# ---- elements by index ---------------------------------------------------------------------------------------------


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements at indices along axis, which a 1-d x may leave out; negative ones count from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"take: axis is needed for {x.ndim} dimensions")
        axis = 0
    return indexing.index_select(x, axis, _where(indices < 0, indices + x.shape[axis], indices))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices along axis; each line along the axis has its indices. The other axes broadcast."""
    return take_along_dim(x, indices, axis)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not 0, an array for each axis; ArgumentError for 0-d."""
    if x.ndim == 0:
        raise ArgumentError("nonzero: a 0-d array has no indices")
    return tuple(indexing.nonzero(x).unbind(1))


def where(condition: Tensor, x1: Any = None, x2: Any = None, /) -> Any:
    """x1 where condition holds, x2 elsewhere; nonzero(condition) without them, as in NumPy."""
    if x1 is None and x2 is None:
        return nonzero(condition)
    return _where(condition, *promoted(x1, x2))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where in x1, sorted, the elements of x2 belong."""
    return sorting.searchsorted(*of_one_dtype(x1, x2), side=side, sorter=sorter)


# ---- sets ----------------------------------------------------------------------------------------------------------


UniqueAll = NamedTuple(
    "UniqueAll", [("values", Tensor), ("indices", Tensor), ("inverse_indices", Tensor), ("counts", Tensor)]
)
UniqueCounts = NamedTuple("UniqueCounts", [("values", Tensor), ("counts", Tensor)])
UniqueInverse = NamedTuple("UniqueInverse", [("values", Tensor), ("inverse_indices", Tensor)])


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct values of x, sorted; the index of the first element of each value; for each element the index of its
    value; the number of elements of each value.
    """
    values, inverse, counts = order.unique(x, return_inverse=True, return_counts=True)
    places = sorting.argsort(inverse.reshape(-1), stable=True)
    return UniqueAll(values, places[scan.cumsum(counts, 0) - counts], inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct values of x, sorted, and the number of elements of each. NaNs are distinct from each other."""
    return UniqueCounts(*order.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The values of x, sorted, and which of them each element is."""
    return UniqueInverse(*order.unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """The values of x, sorted."""
    return order.unique(x)


def isin(x1: Tensor | complex, x2: Tensor | complex, /, *, invert: bool = False) -> Tensor:
    """For each element of x1, whether x2 contains it."""
    return order.isin(*promoted(x1, x2), invert=invert)


# ---- order ---------------------------------------------------------------------------------------------------------


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x sorted along axis."""
    return sorting.sort(x, axis, descending, stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort x along axis."""
    return sorting.argsort(x, axis, descending, stable)


def _place(name: str, extreme: str) -> Any:
    function = getattr(reduce, name)

    def place(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
        if axis is not None:
            return function(x, axis, keepdims)
        result = function(x.reshape(-1), 0)
        return result.reshape((1,) * x.ndim) if keepdims else result

    return named_function(place, name, f"The index of the first {extreme} along axis, or of x flattened.")


argmax, argmin = _place("argmax", "maximum"), _place("argmin", "minimum")


# ---- reductions ----------------------------------------------------------------------------------------------------


def sum(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, of integers at least in int64."""
    return reduced(reduce.sum, x, axis, keepdims, dtype=sum_dtype(x, dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The product over axes, of integers at least in int64."""
    x = x.to(sum_dtype(x, dtype) or x.dtype)
    axes = sorted(each % x.ndim for each in ((axis,) if isinstance(axis, int) else axis or ())) if x.ndim else []
    if axis is None:
        out = reduce.prod(x.reshape(-1), 0)
        return out.reshape((1,) * x.ndim) if keepdims else out
    for each in reversed(axes):
        x = reduce.prod(x, each, keepdims)
    return x


def _reduction(name: str, function: Any, about: str) -> Any:
    def reduction(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return reduced(function, x, axis, keepdims)

    return named_function(reduction, name, about)


mean = _reduction("mean", reduce.mean, "The mean over axes.")
max = _reduction("max", reduce.amax, "The maximum over axes.")
min = _reduction("min", reduce.amin, "The minimum over axes.")
all = _reduction("all", lambda x, *over: reduce.all(x.bool(), *over), "Whether all elements over axes are true.")
any = _reduction("any", lambda x, *over: reduce.any(x.bool(), *over), "Whether any element over axes is true.")
count_nonzero = _reduction(
    "count_nonzero",
    lambda x, *over: reduce.sum(x != 0, *over, dtype=int64),
    "How many elements over axes are not 0.",
)


def _moment(name: str, about: str) -> Any:
    function = getattr(reduce, name)

    def moment(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        return reduced(lambda x, axes, keep: function(x, axes, None, keep, correction=correction), x, axis, keepdims)

    return named_function(moment, name, about)


var = _moment("var", "The variance over axes: squares are divided by their number less correction.")
std = _moment("std", "The square root of var().")


def _cumulative(name: str, function: Any, initial: int, about: str) -> Any:
    def cumulative(
        x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
    ) -> Tensor:
        if axis is None:
            if x.ndim != 1:
                raise ArgumentError(f"{function.__name__}: axis is needed for {x.ndim} dimensions")
            axis = 0
        out = function(x, axis, dtype=sum_dtype(x, dtype))
        if not include_initial:
            return out
        first = list(out.shape)
        first[axis] = 1
        return copy.cat([out.new_full(first, initial), out], axis)

    return named_function(cumulative, name, about)


cumulative_sum = _cumulative(
    "cumulative_sum",
    scan.cumsum,
    0,
    "The sums of the first elements along axis, which a 1-d x may leave out; include_initial: with a 0 before.",
)
cumulative_prod = _cumulative(
    "cumulative_prod", scan.cumprod, 1, "The products of the first elements along axis, as cumulative_sum()."
)


def diff(x: Tensor, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The differences of neighbours along axis, n times."""
    return order.diff(x, n, axis, prepend, append)


__all__ = public(globals())
