"""Statistics of samples: covariances, and integrals by the trapezoidal rule."""

from __future__ import annotations

import functools

from ..._binding.library import constants, lib
from ..._package.typing import Any, Tensor
from ...dtype import dtype as DType
from ...dtype import get_default_dtype, promote_types
from ...errors import ArgumentError, BoundsError, DTypeError, ShapeError
from .._checks import numbers_of
from .._entry import composed
from .._operand import as_operand
from ..complex import complex
from ..matmul import matmul
from ..norm import vector_norm
from ..op import method
from ..reduce import sum as sum_
from ..view import narrow, reshape, select

__all__ = ["corrcoef", "cov", "cumulative_trapezoid", "trapezoid", "trapz"]


def as_float(x: Tensor, name: str) -> Tensor:
    """x, in the default dtype if it holds integers."""
    x = numbers_of(as_operand(x, name), name)
    return x if x.dtype.kind in "fc" else x.to(get_default_dtype())


@method(composed=True)
def cov(
    input: Tensor, *, correction: float = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables over observations: each row of input is a variable (a vector is one), each column an
    observation. Of complex variables the second is conjugated.

    fweights (integers) say how often each observation was made, aweights (floats) how much it counts.

    >>> norch.cov(norch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = as_operand(input, "cov")
    if x.ndim > 2:
        raise ShapeError(f"cov: expected at most 2 dimensions, got shape {tuple(x.shape)}")
    x = as_float(reshape(x, (1, -1)) if x.ndim < 2 else x, "cov")
    count = x.shape[1]
    weights = None
    for factor, name in ((fweights, "fweights"), (aweights, "aweights")):
        if factor is None:
            continue
        factor = as_operand(factor, "cov")
        if tuple(factor.shape) != (count,):
            raise ShapeError(f"cov: {name} has shape {tuple(factor.shape)} for {count} observations")
        if factor.dtype.is_floating_point == (name == "fweights"):
            raise DTypeError(f"cov: {name} of {factor.dtype.name}")
        condition = constants["CHECK_COUNTS" if name == "fweights" else "CHECK_WEIGHTS"]
        lib.norch_check((factor < 0).logical_not(), condition)
        weights = factor if weights is None else weights * factor
    if weights is None:
        total, mean = x.detach().real.new_full((), count), x.mean(1, True)
        left = total - correction
        centred = x - mean
        centred = centred - centred.mean(1, True)  # what rounding the mean left
        product = matmul(centred, centred.mH)
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, True) / total
        centred = centred - (centred * weights).sum(1, True) / total  # what rounding the mean left
        squares = total if aweights is None else (weights * aweights).sum()
        left = total - correction * squares / total if aweights is not None else total - correction
        product = matmul(centred * weights, centred.mH)
    result = product / left.clamp(min=0)
    return result.squeeze()


@method(composed=True)
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, one in each row: cov() divided by their standard deviations, and limited to
    [-1, 1] (complex: both parts).

    >>> norch.corrcoef(norch.tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
    tensor([[ 1.0000, -1.0000],
            [-1.0000,  1.0000]])
    """
    input = as_operand(input, "corrcoef")
    c = cov(input)
    if c.ndim == 0 or input.shape[1] == 0:
        return c / c
    x = as_float(input, "corrcoef")
    centred = x - x.mean(1, True)
    centred = centred - centred.mean(1, True)
    units = centred / vector_norm(centred, 2, 1, True)  # whose squares stay in range, as variances may not
    correlations = matmul(units, units.mH)
    return (
        complex(correlations.real.clamp(-1, 1), correlations.imag.clamp(-1, 1))
        if c.is_complex()
        else correlations.clamp(-1, 1)
    )


@composed
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral along dim by the trapezoidal rule, of samples y at x, or dx (1) apart. Integers become floats.

    >>> norch.trapezoid(norch.tensor([1.0, 2.0, 3.0]), dx=2)
    tensor(8.)
    """
    if x is None:
        y, dtype = _samples(y, None, dim, "trapezoid")
        n = y.shape[dim]
        if n < 2:
            return sum_(narrow(y, dim, 0, 0), dim).to(dtype)
        ends = (select(y, dim, 0) + select(y, dim, n - 1)) / 2
        return ((sum_(narrow(y, dim, 1, n - 2), dim) + ends) * (1 if dx is None else dx)).to(dtype)
    parts, dtype = _trapezoids(y, x, dx, dim, "trapezoid")
    return sum_(parts, dim).to(dtype)


@composed
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """trapezoid() up to the second sample, up to the third, and so on.

    >>> norch.cumulative_trapezoid(norch.tensor([0.0, 2.0, 4.0]))
    tensor([1., 4.])
    """
    parts, dtype = _trapezoids(y, x, dx, dim, "cumulative_trapezoid")
    return parts.cumsum(dim).to(dtype)


trapz = trapezoid


def _samples(y: Tensor, x: Tensor | None, dim: int, name: str) -> tuple[Any, DType]:
    """y in the dtype in which its elements are added, float64 for integers and float32 for halves, and the dtype of
    their sum: the default one for integers."""
    y = numbers_of(as_operand(y, name), name)
    if y.ndim == 0 or not -y.ndim <= dim < y.ndim:
        raise BoundsError(f"{name}: dimension {dim} is out of range for shape {tuple(y.shape)}")
    floats = [z.dtype for z in (y, x) if z is not None and z.dtype.kind in "fc"]
    dtype = functools.reduce(promote_types, floats) if floats else get_default_dtype()
    return y.double() if y.dtype.kind not in "fc" else y.float() if y.element_size() == 2 else y, dtype


def _trapezoids(y: Tensor, x: Tensor | None, dx: float | None, dim: int, name: str) -> tuple[Any, DType]:
    """The areas between the samples, and the dtype of their sum. Places that are integers are subtracted as int64."""
    if x is not None and dx is not None:
        raise ArgumentError(f"{name}: give x or dx, not both")
    x = None if x is None else as_operand(x, name)
    y, dtype = _samples(y, x, dim, name)
    n = y.shape[dim]
    if n == 0:
        return y, dtype
    pairs = narrow(y, dim, 1, n - 1) + narrow(y, dim, 0, n - 1)
    if x is None:
        return pairs * ((1 if dx is None else dx) / 2), dtype
    if x.ndim == 0:
        raise ShapeError(f"{name}: the places of the samples have 1 dimension or more, not 0")
    if x.ndim == 1:
        if x.shape[0] != n:
            raise ShapeError(f"{name}: {x.shape[0]} places for {n} samples")
        x = reshape(x, [n if axis == dim % y.ndim else 1 for axis in range(y.ndim)])
    x = x if x.dtype.kind in "fc" else x.long()
    return (narrow(x, dim, 1, x.shape[dim] - 1) - narrow(x, dim, 0, x.shape[dim] - 1)) * pairs / 2, dtype
