"""Elementwise functions of the array API standard. Arguments: arrays, or one array and a Python number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtype import BY_NAME
from ..errors import DTypeError
from ..ops import pointwise as ops
from ..ops.complex import conj, imag, real
from ..ops.composed.pointwise import positive as _positive
from ..ops.composed.pointwise import round as _round
from ..ops.create import full_like, zeros_like
from ..tensor import Tensor
from ._checks import promoted

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]  # fmt: skip


def _unary(name: str, function: Callable[[Any], Any], of_floats: bool = False) -> Callable[[Tensor], Tensor]:
    """of_floats: integers are what they give."""

    def unary(x: Tensor, /) -> Tensor:
        if of_floats and x.dtype.kind in "ui":
            return x.clone()
        return function(x)

    unary.__name__ = unary.__qualname__ = name
    unary.__doc__ = f"norch.{function.__name__} of the array API standard."
    return unary


def _binary(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Tensor]:
    def binary(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        return function(*promoted(x1, x2))

    binary.__name__ = binary.__qualname__ = name
    binary.__doc__ = f"norch.{function.__name__} of the array API standard: 0-d arrays promote as others do."
    return binary


acos, acosh = _unary("acos", ops.acos), _unary("acosh", ops.acosh)
asin, asinh = _unary("asin", ops.asin), _unary("asinh", ops.asinh)
atan, atanh = _unary("atan", ops.atan), _unary("atanh", ops.atanh)
cos, cosh = _unary("cos", ops.cos), _unary("cosh", ops.cosh)
sin, sinh = _unary("sin", ops.sin), _unary("sinh", ops.sinh)
tan, tanh = _unary("tan", ops.tan), _unary("tanh", ops.tanh)
abs, negative = _unary("abs", ops.abs), _unary("negative", ops.neg)  # noqa: A001
positive = _unary("positive", _positive)
exp, expm1 = _unary("exp", ops.exp), _unary("expm1", ops.expm1)
log, log1p = _unary("log", ops.log), _unary("log1p", ops.log1p)
log2, log10 = _unary("log2", ops.log2), _unary("log10", ops.log10)
sqrt, square, reciprocal = _unary("sqrt", ops.sqrt), _unary("square", ops.square), _unary("reciprocal", ops.reciprocal)
isfinite, isinf, isnan = _unary("isfinite", ops.isfinite), _unary("isinf", ops.isinf), _unary("isnan", ops.isnan)
signbit, bitwise_invert = _unary("signbit", ops.signbit), _unary("bitwise_invert", ops.bitwise_not)
logical_not = _unary("logical_not", ops.logical_not)
ceil, floor = _unary("ceil", ops.ceil, True), _unary("floor", ops.floor, True)
trunc, round = _unary("trunc", ops.trunc, True), _unary("round", _round, True)  # noqa: A001

add, subtract = _binary("add", ops.add), _binary("subtract", ops.sub)
multiply, divide = _binary("multiply", ops.mul), _binary("divide", ops.div)
floor_divide, remainder = _binary("floor_divide", ops.floor_divide), _binary("remainder", ops.remainder)
pow, atan2 = _binary("pow", ops.pow), _binary("atan2", ops.atan2)  # noqa: A001
copysign, hypot = _binary("copysign", ops.copysign), _binary("hypot", ops.hypot)
logaddexp = _binary("logaddexp", ops.logaddexp)
maximum, minimum = _binary("maximum", ops.maximum), _binary("minimum", ops.minimum)
equal, not_equal = _binary("equal", ops.eq), _binary("not_equal", ops.ne)
less, less_equal = _binary("less", ops.lt), _binary("less_equal", ops.le)
greater, greater_equal = _binary("greater", ops.gt), _binary("greater_equal", ops.ge)
bitwise_and, bitwise_or = _binary("bitwise_and", ops.bitwise_and), _binary("bitwise_or", ops.bitwise_or)
bitwise_xor = _binary("bitwise_xor", ops.bitwise_xor)
bitwise_left_shift = _binary("bitwise_left_shift", ops.bitwise_left_shift)
bitwise_right_shift = _binary("bitwise_right_shift", ops.bitwise_right_shift)
logical_and, logical_or = _binary("logical_and", ops.logical_and), _binary("logical_or", ops.logical_or)
logical_xor = _binary("logical_xor", ops.logical_xor)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, of complex numbers x / |x|; NaN for NaN, which norch's sign() takes for 0, as PyTorch's does."""
    found = ops.sgn(x)
    return ops.where(ops.isnan(x), x, found) if x.dtype.kind == "f" else found


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002
    """x between min and max, arrays or numbers that broadcast with it; the result has the dtype of x."""
    if min is None and max is None:
        return x.clone()
    low, high = (bound.to(x.dtype) if isinstance(bound, Tensor) else bound for bound in (min, max))
    return ops.clamp(x, low, high).to(x.dtype)


def nextafter(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The number next to x1 in the direction of x2: its bits, as an integer, plus or minus 1. Without a derivative."""
    x1, x2 = (x.detach() for x in promoted(x1, x2))
    if x1.dtype is not x2.dtype or x1.dtype.kind != "f":
        raise DTypeError(f"nextafter: expected floats of one dtype, not {x1.dtype} and {x2.dtype}")
    x1, x2 = x1 + zeros_like(x2), x2 + zeros_like(x1)  # both of the shape of the result
    bits = x1.contiguous().view(BY_NAME[f"int{8 * x1.itemsize}"])
    step = ops.where((x2 > x1) == (x1 > 0), full_like(bits, 1), full_like(bits, -1))
    least = ops.copysign(full_like(bits, 1).view(x1.dtype), x2)
    moved = ops.where(x1 == 0, least, (bits + step).view(x1.dtype))
    return ops.where(x1 == x2, x2, ops.where((x1 != x1) | (x2 != x2), x1 + x2, moved))
