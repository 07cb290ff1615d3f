"""Reductions over axes: sum, mean, max ... (csrc/ops/reduce.c), with their derivatives. Norms: norm.py.

The rows come first. They take axes as C does (axes_of). Their gradient functions may name axes and keepdim, the
arguments of the call, and param, the parameter of the row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._binding.library import lib
from .._binding.numbers import flag
from .._package.typing import Any, NamedTuple, Tensor, overload
from .._tensor.handle import Handle
from ..autograd.derivative import derivative, view_derivative
from ..autograd.grad_mode import mode
from ..autograd.levels import occurs
from ..autograd.record import record, record_view
from ..dtype import dtype as DType
from ..dtype import dtype_named, float32, float64, get_default_dtype, uint8
from ..errors import ArgumentError
from ._arguments import named_function, public
from ._entry import numpy_names
from ._operand import as_operand, operand
from .copy import cat
from .op import METHODS, OPCODES, method, op
from .pointwise import eq, isfinite, isnan, maximum, minimum, ne, where

Dims = int | Sequence[int] | None
max_result = NamedTuple("max_result", [("values", Tensor), ("indices", Tensor)])
min_result = NamedTuple("min_result", [("values", Tensor), ("indices", Tensor)])
aminmax_result = NamedTuple("aminmax_result", [("min", Tensor), ("max", Tensor)])


def axes_of(dim: Dims) -> Any:
    """dim in the form that rows take: a sequence of axes, or None for all."""
    return dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)


# ---- the rows, and their derivatives ---------------------------------------------------------------------------------


def expand_reduced(g: Tensor, x_meta: Handle, axes: Any, keepdim: bool) -> Tensor:
    """g, the gradient of a reduction of x over axes (None: all), as a view in the shape of x_meta."""
    out = lib.norch_expand_reduced(g, x_meta, axes, keepdim)
    return record_view(_ExpandReduced, out, g, expand_reduced, (x_meta, axes, keepdim))


_ExpandReduced = view_derivative("expand_reduced", grad=lambda g, arguments: sum_over(g, *arguments[1:]))


def _count(x_meta: Tensor, g: Tensor) -> float:
    """The number of elements of x that are reduced to one element of the result."""
    return x_meta._numel / g._numel if g._numel else 0.0


def _prod_grad(g: Tensor, x: Tensor, out: Tensor, axes: Any, keepdim: bool) -> Tensor:
    """g times the product of the other elements: out / x, or, if an element is 0, the product of those before it and
    those after it."""
    has_zero = (x == 0).any()
    quotient = None
    if lib.norch_recording() or not occurs(has_zero):  # a replay may meet other elements
        quotient = expand_reduced(g * out, x, axes, keepdim) / x
        if not lib.norch_recording():
            return quotient
    from .scan import products_of_others  # lazy, as few programs need it

    line, dim = (x.flatten(), 0) if axes is None or x.ndim == 0 else (x, axes[0])
    products = products_of_others(line, dim) * products_of_others(line, dim, True)
    product = expand_reduced(g, x, axes, keepdim) * products.reshape(x.shape)
    return product if quotient is None else product.where(has_zero, quotient)


def share_among(g: Tensor, chosen: Tensor, axes: Any, keepdim: bool) -> Tensor:
    """g divided equally among the elements where chosen is True; 0 for the others."""
    share = g / sum_over(chosen, axes, keepdim)
    return expand_reduced(share, chosen, axes, keepdim).where(chosen, 0)


def extreme_grad(g: Tensor, x: Tensor, out: Tensor, axes: Any, keepdim: bool) -> Tensor:
    """The gradient of max and min: equal extremes share it; NaNs count as extremes."""
    return share_among(g, (x == expand_reduced(out, x, axes, keepdim)) | x.isnan(), axes, keepdim)


def _amax_grad(g: Tensor, x: Tensor, out: Tensor, axes: Any, keepdim: bool) -> Tensor:
    """The gradient of amax and amin: equal extremes share it. As in PyTorch, all get NaN if one element is NaN."""
    chosen = x == expand_reduced(out, x, axes, keepdim)
    return expand_reduced(g / sum_over(chosen, axes, keepdim), x, axes, keepdim) * chosen


def _deviations(x: Tensor, axes: Any) -> Tensor:
    """x minus its mean, computed from differences to the first element, which are nearly exact even far from 0. They
    may overflow if that element is one of the largest numbers, or infinite."""
    reduced = range(x.ndim) if axes is None or not x.ndim else [axis % x.ndim for axis in axes]
    first = x.detach()[tuple([slice(0, 1) if axis in reduced else slice(None) for axis in range(x.ndim)])]
    apart = x - where(first.abs() < (1e307 if x.dtype is float64 else 1e37), first, 0.0)
    return apart - mean_over(apart, axes, True)


def _var_grad(g: Any, x: Any, axes: Any, keepdim: Any, param: float) -> Any:
    freedom = _count(x, g) - param
    slope = 2 / freedom if freedom > 0 else math.nan
    return expand_reduced(g * slope, x, axes, keepdim) * _deviations(x, axes)


def _std_grad(g: Tensor, x: Tensor, out: Tensor, axes: Any, keepdim: bool, param: float) -> Tensor:
    freedom = _count(x, g) - param
    slope = g / (freedom if freedom > 0 else math.nan) / out.where(out != 0, math.inf)  # their product may overflow
    return expand_reduced(slope, x, axes, keepdim) * _deviations(x, axes)


def norm_grad(g: Tensor, x: Tensor, out: Tensor, axes: Any, keepdim: bool) -> Tensor:
    """g x / norm, 0 at 0."""
    return expand_reduced(g / out.where(out != 0, math.inf), x, axes, keepdim) * x


sum_over: Any = op("sum", grad=expand_reduced, shares_grad=True)
mean_over = op(
    "mean",
    grad=lambda g, x_meta, axes, keepdim: expand_reduced(g / _count(x_meta, g), x_meta, axes, keepdim),
    shares_grad=True,
)
_nansum = op(
    "nansum",
    grad=lambda g, x, axes, keepdim: expand_reduced(g, x, axes, keepdim).where(isnan(x).logical_not(), 0),
)
mean_square = op("mean_square", grad=lambda g, x: x * (g * (2 / (x._numel or 1))))  # of all elements
norm_over = op("norm", grad=norm_grad)
_prod = op("prod", grad=_prod_grad)
_max, _min = op("max", row="amax", grad=extreme_grad), op("min", row="amin", grad=extreme_grad)
_amax, _amin = op("amax", grad=_amax_grad), op("amin", grad=_amax_grad)
_argmax, _argmin, _any, all_over = op("argmax"), op("argmin"), op("any"), op("all")
_var, _std = op("var", grad=_var_grad), op("std", grad=_std_grad)


# ---- sums and products --------------------------------------------------------------------------------------------


@numpy_names(autocast="- float32")
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over all elements, or over the axes dim. Integers and bool are summed in int64.

    >>> norch.sum(norch.ones(2, 3), dim=1)
    tensor([3., 3.])
    """
    x = as_operand(input, "sum")
    if dtype is not None:
        x, code = _in_dtype(x, dtype)
        return sum_over(x, axes_of(dim), keepdim, code)
    return sum_over(x, axes_of(dim), keepdim)


def _in_dtype(x: Tensor, dtype: DType) -> tuple[Any, int]:
    wanted = dtype_named(dtype)
    return x.to(wanted), wanted.code


@method(numpy=True)
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum of the elements that are not NaN, over all axes or the axes dim.

    >>> norch.nansum(norch.tensor([1.0, norch.nan, 3.0]))
    tensor(4.)
    """
    x = as_operand(input, "nansum")
    if x.dtype.kind != "f" or (dtype is not None and dtype_named(dtype).kind != "f"):
        return sum(where(isnan(x), 0, x) if x.is_complex() else x, dim, keepdim, dtype=dtype)
    return _nansum(x if dtype is None else x.to(dtype), axes_of(dim), keepdim)


@method(numpy=True)
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean over all elements, or over the axes dim. Floats and complex numbers only. The mean of no elements is
    NaN.

    >>> norch.mean(norch.tensor([1.0, 2.0]))
    tensor(1.5000)
    """
    x = as_operand(input, "mean")
    if dtype is not None:
        x = x.to(dtype)
    return mean_over(x, axes_of(dim), keepdim)


@method(numpy=True)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean of the elements that are not NaN, over all axes or the axes dim; NaN if all elements are NaN.

    >>> norch.nanmean(norch.tensor([1.0, norch.nan, 3.0]))
    tensor(2.)
    """
    x = as_operand(input, "nanmean")
    if dtype is not None:
        x = x.to(dtype)
    if x.dtype.kind not in "fc":
        return mean(x, dim, keepdim)  # raises the error
    if x.dtype.itemsize == 2:
        return nanmean(x.float(), dim, keepdim).to(x.dtype)
    is_number, axes = eq(x, x), axes_of(dim)
    x = where(is_number, x, 0)
    total, count = sum_over(x, axes, keepdim), sum_over(is_number, axes, keepdim)
    whole = mean_over(x, axes, keepdim)  # finite where the sum overflows
    return where(isfinite(total), total / count, whole * (x.numel() / (total.numel() or 1) / count.to(x.dtype)))


@method(numpy=True, autocast="float32")
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The product over all elements, or over the axis dim. Integers and bool are multiplied in int64.

    >>> norch.prod(norch.tensor([2, 3, 4]))
    tensor(24)
    """
    x = as_operand(input, "prod")
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"prod: dim is one axis, not {dim}")
    code = -1
    if dtype is not None:
        x, code = _in_dtype(x, dtype)
    return _complex_prod(x, dim, keepdim) if x.is_complex() else _prod(x, axes_of(dim), keepdim, code)


def _complex_prod(x: Any, dim: int | None, keepdim: bool) -> Any:
    """Multiplies the two halves elementwise until one element is left."""
    shape = list(x.shape)
    line = x.flatten() if dim is None or x.ndim == 0 else x.movedim(dim, 0)
    if len(line) == 0:
        line = line.new_ones((1, *line.shape[1:]))
    while (count := len(line)) > 1:
        half = count // 2
        products = line[:half] * line[half : 2 * half]
        line = cat((products, line[2 * half :])) if count % 2 else products
    if not flag(keepdim, "prod: keepdim") or x.ndim == 0:
        return line[0]
    if dim is None:
        return line.reshape([1] * len(shape))
    return line.movedim(0, dim)


@method(numpy=True, out=False)
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """The number of elements that are not 0, as int64, over all axes or the axes dim.

    >>> norch.count_nonzero(norch.tensor([0, 5, 6]))
    tensor(2)
    """
    return sum(ne(as_operand(input, "count_nonzero"), 0), dim)


# ---- extremes -----------------------------------------------------------------------------------------------------


@method(numpy=True)
def amax(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The largest element over all axes or the axes dim; NaN if there is a NaN. Equal largest elements share the
    gradient; next to a NaN it is NaN.

    >>> norch.amax(norch.tensor([[1, 2], [3, 0]]), dim=1)
    tensor([2, 3])
    """
    return _amax(as_operand(input, "amax"), axes_of(dim), keepdim)


@method(numpy=True)
def amin(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The smallest element over all axes or the axes dim; NaN if there is a NaN. Equal smallest elements share the
    gradient; next to a NaN it is NaN.

    >>> norch.amin(norch.tensor([[1, 2], [3, 0]]), dim=1)
    tensor([1, 0])
    """
    return _amin(as_operand(input, "amin"), axes_of(dim), keepdim)


@method(numpy=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> aminmax_result:
    """(min, max): the results of amin() and amax(), over all axes or the axis dim.

    >>> norch.aminmax(norch.tensor([3, 1, 2]))
    aminmax_result(min=tensor(1), max=tensor(3))
    """
    x, axes = as_operand(input, "aminmax"), axes_of(dim)
    return aminmax_result(_amin(x, axes, keepdim), _amax(x, axes, keepdim))


@method(numpy=True)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index, int64, of the largest element along dim, or in the flattened tensor. Of several it is the first.

    >>> norch.argmax(norch.tensor([1, 5, 2]))
    tensor(1)
    """
    return _argmax(as_operand(input, "argmax"), axes_of(dim), keepdim)


@method(numpy=True)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index, int64, of the smallest element along dim, or in the flattened tensor. Of several it is the first.

    >>> norch.argmin(norch.tensor([1, 5, 0]))
    tensor(2)
    """
    return _argmin(as_operand(input, "argmin"), axes_of(dim), keepdim)


@overload
def max(input: Tensor, dim: None = ..., keepdim: bool = ..., *, other: None = ...) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = ...) -> max_result: ...
@overload
def max(input: Tensor, dim: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, *, other: Tensor) -> Tensor: ...
@method(numpy=True)
def max(input: Tensor, dim: Tensor | int | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The largest element; with dim, (values, indices) along it. If the second argument is a tensor, maximum().

    >>> norch.max(norch.tensor([[1.0, 3.0], [2.0, 0.0]]), dim=1).indices
    tensor([1, 0])
    """
    return _extreme(input, dim, keepdim, other, "max", max_result)


@overload
def min(input: Tensor, dim: None = ..., keepdim: bool = ..., *, other: None = ...) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = ...) -> min_result: ...
@overload
def min(input: Tensor, dim: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, *, other: Tensor) -> Tensor: ...
@method(numpy=True)
def min(input: Tensor, dim: Tensor | int | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The smallest element; with dim, (values, indices) along it. If the second argument is a tensor, minimum().

    >>> values, indices = norch.min(norch.tensor([[1, 2], [3, 0]]), dim=1)
    >>> values, indices
    (tensor([1, 0]), tensor([0, 1]))
    """
    return _extreme(input, dim, keepdim, other, "min", min_result)


def _extreme(x: Tensor, dim: Any, keepdim: bool, other: Any, name: str, result: Any) -> Any:
    x = as_operand(x, name)
    binary, row, place = (maximum, _max, _argmax) if name == "max" else (minimum, _min, _argmin)
    if other is not None or isinstance(dim, Handle):
        return binary(x, dim if other is None else other)
    if dim is None:
        return row(x)
    from .scatter import taken  # lazy, as few programs need it

    return taken(x, dim, keepdim, place(x, (dim,), True), result)


# ---- truth --------------------------------------------------------------------------------------------------------


@method(numpy=True)
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not 0, over all axes or the axes dim. uint8 gives uint8.

    >>> norch.any(norch.tensor([0, 5])), norch.any(norch.tensor([0, 0]))
    (tensor(True), tensor(False))
    """
    return _truth(input, _any, dim, keepdim)


@method(numpy=True)
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether every element is not 0, over all axes or the axes dim. uint8 gives uint8.

    >>> norch.all(norch.tensor([1, 5])), norch.all(norch.tensor([0, 5]))
    (tensor(True), tensor(False))
    """
    return _truth(input, all_over, dim, keepdim)


def _truth(input: Tensor, row: Any, dim: Dims, keepdim: bool) -> Tensor:
    x = as_operand(input, row.__name__)
    out = x != 0 if dim in ((), []) else row(x, axes_of(dim), keepdim)  # no axes: element by element
    return out.to(uint8) if x.dtype is uint8 else out


# ---- moments ------------------------------------------------------------------------------------------------------


def _moment(row: Any, about: str) -> tuple[Any, Any]:
    """Two functions: a moment; (moment, mean)."""
    name = row.__name__

    def moment(
        input: Tensor,
        dim: Dims = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor:
        x = as_operand(input, name)
        if isinstance(dim, bool):  # var(unbiased)
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None or flag(unbiased, f"{name}: unbiased") else 0
        elif unbiased is not None:
            raise ArgumentError(f"{name}: give unbiased or correction, not both")
        return row(x, axes_of(dim), keepdim, -1, correction)

    def beside_mean(
        input: Tensor,
        dim: Dims = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        x = as_operand(input, name)
        out = moment(x, dim, unbiased, keepdim, correction=correction)
        return out, mean(x, None if isinstance(dim, bool) else dim, keepdim)

    example = f">>> norch.{name}_mean(norch.tensor([1.0, 2.0, 3.0]))\n(tensor(1.), tensor(2.))\n"
    both = named_function(beside_mean, f"{name}_mean", f"({name}(), mean()).\n\n{example}")
    return method(numpy_names(named_function(moment, name, about))), numpy_names(composed=True, out=False)(both)


var, var_mean = _moment(
    _var,
    """The variance over all elements, or over the axes dim: the sum of squared deviations / (n - correction).

    >>> x = norch.tensor([2.0, 4.0])
    >>> norch.var(x), norch.var(x, correction=0)
    (tensor(2.), tensor(1.))
    """,
)
std, std_mean = _moment(
    _std,
    """The standard deviation: the square root of var().

    >>> norch.std(norch.tensor([2.0, 4.0]), correction=0)
    tensor(1.)
    """,
)


@method(numpy=True, composed=True, autocast="- float32")
def logsumexp(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over all axes or the axes dim, without overflow. Integers become floats. The maximum, if finite,
    is subtracted before exp and added after log (Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021). For
    complex numbers it is the largest real part.

    >>> norch.logsumexp(norch.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6932)
    """
    x, axes = as_operand(input, "logsumexp"), axes_of(dim)
    dtype = x.dtype if x.dtype.kind in "fc" else get_default_dtype()
    wide: Any = x
    if x.dtype is not dtype or x.dtype.itemsize < 4:
        wide = lib.norch_cast(x, (dtype if dtype is float64 else float32).code)
    top = None
    if wide._numel:
        top = lib.norch_reduce(OPCODES["amax"], x.detach().real if x.is_complex() else wide, axes, True, -1, 0.0)
        top = lib.norch_ternary(OPCODES["where"], lib.norch_unary(OPCODES["isfinite"], top), top, operand(0.0))
        wide = lib.norch_binary(OPCODES["sub"], wide, top)
    out = lib.norch_reduce(OPCODES["sum"], lib.norch_unary(OPCODES["exp"], wide), axes, keepdim, -1, 0.0)
    out = lib.norch_unary(OPCODES["log"], out)
    if top is not None:  # of one element each
        out = lib.norch_binary(OPCODES["add"], out, lib.norch_reduce(OPCODES["amax"], top, axes, keepdim, -1, 0.0))
    out = lib.norch_cast(out, dtype.code) if out.dtype is not dtype else out
    return record(_LogSumExp, out, (x,), (axes, keepdim))


_LogSumExp = derivative(
    "logsumexp",
    grad=lambda g, x, out, axes, keepdim: (
        expand_reduced(g, x, axes, keepdim) * (x - expand_reduced(out, x, axes, keepdim)).exp()
    ),
)


def _sum_method(
    self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None, **named: Any
) -> Tensor:
    """The sum over all elements, or over the axes dim."""
    if dim is None and dtype is None and not named and not mode.casting:
        return sum_over(self, None, keepdim)
    if dim is not None:  # otherwise named may have axis
        named["dim"] = dim
    if keepdim is not False:
        named["keepdim"] = keepdim
    return sum(self, dtype=dtype, **named)


_sum_method.__wrapped__ = sum  # type: ignore[attr-defined]  # its signature
METHODS["sum"] = named_function(_sum_method, "sum", _sum_method.__doc__ or "")

# used by other families
_INTERNAL = (
    "axes_of expand_reduced extreme_grad mean_over mean_square norm_grad norm_over share_among all_over sum_over"
)
__all__ = public(globals(), *_INTERNAL.split())
