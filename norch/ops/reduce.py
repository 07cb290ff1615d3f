"""Reductions over axes: sum, mean, max ... (csrc/ops/reduce.c), and what is composed of them. Norms: norm.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._handle import Handle, alias
from .._lib import flag, lib
from ..autograd import derivatives as d
from ..autograd.forms import Reduction
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge, like_of
from ..dtype import dtype as DType  # noqa: N812
from ..dtype import dtype_named, float32, float64, get_default_dtype, uint8
from ..errors import ArgumentError
from ._forms import OPS
from ._operand import as_operand, named_function, numpy_names, operand, public, rename_errors
from ._results import aminmax_result, max_result, min_result
from .pointwise import isnan, ne, where

Dims = int | Sequence[int] | None


def _axes(dim: Dims) -> Any:
    """dim as C takes it: a sequence of axes, None for all."""
    return dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)


def _reduction(
    x: Any,
    name: str,
    node_class: type[Reduction] | None,
    axes: Any,
    keepdim: Any,
    dtype: int = -1,
    param: float = 0.0,
) -> Any:
    """One REDUCE row over x, recorded when node_class is given."""
    out = lib.norch_reduce(OPS[name], x, axes, keepdim, dtype, param)
    return out if node_class is None else recorded(node_class, x, out, axes, keepdim, param)


def recorded(node_class: type[Reduction], x: Any, out: Any, axes: Any, keepdim: Any, param: float = 0.0) -> Any:
    """out, which x was reduced to, with its history."""
    to_x = x._node if x._view is None else edge(x)
    if to_x is not None and mode.enabled:
        node = node_class(to_x)
        node.like = like_of(x)
        node.axes, node.keepdim = axes, keepdim
        node.param = param
        node._x = x if "x" in node_class.saves[0] else None
        node._out = alias(out) if node_class.saves_out else None
        out._node = node
    return out


def _elements(x: Any, out: Any) -> float:
    """How many elements of x went into one of out."""
    outputs = out.numel()
    return x.numel() / outputs if outputs else 0.0


# ---- sums and products --------------------------------------------------------------------------------------------


@numpy_names
def sum(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:  # noqa: A001, A002
    """The sum over all elements, or over the axes dim. Integers and bool add up in int64.

    >>> norch.sum(norch.ones(2, 3), dim=1)
    tensor([3., 3.])
    """
    x = as_operand(input, "sum")
    if dtype is not None:
        x, code = _in_dtype(x, dtype)
        return _reduction(x, "sum", d.Sum, _axes(dim), keepdim, code)
    return _reduction(x, "sum", d.Sum, _axes(dim), keepdim)


def _in_dtype(x: Any, dtype: Any) -> tuple[Any, int]:
    wanted = dtype_named(dtype)
    return x.to(wanted), wanted.code


@numpy_names
def nansum(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:  # noqa: A002
    """sum() of what is not NaN."""
    x = as_operand(input, "nansum")
    return sum(where(isnan(x), 0, x) if x.dtype.is_floating_point else x, dim, keepdim, dtype=dtype)


@numpy_names
def mean(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:  # noqa: A002
    """The mean over all elements, or over the axes dim. Floats only; NaN over no elements.

    >>> norch.mean(norch.tensor([1.0, 2.0]))
    tensor(1.5000)
    """
    x = as_operand(input, "mean")
    if dtype is not None:
        x = x.to(dtype)
    out = _reduction(x, "mean", d.Mean, _axes(dim), keepdim)
    if out._node is not None:
        out._node.param = _elements(x, out)
    return out


def _mean_square(x: Any) -> Any:
    """The mean of the squares of all elements, in one pass. Floats only."""
    x = as_operand(x, "mean_square")
    out = _reduction(x, "mean_square", d.MeanSquare, None, False)
    if out._node is not None:
        out._node.param = x._numel
    return out


@numpy_names
def nanmean(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:  # noqa: A002
    """mean() of what is not NaN; NaN where nothing is left."""
    x = as_operand(input, "nanmean")
    if dtype is not None:
        x = x.to(dtype)
    if not x.dtype.is_floating_point:
        return mean(x, dim, keepdim)  # which says what is wrong
    return nansum(x, dim, keepdim) / sum(isnan(x).logical_not(), dim, keepdim)


@numpy_names
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:  # noqa: A002
    """The product over all elements, or over the axis dim. Integers and bool multiply in int64."""
    x = as_operand(input, "prod")
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"prod: dim is one axis, not {dim}")
    code = -1
    if dtype is not None:
        x, code = _in_dtype(x, dtype)
    return _reduction(x, "prod", d.Prod, _axes(dim), keepdim, code)


@numpy_names
def count_nonzero(input: Any, dim: Dims = None) -> Any:  # noqa: A002
    """How many elements are not 0 (int64), of all or over the axes dim."""
    return sum(ne(as_operand(input, "count_nonzero"), 0), dim)


# ---- extremes -----------------------------------------------------------------------------------------------------


@numpy_names
def amax(input: Any, dim: Dims = (), keepdim: bool = False) -> Any:  # noqa: A002
    """The largest element, over all or the axes dim; NaN wins. Equal ones share the gradient (NaN beside a NaN)."""
    return _reduction(as_operand(input, "amax"), "amax", d.Amax, _axes(dim), keepdim)


@numpy_names
def amin(input: Any, dim: Dims = (), keepdim: bool = False) -> Any:  # noqa: A002
    """The smallest element, over all or the axes dim; NaN wins. Equal ones share the gradient (NaN beside a NaN)."""
    return _reduction(as_operand(input, "amin"), "amin", d.Amin, _axes(dim), keepdim)


@numpy_names
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:  # noqa: A002
    """(min, max): amin() and amax(), of all or over the axis dim."""
    return aminmax_result(amin(input, _axes(dim), keepdim), amax(input, _axes(dim), keepdim))


@numpy_names
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:  # noqa: A002
    """The index (int64) of the largest element along dim, or in the flattened tensor; the first of equals."""
    return _reduction(as_operand(input, "argmax"), "argmax", None, _axes(dim), keepdim)


@numpy_names
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:  # noqa: A002
    """The index (int64) of the smallest element along dim, or in the flattened tensor; the first of equals."""
    return _reduction(as_operand(input, "argmin"), "argmin", None, _axes(dim), keepdim)


@numpy_names
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:  # noqa: A001, A002
    """The largest element; with dim, (values, indices) along it; with a tensor in place of dim, maximum().

    >>> norch.max(norch.tensor([[1.0, 3.0], [2.0, 0.0]]), dim=1).indices
    tensor([1, 0])
    """
    return _extreme(input, dim, keepdim, other, "max", max_result)


@numpy_names
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:  # noqa: A001, A002
    """The smallest element; with dim, (values, indices) along it; with a tensor in place of dim, minimum()."""
    return _extreme(input, dim, keepdim, other, "min", min_result)


def _extreme(x: Any, dim: Any, keepdim: bool, other: Any, name: str, result: Any) -> Any:
    x = as_operand(x, name)
    if other is not None or isinstance(dim, Handle):
        return getattr(x, name + "imum")(dim if other is None else other)
    if dim is None:
        return _reduction(x, "a" + name, d.Max if name == "max" else d.Min, None, False)
    return taken(x, dim, keepdim, _reduction(x, "arg" + name, None, (dim,), True), result)


def taken(x: Any, dim: int, keepdim: bool, indices: Any, result: Any) -> Any:
    """result(values, indices): the elements of x at indices, whose size along dim is 1."""
    values = x.gather(dim, indices)
    if not flag(keepdim, "keepdim") and x.ndim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return result(values, indices)


# ---- truth --------------------------------------------------------------------------------------------------------


@numpy_names
def any(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:  # noqa: A001, A002
    """Whether one element is non-zero, over all or the axes dim. uint8 gives uint8."""
    return _truth(input, "any", dim, keepdim)


@numpy_names
def all(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:  # noqa: A001, A002
    """Whether every element is non-zero, over all or the axes dim. uint8 gives uint8."""
    return _truth(input, "all", dim, keepdim)


def _truth(input: Any, name: str, dim: Dims, keepdim: bool) -> Any:  # noqa: A002
    x = as_operand(input, name)
    out = x != 0 if dim in ((), []) else _reduction(x, name, None, _axes(dim), keepdim)  # no axes: element by element
    return out.to(uint8) if x.dtype is uint8 else out


# ---- moments ------------------------------------------------------------------------------------------------------


def _moment(name: str, node: Any, about: str) -> tuple[Any, Any]:
    """A measure of spread, and the function that gives the mean beside it."""

    def spread(
        input: Any,  # noqa: A002
        dim: Dims = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Any:
        return _spread_of(input, name, node, dim, unbiased, keepdim, correction)

    def beside_mean(
        input: Any,  # noqa: A002
        dim: Dims = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> tuple[Any, Any]:
        out = spread(input, dim, unbiased, keepdim, correction=correction)
        return out, mean(input, None if isinstance(dim, bool) else dim, keepdim)

    both = named_function(beside_mean, f"{name}_mean", f"({name}(), mean()).")
    return numpy_names(named_function(spread, name, about)), numpy_names(both)


var, var_mean = _moment(
    "var",
    d.Var,
    "The variance over all elements, or over the axes dim: squared deviations summed, over n - correction.",
)
std, std_mean = _moment("std", d.Std, "The standard deviation: the square root of var().")


def _spread_of(x: Any, name: str, node: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    x = as_operand(x, name)
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or flag(unbiased, f"{name}: unbiased") else 0
    elif unbiased is not None:
        raise ArgumentError(f"{name}: give unbiased or correction, not both")
    out = _reduction(x, name, node, _axes(dim), keepdim, -1, correction)
    if out._node is not None:
        out._node.param = _elements(x, out) - correction
    return out


@numpy_names
@rename_errors
def logsumexp(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:  # noqa: A002
    """log(sum(exp(x))) over all elements or the axes dim, without overflow. Integers become floats.

    The largest is taken off first, where it is finite: Blanchard, Higham and Higham, IMA J. Numer. Anal. 41 (2021).

    >>> norch.logsumexp(norch.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6932)
    """
    x, axes = as_operand(input, "logsumexp"), _axes(dim)
    dtype = x.dtype if x.dtype.is_floating_point else get_default_dtype()
    wide = x if x.dtype in (float32, float64) else lib.norch_cast(x, (dtype if dtype is float64 else float32).code)
    top = None
    if wide._numel:
        top = lib.norch_reduce(OPS["amax"], wide, axes, True, -1, 0.0)
        top = lib.norch_ternary(OPS["where"], lib.norch_unary(OPS["isfinite"], top), top, operand(0.0))
        wide = lib.norch_binary(OPS["sub"], wide, top)
    out = lib.norch_reduce(OPS["sum"], lib.norch_unary(OPS["exp"], wide), axes, keepdim, -1, 0.0)
    out = lib.norch_unary(OPS["log"], out)
    if top is not None:  # of one element each
        out = lib.norch_binary(OPS["add"], out, lib.norch_reduce(OPS["amax"], top, axes, keepdim, -1, 0.0))
    return recorded(d.Logsumexp, x, lib.norch_cast(out, dtype.code) if out.dtype is not dtype else out, axes, keepdim)


def _sum_to(x: Any, like: Handle) -> Any:
    """x summed over the axes that broadcasting added, to the shape, dtype and device of like."""
    out = lib.norch_sum_to(x, like)
    if out is not x and mode.enabled and (to_x := edge(x)) is not None:
        node = d.SumTo(to_x)
        node.like = like_of(x)
        out._node = node
    return out


class ReduceMethods(Handle):
    """The reductions of Tensor."""

    __slots__ = ()

    nansum, mean, nanmean, prod, count_nonzero = nansum, mean, nanmean, prod, count_nonzero
    amax, amin, aminmax, argmax, argmin, max, min = amax, amin, aminmax, argmax, argmin, max, min
    any, all, var, std, logsumexp = any, all, var, std, logsumexp
    _mean_square = _mean_square
    _sum_to = _sum_to

    def sum(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None, **named: Any) -> Any:
        """The sum over all elements, or over the axes dim."""
        if dim is None and dtype is None and not named:
            return _reduction(self, "sum", d.Sum, None, keepdim)
        return sum(self, **{"dim": dim, "keepdim": keepdim, "dtype": dtype, **named})

    def _reduced(self, name: str, axes: Any, keepdim: Any) -> Any:
        """A recorded reduction over axes (None: all), for derivatives."""
        out = _reduction(self, name, d.Mean if name == "mean" else d.Sum, axes, keepdim)
        if name == "mean" and out._node is not None:
            out._node.param = _elements(self, out)
        return out


# taken and recorded are for the other families
__all__ = public(globals(), "recorded", "taken")
