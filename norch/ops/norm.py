"""Norms of vectors and matrices: reductions, and functions composed of them. normalization.py has layer_norm and
others.
"""

from __future__ import annotations

import math

from .._binding.library import lib
from .._package.typing import Any, Tensor
from .._tensor import handle as _handle
from ..autograd.derivative import derivative
from ..autograd.differentiable import differentiable
from ..autograd.levels import zeros_of
from ..autograd.record import record
from ..dtype import check_numbers, float32, float64
from ..dtype import dtype as DType
from ..errors import ArgumentError, BoundsError, DTypeError, ShapeError
from ._checks import at_least
from ._entry import numpy_names
from ._operand import as_operand, operand
from .op import OPCODES, method
from .pointwise import abs, pow
from .reduce import Dims, amax, amin, axes_of, expand_reduced, extreme_grad, norm_over, sum, sum_over

_ABS, _DIV, _MUL, _NE, _CLAMP = (OPCODES[name] for name in "abs div mul ne clamp".split())
_SUM, _AMAX, _AMIN = (OPCODES[name] for name in "sum amax amin".split())
# Of a dtype the least positive number, subnormal, and the largest.
_ENDS = {d: (d.limits()[3] * d.limits()[0], d.limits()[1]) for d in (float32, float64)}
_WIDE_FLOATS = {d.code for d in _ENDS}


def _floats(x: Tensor, name: str, dtype: Any) -> Tensor:
    x = as_operand(x, name)
    if dtype is not None:
        x = x.to(dtype)
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{name}: expected floats, got {x.dtype}; convert it first, or pass dtype")
    return x


@numpy_names(autocast="- float32")
def vector_norm(
    input: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The ord-th root of the sum of |x| ** ord over all elements, or over the axes dim. ord may be inf (the largest),
    -inf (the smallest) and 0 (the number of elements that are not 0). The gradient at the zero vector is 0.

    >>> norch.linalg.vector_norm(norch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if dtype is None and type(input) is _handle.result_class and not input.ndim and input._dtype in _WIDE_FLOATS:
        if (dim is None or (type(dim) is int and -1 <= dim <= 0)) and type(keepdim) is bool:
            if type(ord) in (int, float) and (ord > 0 or ord < 0):  # such a norm of a number is its size
                node = _MaxNorm if math.isinf(ord) else _VectorNorm
                return record(node, lib.norch_unary(_ABS, input), (input,), (None, keepdim, float(ord)))
    x, axes = _floats(input, "vector_norm", dtype), axes_of(dim)
    if type(ord) is not int:
        check_numbers("vector_norm", ord=ord)
    if ord == 2:
        return norm_over(x, axes, keepdim)
    kind = x.dtype
    x = abs(x) if kind.is_complex else x
    if (ord < 0 or ord == math.inf) and not x._numel:
        sum(x, axes)  # which says what axes do not fit
        if not axes or 0 in [x.shape[axis] for axis in axes]:
            empty = f"an empty tensor, shape {tuple(x.shape)}"
            raise ArgumentError(f"vector_norm: there is no norm of order {ord} of {empty}")
    if ord == 1:
        return sum_over(abs(x), axes, keepdim)
    if ord == 0:
        return _nonzeros(x, axes, keepdim)
    if math.isinf(ord):
        out = lib.norch_reduce(_AMAX if ord > 0 else _AMIN, lib.norch_unary(_ABS, x), axes, keepdim, -1, 0.0)
        return record(_MaxNorm, out, (x,), (axes, keepdim, float(ord)))
    if kind.itemsize < 4:  # halves are rounded once
        return vector_norm(x.float(), ord, dim, keepdim).to(kind)
    return record(_VectorNorm, _power_norm(x, axes, keepdim, float(ord)), (x,), (axes, keepdim, float(ord)))


def _power_norm(x: Tensor, axes: Any, keepdim: bool, p: float) -> Tensor:
    """sum(|x| ** p) ** (1 / p), of shares of the element of the largest power, so that no power overflows."""
    size = lib.norch_unary(_ABS, x)
    if not x.numel():
        return lib.norch_reduce(_SUM, size, axes, keepdim, -1, 0.0)
    top = lib.norch_reduce(_AMAX if p > 0 else _AMIN, size, axes, True, -1, 0.0)
    least, most = _ENDS[x.dtype]
    top = lib.norch_ternary(_CLAMP, top, operand(least), operand(most))  # neither 0 nor infinite
    powers = pow(lib.norch_binary(_DIV, size, top), p)  # which multiplies for small integers
    total = lib.norch_reduce(_SUM, powers, axes, True, -1, 0.0)
    out = lib.norch_binary(_MUL, pow(total, 1 / p), top)
    return out if keepdim else lib.norch_squeeze(out, axes or range(x.ndim))


@differentiable("vector_norm", grad=lambda g, x_meta: zeros_of(x_meta, g))
def _nonzeros(x: Tensor, axes: Any, keepdim: bool) -> Tensor:
    """The number of elements that are not 0. NaN counts."""
    count = lib.norch_binary(_NE, x, operand(0))
    if x.ndim or axes:
        count = lib.norch_reduce(_SUM, count, axes, keepdim, -1, 0.0)
    return lib.norch_cast(count, x._dtype)


def max_norm_grad(g: Tensor, x: Tensor, out: Tensor, axes: Any, keepdim: bool) -> Tensor:
    """The gradient of the largest |x|, or the smallest."""
    return extreme_grad(g, x.abs(), out, axes, keepdim) * x.sign()


def vector_norm_grad(g: Tensor, x: Tensor, out: Tensor, axes: Any, keepdim: bool, p: float) -> Tensor:
    """The gradient of sum(|x| ** p) ** (1 / p). It is 0 where the slope is infinite, and at 0."""
    size = x.abs()
    if p < 2:  # at 0, where x.sign() is 0, no power is infinite, nor its derivative
        size = size.where(x != 0, 1.0)
    share = size / expand_reduced(out.where(out != 0, 1.0) if p >= 1 else out, x, axes, keepdim)
    return x.sign() * share.pow(p - 1) * expand_reduced(g, x, axes, keepdim)  # of shares no power overflows


_MaxNorm = derivative("max_norm", grad=lambda g, x, out, axes, keepdim, p: max_norm_grad(g, x, out, axes, keepdim))
_VectorNorm = derivative("vector_norm", grad=vector_norm_grad)


@numpy_names(autocast="- float32")
def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """A norm of the matrices along the axes dim. ord is "fro"; inf or -inf, the largest or smallest sum of absolute
    values in a row; 1 or -1, in a column; 2 or -2, the largest or smallest singular value; or "nuc", the sum of
    singular values. For an empty matrix the largest and the sum are 0.

    >>> norch.linalg.matrix_norm(norch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    x = _floats(input, "matrix_norm", dtype)
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise ArgumentError(f"matrix_norm: dim is a pair of axes, not {dim}")
    at_least(2, x, "matrix_norm")
    if ord == "fro":
        return vector_norm(x, 2, dim, keepdim)
    if ord not in ("nuc", 2, -2, 1, -1, math.inf, -math.inf):
        raise ArgumentError(f"matrix_norm: ord is 'fro', 'nuc', 2, -2, 1, -1, inf or -inf, not {ord!r}")
    for axis in dim:
        if not -x.ndim <= axis < x.ndim:
            raise BoundsError(f"matrix_norm: axis {axis} is out of range for {x.ndim} dimensions")
    added, compared = (axis % x.ndim for axis in (dim if ord in (1, -1) else reversed(dim)))
    if added == compared:
        raise ArgumentError(f"matrix_norm: axis {added} appears twice")
    if ord in ("nuc", 2, -2):
        return _spectral_norm(x, ord, tuple(axis % x.ndim for axis in dim), keepdim)
    sums = sum(abs(x), added, True)
    if ord > 0 and not x.shape[compared]:
        out = sum(sums, compared, True)  # 0
    else:
        out = (amax if ord > 0 else amin)(sums, compared, True)
    return out if keepdim else out.squeeze((added, compared))


def _spectral_norm(x: Tensor, ord: Any, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    from .linalg.spectral import svdvals  # lazy: NumPy's

    values = svdvals(x.movedim(dim, (-2, -1)))
    if ord == -2 and not values.shape[-1]:
        raise ArgumentError(f"matrix_norm: there is no norm of order {ord} of an empty matrix, shape {tuple(x.shape)}")
    is_sum = ord == "nuc" or not values.shape[-1]  # of an empty matrix 0
    if is_sum:
        out = sum(values, -1)
    else:  # among equal values, of an identity say, amax() and amin() share the gradient
        out = (amax if ord == 2 else amin)(values, -1)
    return out.reshape([1 if i in dim else n for i, n in enumerate(x.shape)]) if keepdim else out


@numpy_names
def linalg_norm(
    input: Tensor, ord: Any = None, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """vector_norm() of all elements or along one axis, or matrix_norm() of a matrix or along two axes if ord is passed.

    >>> norch.linalg.norm(norch.ones(2, 3), 1)
    tensor(2.)
    """
    x = _floats(input, "norm", dtype)
    if ord is None:
        return vector_norm(x, 2, dim, keepdim)
    if dim is None and x.ndim not in (1, 2):
        raise ShapeError(f"norm: with ord and no dim a vector or matrix is expected, got shape {tuple(x.shape)}")
    axes = axes_of(dim)
    if x.ndim == 1 or (axes is not None and len(axes) == 1):
        if isinstance(ord, str):
            raise ArgumentError(f"norm: ord={ord!r} is a norm of matrices")
        return vector_norm(x, ord, dim, keepdim)
    return matrix_norm(x, ord, (-2, -1) if axes is None else axes, keepdim)


@method(numpy=True, autocast="- float32")
def norm(
    input: Tensor, p: Any = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The p-norm of all elements, or over the axes dim, whose elements count as one vector. "fro" is 2.

    >>> norch.norm(norch.ones(2, 2))
    tensor(2.)
    """
    x = _floats(input, "norm", dtype)
    if p == "nuc":
        pair: Any = tuple(range(x.ndim)) if dim is None else axes_of(dim)
        return matrix_norm(x, p, pair, keepdim)
    return vector_norm(x, 2 if p == "fro" or p is None else p, dim, keepdim)
