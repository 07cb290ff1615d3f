"""Elementwise functions of the array API standard. Arguments: arrays, or one array and a Python number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops import pointwise as ops
from ..ops import sums
from ..ops import transcendental as more
from ..ops._arguments import named_function, public
from ..ops.complex import conj, imag, real
from ..ops.composed.numeric import nextafter as _nextafter
from ..ops.composed.pointwise import round as _round
from ..ops.pointwise import positive as _positive
from ..tensor import Tensor
from ._checks import promoted


def _unary(function: Callable[[Any], Any], name: str = "", of_floats: bool = False) -> Callable[[Tensor], Tensor]:
    """of_floats: integers are what they give."""

    def unary(x: Tensor, /) -> Tensor:
        if of_floats and x.dtype.kind in "ui":
            return x.clone()
        return function(x)

    about = f"norch.{function.__name__} of the array API standard."
    return named_function(unary, name or function.__name__, about)


def _binary(function: Callable[[Any, Any], Any], name: str = "") -> Callable[[Any, Any], Tensor]:
    def binary(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        return function(*promoted(x1, x2))

    about = f"norch.{function.__name__} of the array API standard: 0-d arrays promote as others do."
    return named_function(binary, name or function.__name__, about)


acos, acosh, asin, asinh = map(_unary, (more.acos, more.acosh, more.asin, more.asinh))
atan, atanh, cos, cosh = map(_unary, (more.atan, more.atanh, ops.cos, more.cosh))
sin, sinh, tan, tanh = map(_unary, (ops.sin, more.sinh, more.tan, ops.tanh))
exp, expm1, log, log1p, log2, log10 = map(_unary, (ops.exp, ops.expm1, ops.log, ops.log1p, ops.log2, ops.log10))
abs, positive, sqrt, square, reciprocal = map(_unary, (ops.abs, _positive, ops.sqrt, ops.square, ops.reciprocal))
isfinite, isinf, isnan, signbit, logical_not = map(
    _unary, (ops.isfinite, ops.isinf, ops.isnan, ops.signbit, ops.logical_not)
)
negative, bitwise_invert = _unary(ops.neg, "negative"), _unary(ops.bitwise_not, "bitwise_invert")
ceil, floor, trunc, round = (_unary(function, of_floats=True) for function in (ops.ceil, ops.floor, ops.trunc, _round))

add, pow = _binary(sums.add), _binary(ops.pow)
floor_divide, remainder = _binary(ops.floor_divide), _binary(ops.remainder)
atan2, copysign, hypot, logaddexp = map(_binary, (more.atan2, ops.copysign, more.hypot, more.logaddexp))
maximum, minimum, nextafter = _binary(ops.maximum), _binary(ops.minimum), _binary(_nextafter)
subtract, multiply, divide = _binary(sums.sub, "subtract"), _binary(ops.mul, "multiply"), _binary(ops.div, "divide")
equal, not_equal = _binary(ops.eq, "equal"), _binary(ops.ne, "not_equal")
less, less_equal = _binary(ops.lt, "less"), _binary(ops.le, "less_equal")
greater, greater_equal = _binary(ops.gt, "greater"), _binary(ops.ge, "greater_equal")
bitwise_and, bitwise_or, bitwise_xor = map(_binary, (ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor))
bitwise_left_shift, bitwise_right_shift = _binary(ops.bitwise_left_shift), _binary(ops.bitwise_right_shift)
logical_and, logical_or, logical_xor = map(_binary, (ops.logical_and, ops.logical_or, ops.logical_xor))


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, of complex numbers x / |x|; NaN for NaN, which norch's sign() takes for 0, as PyTorch's does."""
    signs = ops.sgn(x)
    return ops.where(ops.isnan(x), x, signs) if x.dtype.kind == "f" else signs


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x between min and max, arrays or numbers that broadcast with it; the result has the dtype of x."""
    if min is None and max is None:
        return x.clone()
    low, high = (bound.to(x.dtype) if isinstance(bound, Tensor) else bound for bound in (min, max))
    return ops.clamp(x, low, high).to(x.dtype)


__all__ = [*public(globals()), "conj", "imag", "real"]
