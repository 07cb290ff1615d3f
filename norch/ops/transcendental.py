"""Rows as those of pointwise.py, of functions that fewer programs use: trigonometric and hyperbolic functions, their
inverses, error and gamma functions, logarithms of sums.
"""

from __future__ import annotations

import math

from .._package.typing import Any, Tensor
from ._arguments import public
from .op import op
from .pointwise import _WIDE


def _slope_of_acosh(x: Tensor) -> Tensor:
    """1 / sqrt(x**2 - 1). For complex x it is a product of two roots, because the root of the product has the wrong
    sign for Re x < 0.
    """
    return (x - 1).rsqrt() * (x + 1).rsqrt() if x.dtype.is_complex else (x * x - 1).rsqrt()


_SERIES = [(-1) ** k * 2 * k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 9)]


def _slope_of_sinc(x: Tensor) -> Tensor:
    """(cos(pi x) - sinc(x)) / x. Near 0, where this cancels, it is the Taylor series, so that no derivative divides by
    0.
    """
    is_near = x.abs() < 0.25
    near, far = x.where(is_near, 0), x.where(is_near.logical_not(), 1)
    square = near * near
    series = square * _SERIES[-1] + _SERIES[-2]
    for coefficient in _SERIES[-3::-1]:
        series = series * square + coefficient
    return (series * near).where(is_near, ((far * math.pi).cos() - far.sinc()) / far)


def _over_square(g: Any, a: Any, b: Any) -> Any:
    """g a / (a a + b b). It is 0 at the origin, where no gradient exists. Integers become floats, because squares could
    overflow.
    """
    a, b = a.to(g.dtype), b.to(g.dtype)
    norm = a * a + b * b
    return g * (a / norm.where(norm != 0, math.inf))


# ---- one input ----------------------------------------------------------------------------------------------------

tan = op("tan", "Tangent of x radians. Integers become floats.", grad=lambda g, out: g * (out * out + 1), **_WIDE)
asin = arcsin = op(
    "asin",
    "Arc sine in radians; NaN outside [-1, 1].",
    grad=lambda g, x: g * (1 - x * x).rsqrt(),
    aliases=("arcsin",),
    **_WIDE,
)
acos = arccos = op(
    "acos",
    "Arc cosine in radians; NaN outside [-1, 1].",
    grad=lambda g, x: -g * (1 - x * x).rsqrt(),
    aliases=("arccos",),
    **_WIDE,
)
atan = arctan = op("atan", "Arc tangent in radians.", grad=lambda g, x: g / (x * x + 1), aliases=("arctan",))
sinh = op("sinh", "Hyperbolic sine. Integers become floats.", grad=lambda g, x: g * x.cosh(), **_WIDE)
cosh = op("cosh", "Hyperbolic cosine. Integers become floats.", grad=lambda g, x: g * x.sinh(), **_WIDE)
asinh = arcsinh = op(
    "asinh", "Inverse hyperbolic sine.", grad=lambda g, x: g * (x * x + 1).rsqrt(), aliases=("arcsinh",)
)
acosh = arccosh = op(
    "acosh", "Inverse hyperbolic cosine; NaN below 1.", grad=lambda g, x: g * _slope_of_acosh(x), aliases=("arccosh",)
)
atanh = arctanh = op(
    "atanh", "Inverse hyperbolic tangent; NaN outside [-1, 1].", grad=lambda g, x: g / (1 - x * x), aliases=("arctanh",)
)
erf = op(
    "erf",
    "Error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.",
    grad=lambda g, x: g * ((x * -x).exp() * (2 / math.sqrt(math.pi))),
)
erfc = op(
    "erfc",
    "1 - erf(x), exact where erf(x) is near 1.",
    grad=lambda g, x: g * ((x * -x).exp() * (-2 / math.sqrt(math.pi))),
)
erfinv: Any = op(
    "erfinv",
    "The number whose erf is x; infinite at -1 and 1, NaN beyond.",
    grad=lambda g, x: g * (erfinv(x).square().exp() * (math.sqrt(math.pi) / 2)),
    **_WIDE,
)
lgamma = op("lgamma", "Logarithm of the absolute value of the gamma function.", grad=lambda g, x: g * x.digamma())
digamma = op("digamma", "Derivative of lgamma; NaN at negative integers.", grad=lambda g, x: g * x.polygamma(1))
sinc = op("sinc", "sin(pi x) / (pi x), 1 at 0. Integers become floats.", grad=lambda g, x: g * _slope_of_sinc(x))

# ---- two inputs ---------------------------------------------------------------------------------------------------

atan2 = arctan2 = op(
    "atan2",
    "The angle of the point (b, a) in radians, in (-pi, pi].",
    grad_a=lambda g, a, b: _over_square(g, b, a),
    grad_b=lambda g, a, b: _over_square(-g, a, b),
    aliases=("arctan2",),
    autocast="- widest",
)
hypot = op(
    "hypot",
    "sqrt(a * a + b * b), without overflow on the way. Floats only.",
    grad_a=lambda g, a, out: g * (a / out),
    grad_b=lambda g, b, out: g * (b / out),
)
xlogy = op(
    "xlogy",
    "a * log(b), 0 where a is 0 and b no NaN. Integers become floats.",
    grad_a=lambda g, a, b: g.xlogy(b).where(((a == 0) & (b <= 0)).logical_not(), 0),
    grad_b=lambda g, a, b: g * a / b,
)
logaddexp = op(
    "logaddexp",
    "log(e**a + e**b), without overflow. Floats and complex numbers.",
    grad_a=lambda g, a, b: g * (a - b).sigmoid(),
    grad_b=lambda g, a, b: g * (b - a).sigmoid(),
    inplace=False,
)
logaddexp2 = op(
    "logaddexp2",
    "log2(2**a + 2**b), without overflow. Floats only.",
    grad_a=lambda g, a, b: g * ((a - b) * math.log(2)).sigmoid(),
    grad_b=lambda g, a, b: g * ((b - a) * math.log(2)).sigmoid(),
    inplace=False,
)

__all__ = public(globals())
