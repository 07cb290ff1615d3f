"""An index for each element along one axis: gather, scatter, and reductions by index (csrc/ops/index.c).

A function ``f_`` writes into its first argument; ``f`` gives a copy.
"""

from __future__ import annotations

import math
from functools import cache

from .._binding.library import lib
from .._binding.numbers import flag
from .._package.typing import Any, Operand, Tensor
from ..autograd.derivative import derivative, write_derivative
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable
from ..autograd.levels import zeros_of
from ..autograd.record import record, record_write
from ..autograd.transpose import walking
from ..dtype import float32, int64
from ..errors import ArgumentError, DTypeError, ShapeError
from ._autocast import in_autocast, policy
from ._operand import as_operand
from .copy import cast, cat
from .index import KINDS, along_axis, check_index, of_last_writes, result_of_write, source_for, take, without_axis
from .op import method
from .pointwise import where
from .view import axis as axis_of
from .view import slice_


@method(numpy=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """out[i][j] = x[index[i][j]][j] for dim 0, and accordingly for other axes. The result has the shape of index, which
    has integers.

    >>> norch.gather(norch.tensor([[1, 2], [3, 4]]), 1, norch.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    x = as_operand(input, "gather")
    out = lib.norch_gather(x, dim, check_index(index, "gather"))
    return record(gather_node("gather"), out, (x,), (index, dim))


def _gather_grad(g: Any, x_meta: Any, index: Any, dim: int) -> Any:
    g = g if g.ndim == index.ndim else g.unsqueeze(dim)  # of taken()
    return scatter_add_(zeros_of(x_meta, g, index), dim, index, g)


@cache
def gather_node(name: str) -> Any:
    """The class of the nodes of an operation that gathers elements along an axis, as sort() does."""
    return derivative(name, tensors=("index",), grad=_gather_grad)


def taken(x: Tensor, dim: int, keepdim: bool, indices: Tensor, result: Any) -> Any:
    """result(values, indices), where values are the elements of x at indices, whose size along dim is 1."""
    values, index = lib.norch_gather(x, dim, indices), indices
    if not flag(keepdim, "keepdim") and x.ndim:
        values, indices = lib.norch_squeeze(values, (dim,)), lib.norch_squeeze(indices, (dim,))
    return result(record(gather_node(result.__name__.removesuffix("_result")), values, (x,), (index, dim)), indices)


@method(moves=True, numpy=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather() that broadcasts the other axes and allows negative indices. Without dim, x is flattened.

    >>> x = norch.tensor([[3, 1], [2, 4]])
    >>> norch.take_along_dim(x, x.argsort(1), dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    x, indices = as_operand(input, "take_along_dim"), check_index(indices, "take_along_dim")
    if indices.dtype is not int64:
        raise DTypeError(f"take_along_dim: indices must be int64, not {indices.dtype.name}")
    if dim is None:
        return take(x, indices.reshape(-1))
    shape, index_shape = lib.norch_shape(x), lib.norch_shape(indices)
    if len(shape) != len(index_shape):
        raise ShapeError(f"take_along_dim: indices of {indices.ndim} dimensions for a tensor of {x.ndim}")
    axis = axis_of(dim, len(shape), "take_along_dim")
    size = shape[axis] if shape else 1
    indices = where(indices < 0, indices + size, indices)
    common = [a if i == axis or b == 1 else b for i, (a, b) in enumerate(zip(shape, index_shape))]
    if common != list(shape):
        x = x.expand(common)
    if shape and tuple(common[:axis] + common[axis + 1 :]) != index_shape[:axis] + index_shape[axis + 1 :]:
        common[axis] = index_shape[axis]
        indices = indices.expand(common)
    return gather(x, dim, indices)


def _scatter(x: Tensor, dim: int, index: Tensor, src: Operand, adds: bool, in_place: bool, name: str) -> Tensor:
    src, index = source_for(x, src, name), check_index(index, name)
    if in_place:
        check_writable(x, name + "_", src)
    node = record_write(_ScatterAdd if adds else _Scatter, x, src, index, dim)
    out = lib.norch_scatter(x, KINDS["SCATTER_ADD" if adds else "SCATTER"], dim, index, src, in_place)
    return result_of_write(out, node, in_place)


def _src_grad(g: Any, values_meta: Any, index: Any, dim: int) -> Any:
    return _padded_to(gather(g, dim, index), values_meta)


def _written_grad(g: Any, values_meta: Any, index: Any, dim: int) -> Any:
    """The gradient of the src of scatter(). As in PyTorch, values that a later one has replaced have the gradient of
    that one, except where the walk must be exact."""
    written = gather(g, dim, index)
    if walking.exact:
        zeros = zeros_of(g, index, g).to(int64)
        written = of_last_writes(written, lambda numbers: gather(scatter(zeros, dim, index, numbers), dim, index))
    return _padded_to(written, values_meta)


def _padded_to(part: Any, src_meta: Any) -> Any:
    """The gradient of src, if the index used only a corner of it: 0 elsewhere. A number was used everywhere."""
    if part.shape == src_meta.shape:
        return part
    if src_meta.ndim == 0:
        return part.sum()
    whole = zeros_of(src_meta, part)
    _corner(whole, part.shape).copy_(part)
    return whole


def _corner(x: Any, shape: Any) -> Any:
    """The first elements along each axis, so many that the result has this shape."""
    for dim, size in enumerate(shape):
        x = slice_(x, dim, 0, size, 1)
    return x


def _overwritten_grad(g: Any, index: Any, dim: int) -> Any:
    return scatter(g, dim, index, 0)


_Scatter = write_derivative(
    "scatter", ("index", "dim"), tensors=("index",), grad_x=_overwritten_grad, grad_values=_written_grad
)
_ScatterAdd = write_derivative(
    "scatter_add", ("index", "dim"), tensors=("index",), grad_x=lambda g: g, grad_values=_src_grad, shares_grad=True
)


def _scatter_by(x: Tensor, dim: int, index: Tensor, src: Any, value: Any, reduce: str | None, in_place: bool) -> Tensor:
    if (src is None) == (value is None):
        raise TypeError("scatter: give src, a tensor, or value, a number")
    source = value if src is None else src
    if reduce is None or reduce == "add":
        return _scatter(x, dim, index, source, reduce == "add", in_place, "scatter")
    if reduce != "multiply":
        raise ArgumentError(f"scatter: reduce is None, 'add' or 'multiply', not {reduce!r}")
    source = source_for(x, source, "scatter")
    source = source if source.ndim else source.expand(index.shape)
    return (x.scatter_reduce_ if in_place else x.scatter_reduce)(dim, index, source, "prod")


@method(out=True)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Operand | None = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """A copy of x with out[index[i][j]][j] = src[i][j] for dim 0, and accordingly for other axes. Of several writes to
    an element the last one counts. src is a tensor of the dtype of x, or a number (also as value). reduce="add" or
    "multiply" adds or multiplies instead.

    >>> norch.scatter(norch.zeros(3), 0, norch.tensor([2, 0]), norch.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """
    return _scatter_by(as_operand(input, "scatter"), dim, index, src, value, reduce, False)


@method
def scatter_(
    x: Tensor, dim: int, index: Tensor, src: Operand | None = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """scatter() in place."""
    return _scatter_by(x, dim, index, src, value, reduce, True)


@method(out=True)
@policy("- widest")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Operand) -> Tensor:
    """A copy of x with out[index[i][j]][j] += src[i][j] for dim 0, and accordingly for other axes.

    >>> norch.scatter_add(norch.zeros(3), 0, norch.tensor([1, 1, 2]), norch.tensor([5.0, 6.0, 7.0]))
    tensor([ 0., 11.,  7.])
    """
    if mode.casting and (out := in_autocast(scatter_add, input, dim, index, src)) is not None:
        return out
    return _scatter(as_operand(input, "scatter_add"), dim, index, src, True, False, "scatter_add")


@method
def scatter_add_(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """scatter_add() in place."""
    return _scatter(x, dim, index, src, True, True, "scatter_add")


# ---- reductions -----------------------------------------------------------------------------------------------------


def _reduced_into(x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str) -> Tensor:
    """A copy of x into which src is multiplied ("prod"), or which takes the extremes of both ("amax", "amin")."""
    if reduce == "prod" and x.is_complex() and src.dtype is x.dtype:
        out = _multiplied_into(x.detach(), dim, index, src.detach())
        return record(_ScatterProd, out, (x, src, index), (dim,))
    out = lib.norch_scatter(x, KINDS[f"SCATTER_{reduce.upper()}"], dim, index, src, False)
    return record(_ScatterProd if reduce == "prod" else _ScatterExtreme, out, (x, src, index), (dim,))


def _multiplied_into(x: Any, dim: int, index: Any, src: Any) -> Any:
    """A copy of complex x into which src is multiplied. Where the indices are in order, products of those that are
    equal take log2(n) steps, as in scan.py, and the last of several stays."""
    ones = x.new_ones(x.shape)
    if not x.ndim or not index.numel():
        return x * scatter(ones, dim, index, src)
    order = index.argsort(dim, stable=True)
    index, factors = gather(index, dim, order), gather(_corner(src, index.shape), dim, order)
    size, apart = index.shape[dim], 1
    while apart < size:
        equal = index.narrow(dim, apart, size - apart) == index.narrow(dim, 0, size - apart)
        later = factors.narrow(dim, apart, size - apart)
        products = later * factors.narrow(dim, 0, size - apart)
        factors = cat((factors.narrow(dim, 0, apart), products.where(equal, later)), dim)
        apart *= 2
    return x * scatter(ones, dim, index, factors)


def _scatter_extreme_grad(g: Any, x: Any, index: Any, src: Any, out: Any, dim: int) -> tuple[Any, Any, None]:
    """All elements that are equal to the result share its gradient."""
    from_x = x == out
    from_src = _corner(src, index.shape) == gather(out, dim, index)
    share = g / scatter_add(from_x.to(g.dtype), dim, index, from_src.to(g.dtype))
    return share.where(from_x, 0), _padded_to(gather(share, dim, index).where(from_src, 0), src), None


def _scatter_prod_grad(
    g: Any, needs_input_grad: tuple[bool, ...], x: Any, index: Any, src: Any, out: Any, dim: int
) -> tuple[Any, Any, None]:
    """The product of all other elements: out / src, unless one of them is 0."""
    grad_x = grad_src = None
    if needs_input_grad[0]:
        grad_x = g * _reduced_into(zeros_of(g, index, src).add_(1), dim, index, src, "prod")
    if needs_input_grad[1]:
        b = _corner(src, index.shape)
        zero = b == 0
        zeros = scatter_add_(zeros_of(g, index, zero), dim, index, zero.to(g.dtype))
        only_zero = zero & (gather(zeros, dim, index) == 1)
        without = _reduced_into(x, dim, index, b.masked_fill(only_zero, 1), "prod")
        quotient = gather(g * out, dim, index) / b.masked_fill(zero, 1)
        grad_src = _padded_to(gather(g * without, dim, index).where(only_zero, quotient), src)
    return grad_x, grad_src, None


_ScatterExtreme = derivative("scatter_reduce", ("x", "src", "index"), backward=_scatter_extreme_grad)
_ScatterProd = derivative("scatter_reduce", ("x", "src", "index"), backward=_scatter_prod_grad)


@method(inplace=True, moves=True, out=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of x with src[i][j] reduced into out[index[i][j]][j] for dim 0, and accordingly for other axes. reduce is
    "sum", "prod", "mean", "amax" or "amin". With include_self=False the elements of x do not take part.

    >>> norch.scatter_reduce(norch.zeros(2), 0, norch.tensor([0, 0]), norch.tensor([3.0, 5.0]), "amax")
    tensor([5., 0.])
    """
    x, index, src = (
        as_operand(input, "scatter_reduce"),
        check_index(index, "scatter_reduce"),
        as_operand(src, "scatter_reduce"),
    )
    flag(include_self, "scatter_reduce: include_self")
    neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}.get(reduce)
    if neutral is None:
        raise ArgumentError(f"scatter_reduce: reduce is 'sum', 'prod', 'mean', 'amax' or 'amin', not {reduce!r}")
    kind = x.dtype
    if reduce == "mean" and src.dtype is kind and (wide := _wide_for_sums(kind)) is not None:
        x, src = cast(x, wide), cast(src, wide)
    start = x
    if not include_self:
        if reduce[0] == "a" and not x.dtype.is_floating_point:  # any element of src will do as a start
            start = scatter(x, dim, index, src)
        else:
            start = scatter(x, dim, index, neutral)
    if reduce == "prod" or reduce[0] == "a":
        return _reduced_into(start, dim, index, src, reduce)
    total = scatter_add(start, dim, index, src)
    if reduce == "sum":
        return total
    counts = x.new_full(x.shape, int(include_self), dtype=int64)
    counts = scatter_add(counts, dim, index, 1).clamp(1)
    return cast(total / counts if x.dtype.kind in "fc" else total // counts, kind)


def _wide_for_sums(kind: Any) -> Any:
    """The dtype in which elements are summed if their dtype may be too narrow for the sum or the count; None if it is
    not.
    """
    if kind.is_floating_point and kind.itemsize == 2:
        return float32
    return int64 if kind.kind in "iu" and kind.itemsize < 8 else None


@method(inplace=True, moves=True, out=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of x in which the parts of source are reduced into the parts along dim at these indices (1-d). reduce is
    "prod", "mean", "amax" or "amin". With include_self=False the parts of x do not take part.

    >>> norch.index_reduce(norch.ones(2), 0, norch.tensor([1, 1]), norch.tensor([2.0, 5.0]), "prod")
    tensor([ 1., 10.])
    """
    x, source = as_operand(input, "index_reduce"), as_operand(source, "index_reduce")
    flag(include_self, "index_reduce: include_self")
    if reduce == "sum":
        raise ArgumentError("index_reduce: reduce is 'prod', 'mean', 'amax' or 'amin'; index_add() sums")
    whole, at = along_axis(x, dim, index, "index_reduce")
    axis = at.lead
    shape = [1] * whole.ndim
    shape[axis] = -1
    indices = index.reshape(shape).expand(source.shape if source.ndim else (1,))
    source = source if source.ndim else source.view(1)
    out = scatter_reduce(whole, axis, indices, source, reduce, include_self=include_self)
    return without_axis(out, x)
