"""Functions composed of sorting and scans: quantiles, modes, distinct elements, membership, differences, counts."""

from __future__ import annotations

from ..._binding.library import constants, lib
from ..._binding.numbers import flag, int64
from ..._package.typing import Any, NamedTuple, Operand, Tensor
from ..._tensor.handle import Handle
from ...autograd.derivative import derivative
from ...autograd.differentiable import differentiable
from ...autograd.record import record
from ...dtype import bool_, float32, float64
from ...dtype import int64 as int64_
from ...errors import ArgumentError, BoundsError, DTypeError, ShapeError, one_of
from .._arguments import optional_results, public
from .._checks import at_least
from .._entry import rename_errors
from .._operand import as_operand, operand
from ..copy import cat, padded
from ..index import KINDS, on_common_device
from ..op import OPCODES, method
from ..pointwise import eq, isfinite, lt, mul, ne, refused, where
from ..reduce import any, sum
from ..scan import cummax, cumsum
from ..scatter import taken
from ..sort import index_at, order_of, searchsorted, sort, sorted_by
from ..values import iota
from ..view import axis, reshape

kthvalue_result = NamedTuple("kthvalue_result", [("values", Tensor), ("indices", Tensor)])
mode_result = NamedTuple("mode_result", [("values", Tensor), ("indices", Tensor)])

_NE, _SUB, _WHERE, _ARGMAX = (OPCODES[name] for name in ("ne", "sub", "where", "argmax"))

# ---- order statistics ---------------------------------------------------------------------------------------------


@method(numpy=True, autocast="float32 -")
def quantile(
    input: Tensor, q: Operand, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The quantiles q of all elements, or along dim. q is a number or a vector in [0, 1]; a vector gives a new first
    axis. interpolation, between two elements, is "linear", "lower", "higher", "midpoint" or "nearest". A NaN among the
    elements gives NaN. float32 and float64 only.

    >>> norch.quantile(norch.tensor([1.0, 2.0, 4.0]), norch.tensor([0.25, 0.5]))
    tensor([1.5000, 2.0000])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@differentiable(
    broadcast=True,
    grad_a=lambda g, weight: g * (1 - weight),
    grad_b=lambda g, weight: g * weight,
    grad_weight=lambda g, a, b: g * (b - a),
)
def _between(a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    """a + (b - a) * weight, b exactly at weight 1. Where an end or the difference is infinite, an end that has the
    weight 0 does not count: the result is a at weight 0, also beside an infinite b."""
    step = b - a
    close = where(lt(weight, 0.5), a + step * weight, b - step * (1 - weight))
    return where(isfinite(step), close, where(eq(weight, 0), a, a * (1 - weight) + b * weight))


@method(numpy=True, autocast="float32 -")
def nanquantile(
    input: Tensor, q: Operand, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """quantile() of the elements that are not NaN.

    >>> norch.nanquantile(norch.tensor([1.0, norch.nan, 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _quantile(name: str, x: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    x = as_operand(x, name)
    flag(keepdim, f"{name}: keepdim")
    if x.dtype not in (float32, float64):
        raise DTypeError(f"{name}: expected float32 or float64, got {x.dtype}")
    if not x.numel():
        raise ArgumentError(f"{name}: the input of shape {tuple(x.shape)} is empty")
    one_of(f"{name}: interpolation", interpolation, ("linear", "lower", "higher", "midpoint", "nearest"))
    is_number = not isinstance(q, Handle)
    if is_number and not 0 <= float(q) <= 1:
        raise ArgumentError(f"{name}: q lies in [0, 1]")
    q = as_operand(x.new_full((), float(q)) if is_number else q, name)
    if q.dtype is not x.dtype:
        raise DTypeError(f"{name}: q is {q.dtype}, the input {x.dtype}")
    if q.ndim > 1:
        raise ShapeError(f"{name}: q is a number or a 1-d tensor, not of shape {tuple(q.shape)}")
    if not is_number:
        lib.norch_check((q >= 0) & (q <= 1), constants[f"CHECK_{name.upper()}"])
    whole = dim is None or x.ndim == 0
    line = x.reshape(-1) if whole else x.transpose(dim, -1)
    ordered = sort(line, -1).values
    size = line.shape[-1]
    if ignore_nan:
        last = sum(eq(line, line), -1, True) - 1  # NaN is not equal to itself
        rank = mul(q.reshape(-1), last.clamp(min=0))
    else:
        last = ordered.detach().narrow(-1, size - 1, 1)
        rank = where(eq(last, last), mul(q.reshape(-1), size - 1), size - 1)
    if interpolation in ("lower", "higher", "nearest"):
        rank = {"lower": rank.floor, "higher": rank.ceil, "nearest": rank.round}[interpolation]()
    below = rank.detach().floor().to(int64_)
    out = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        above = ordered.gather(-1, rank.detach().ceil().to(int64_))
        weight = rank - below if interpolation == "linear" else where(ne(rank.detach(), below), 0.5, 0.0)
        out = _between(out, above, weight)
    if whole:
        out = out.reshape(-1, *[1] * (x.ndim if keepdim else 0))
    else:  # (..., q), the last axis at dim, becomes (q, ..., 1, ...)
        axis = dim % x.ndim + 1
        out = out.unsqueeze(0).transpose(0, -1).transpose(axis, -1)
        out = out if keepdim else out.squeeze(axis)
    return out if q.ndim else out.select(0, 0)


@method(numpy=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> kthvalue_result:
    """(values, indices): the k-th smallest element along dim, and its index. k counts from 1. NaN is larger than all
    numbers.

    >>> norch.kthvalue(norch.tensor([4.0, 1.0, 3.0]), 2).values
    tensor(3.)
    """
    x = as_operand(input, "kthvalue")
    dim = axis(dim, x.ndim, "kthvalue")
    size = lib.norch_shape(x)[dim] if x.ndim else 1
    if not size:
        raise BoundsError(f"kthvalue: axis {dim} of shape {tuple(x.shape)} is empty")
    if not 1 <= int64(k, "kthvalue: k") <= size:
        raise ArgumentError(f"kthvalue: k = {k} is out of range for {size} elements along axis {dim}")
    return taken(x, dim, keepdim, index_at(x, dim, k - 1), kthvalue_result)


@method(numpy=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> mode_result:
    """(values, indices): the most frequent element along dim, and its last index. Of several most frequent elements it
    is the smallest.

    >>> values, indices = norch.mode(norch.tensor([3, 1, 3, 2]))
    >>> values, indices
    (tensor(3), tensor(2))
    """
    x = as_operand(input, "mode")
    dim = axis(dim, x.ndim, "mode")
    if x.ndim and not x.shape[dim]:
        raise BoundsError(f"mode: axis {dim} of shape {tuple(x.shape)} is empty")
    if x.ndim == 0:
        return taken(x, 0, keepdim, order_of(x, 0), mode_result)
    ordered, order = sorted_by(x.detach(), dim, -1, False)
    size, rest = x.shape[dim], [0] * (x.ndim - 1 - dim)
    cut = lib.norch_slice
    differs = lib.norch_binary(_NE, cut(ordered, dim, 1, size, 1), cut(ordered, dim, 0, size - 1, 1))
    begins = padded(differs, [1, *rest], [0, *rest], True)
    positions = lib.norch_reshape(iota(size, begins), (size, *[1] * len(rest)))
    latest = cummax(lib.norch_ternary(_WHERE, begins, positions, operand(0)), dim).values
    runs = lib.norch_binary(_SUB, positions, latest)  # how many equal ones came before
    place = lib.norch_reduce(_ARGMAX, runs, (dim,), True, -1, 0.0)
    return taken(x, dim, keepdim, lib.norch_gather(order, dim, place), mode_result)


# ---- distinct elements --------------------------------------------------------------------------------------------


@method(numpy=True, out=False)
@optional_results("return_inverse", "return_counts")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in order, as a vector, or with dim the distinct slices along it. return_inverse adds the
    position of each element of input among them, return_counts their numbers of occurrences.

    >>> norch.unique(norch.tensor([2, 1, 2]), return_counts=True)
    (tensor([1, 2]), tensor([1, 2]))
    """
    flag(sorted, "unique: sorted")
    return _distinct(as_operand(input, "unique"), True, return_inverse, return_counts, dim)


@method(numpy=True, out=False)
@optional_results("return_inverse", "return_counts")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements that differ from their predecessor, in their order, as a vector, or with dim the slices along it.

    >>> norch.unique_consecutive(norch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    return _distinct(as_operand(input, "unique_consecutive"), False, return_inverse, return_counts, dim)


def _distinct(input: Tensor, ordered: bool, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    flag(return_inverse, "unique: return_inverse")
    flag(return_counts, "unique: return_counts")
    x = input.detach()
    if dim is None and not return_inverse and not return_counts:
        values = lib.norch_reshape(x, (-1,))
        values = lib.norch_sorted(values, 0, False) if ordered else values
        return record(_Distinct, lib.norch_mask_get(values, _begins(values)), (input,), ())
    order: Any = None  # of the rows, where they are not in their own
    if dim is None:
        rows = lib.norch_reshape(x, (-1,))
        if ordered:
            rows, order = sorted_by(rows, 0, -1, False)
    else:
        lines = x.movedim(dim, 0) if x.ndim else x.reshape(1)
        if lines.shape[0] and not lines.numel():
            raise ArgumentError(f"unique: shape {tuple(x.shape)} has an empty axis besides {dim}")
        rows = lines.reshape(lines.shape[0], -1 if lines.numel() else 1)
        if ordered:
            for column in reversed(range(rows.shape[1])):  # stable sorts, by the last column first
                by = rows.select(1, column)
                permutation = order_of(by if order is None else by.index_select(0, order), 0)
                order = permutation if order is None else order.index_select(0, permutation)
            rows = rows.index_select(0, order)
        rows = rows.select(1, 0) if rows.shape[1] == 1 else rows
    count = rows.shape[0]
    begins = _begins(rows)
    starts = lib.norch_reshape(lib.norch_nonzero(begins, False), (-1,))
    if dim is None:
        values = lib.norch_mask_get(rows, begins)
    else:
        values = x.index_select(dim, starts if order is None else order.index_select(0, starts))
    out = [record(_Distinct, values, (input,), ())]
    if return_inverse:
        inverse = cumsum(begins, 0) - 1
        if order is not None:
            inverse = inverse.new_zeros((count,)).scatter_add(0, order, inverse)
        out.append(inverse.reshape(x.shape) if dim is None else inverse)
    if return_counts:
        out.append(_differences(padded(starts, [0], [1], count), 0) if count else starts)
    return tuple(out) if len(out) > 1 else out[0]


_Distinct = derivative("unique", grad=refused("unique, unique_consecutive: the derivative"))


def _begins(rows: Tensor) -> Tensor:
    """Where the rows, or elements, are not those before them."""
    begins = rows.new_ones((rows.shape[0],), dtype=bool_)
    if rows.ndim == 1:
        lib.norch_binary_into(begins[1:], _NE, rows[1:], rows[:-1])
    elif rows.shape[0] > 1:
        begins[1:] = any(ne(rows[1:], rows[:-1]), 1)
    return begins


@rename_errors(out=True)
def isin(elements: Operand, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among test_elements, or with invert whether it is not. Either argument may be a number.

    >>> norch.isin(norch.arange(4), norch.tensor([1, 3]))
    tensor([False,  True, False,  True])
    """
    x, among = on_common_device(as_operand(elements, "isin"), as_operand(test_elements, "isin"))
    if among.numel() == 0:
        matches = (x != x) & False
    else:
        ordered = lib.norch_sorted(reshape(among, -1), 0, False)
        nearest = searchsorted(ordered, x).clamp(max=among.numel() - 1)
        matches = reshape(ordered.index_select(0, reshape(nearest, -1)), x.shape) == x
    return ~matches if invert else matches


# ---- neighbours, counts --------------------------------------------------------------------------------------------


@method(numpy=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences along dim: each element minus the one before it, repeated n times. For bool, whether the two differ.
    prepend and append are joined to input first.

    >>> norch.diff(norch.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    x = at_least(1, as_operand(input, "diff"), "diff")
    dim = axis(dim, x.ndim, "diff")
    if int64(n, "diff: n") < 0:
        raise ArgumentError(f"diff: the order n is not negative, got {n}")
    if n == 0:
        return x.clone()
    parts = [as_operand(part, "diff") for part in (prepend, x, append) if part is not None]
    if {part.ndim for part in parts} != {x.ndim}:  # cat() skips empty vectors
        raise ShapeError(f"diff: prepend and append need {x.ndim} dimensions, as the input of {tuple(x.shape)}")
    x = cat(parts, dim) if len(parts) > 1 else x
    for _ in range(min(n, lib.norch_shape(x)[dim])):
        x = _differences(x, dim)
    return x


def _differences_grad(g: Tensor, dim: int) -> Tensor:
    rest = [0] * (g.ndim - 1 - dim)
    return -_differences(padded(g, [1, *rest], [1, *rest], 0), dim)


@differentiable("diff", grad=_differences_grad)
def _differences(x: Tensor, dim: int) -> Tensor:
    size = lib.norch_shape(x)[dim]
    later, earlier = lib.norch_slice(x, dim, 1, size, 1), lib.norch_slice(x, dim, 0, size - 1, 1)
    return lib.norch_binary(OPCODES["ne" if x.dtype is bool_ else "sub"], later, earlier)


@method(moves=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The number of occurrences of 0, 1, ... in input, a vector of integers that are not negative. The result has at
    least minlength elements. With weights, of the shape of input, it has the sums of the weights, as float32 if they
    are float32, else as float64.

    >>> norch.bincount(norch.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    x = as_operand(input, "bincount")
    if x.dtype.is_floating_point or x.dtype is bool_:
        raise DTypeError(f"bincount: expected integers, got {x.dtype}")
    is_filled = x.ndim == 1 and x.numel() > 0
    if x.ndim != 1 or (is_filled and _extreme("amin", x) < 0):
        raise ArgumentError(f"bincount: expected a 1-d tensor of integers not below 0, got shape {tuple(x.shape)}")
    if int64(minlength, "minlength") < 0:
        raise ArgumentError(f"bincount: minlength should be >= 0, got {minlength}")
    if weights is None:
        ones = x.new_ones((), dtype=int64_)
    else:
        ones = as_operand(weights, "bincount")
        if ones.shape != x.shape:
            raise ShapeError(f"bincount: weights of shape {tuple(ones.shape)} for input of shape {tuple(x.shape)}")
        ones = ones if ones.dtype is float32 else ones.to(float64)
    size = max(_extreme("amax", x) + 1 if is_filled else 0, minlength)
    return _sums(ones, x, size)


@differentiable("bincount", grad=lambda g, index: g[index])
def _sums(weights: Tensor, index: Tensor, size: int) -> Tensor:
    """The sum of the weights of each index. weights broadcast to the shape of index."""
    return lib.norch_scatter(weights.new_zeros((size,)), KINDS["SCATTER_ADD"], 0, index, weights, True)


def _extreme(name: str, x: Tensor) -> int:
    return lib.norch_item(lib.norch_reduce(OPCODES[name], x, None, False, -1, 0.0))


__all__ = public(globals())
