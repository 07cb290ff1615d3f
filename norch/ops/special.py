"""Modified Bessel functions, incomplete gamma functions and zeta, rows of csrc/ops.def whose formulas are in
csrc/cpu/math_special.h; and functions composed for ``norch.special`` alone."""

from __future__ import annotations

import functools
import math

from .._package.typing import Any, Operand, Operation, Tensor
from ..autograd.differentiable import differentiable
from ..dtype import float32, get_default_dtype
from ._operand import as_operand
from .copy import result_type
from .op import function_op, op
from .pointwise import log1p, refused, where
from .transcendental import erfc, erfinv, xlogy

__all__ = ["i0", "igamma", "igammac"]


def _over(y: Tensor, x: Tensor) -> Tensor:
    """y / x for an odd y of slope 1/2 at 0, 1/2 near there."""
    small = x.abs() < 1e-10
    return (y / x.where(small.logical_not(), 1)).where(small.logical_not(), 0.5)


def _density(a: Any, x: Any, n: int = 1) -> Any:
    """x**(a - n) e**-x / gamma(a): for n = 1 the slope of igamma(a, x) along x."""
    return _power_density(a, x, n)


def _slope_of_density(g: Tensor, a: Tensor, x: Tensor, n: int) -> Tensor:
    """The derivative of x**k e**-x: k x**(k - 1) e**-x - x**k e**-x, without dividing by x, which may be 0."""
    power = a - n
    return g * (power * _density(a.where(power != 0, n + 1), x, n + 1) - _density(a, x, n))


@differentiable(
    "igamma_density",
    broadcast=True,
    grad_a=lambda g, a, x, n: g * _density(a, x, n) * (x.log() - a.digamma()),
    grad_x=_slope_of_density,
)
def _power_density(a: Any, x: Any, n: int) -> Any:
    return (xlogy(a - n, x) - x - a.lgamma()).exp()


def _is_far(x: Tensor) -> Tensor:
    """Where i0e(x) and |i1e(x)| agree in so many digits that an asymptotic series gives their difference more
    exactly.
    """
    return x.abs() > (1000.0 if x.dtype.itemsize == 8 else 30.0)


def bessel_complement(x: Tensor) -> Tensor:
    """1 - i1(x) / i0(x) for x >= 0. For large x it is the series of the two (Abramowitz and Stegun, 9.7.1)."""
    far = _is_far(x)
    near = x.where(far.logical_not(), 0)
    y = 1 / x.where(far, 1)
    series = y * (1 / 2 + y * (1 / 8 + y * (1 / 8 + y * (25 / 128 + y * (13 / 32 + y * (1073 / 1024))))))
    return series.where(far, 1 - i1e(near) / i0e(near))


def _i0e_grad(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    side = x.sign()
    return g * (side * out * -bessel_complement(x.abs())).where(_is_far(x), i1e(x) - side * out)


def _i1e_grad(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    even = i0e(x)
    difference = (even * bessel_complement(x.abs())).where(_is_far(x), even - x.sign() * out)
    return g * (difference - _over(out, x))


i0: Operation = op(
    "i0",
    """The modified Bessel function of the first kind, of order 0. Integers become floats.

    >>> norch.i0(norch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
    grad=lambda g, x: g * i1(x),
)
i0e: Operation = function_op(
    "i0e",
    """i0(x) e**-|x|, which does not overflow.

    >>> norch.special.i0e(norch.tensor([0.0, 1000.0]))
    tensor([1.0000, 0.0126])
    """,
    grad=_i0e_grad,
)
i1: Operation = function_op(
    "i1",
    """The modified Bessel function of the first kind, of order 1. Integers become floats.

    >>> norch.special.i1(norch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
    grad=lambda g, x, out: g * (i0(x) - _over(out, x)),
)
i1e: Operation = function_op(
    "i1e",
    """i1(x) e**-|x|, which does not overflow.

    >>> norch.special.i1e(norch.tensor([0.0, 1000.0]))
    tensor([0.0000, 0.0126])
    """,
    grad=_i1e_grad,
)
igamma = op(
    "igamma",
    """Regularised lower incomplete gamma function P(a, x), in [0, 1]; NaN where an argument is negative. Differentiable
    by x.

    >>> norch.igamma(norch.tensor([1.0]), norch.tensor([1.0]))  # 1 - 1 / e
    tensor([0.6321])
    """,
    grad_a=refused("igamma, igammac: the derivative by the first argument"),
    grad_b=lambda g, a, b: g * _density(a, b),
)
igammac = op(
    "igammac",
    """Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), exact where small. Differentiable by x.

    >>> norch.igammac(norch.tensor([1.0]), norch.tensor([1.0]))  # 1 / e
    tensor([0.3679])
    """,
    grad_a=refused("igamma, igammac: the derivative by the first argument"),
    grad_b=lambda g, a, b: -g * _density(a, b),
)
zeta: Any = function_op(
    "zeta",
    """Hurwitz's zeta: the sum of (b + k)**-a over all k >= 0. Differentiable by b.

    >>> norch.special.zeta(norch.tensor([2.0]), norch.tensor([1.0]))  # pi**2 / 6
    tensor([1.6449])
    """,
    grad_a=refused("zeta: the derivative by the first argument"),
    grad_b=lambda g, a, b: -g * (a * zeta(a.to(g.dtype) + 1, b)),
)


def entr(input: Tensor) -> Tensor:  # PyTorch's name
    """-x log(x), 0 at 0 and -inf below. Summed over probabilities it is their entropy.

    >>> norch.special.entr(norch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.3466, 0.0000])
    """
    return _entr(as_operand(input, "entr"))


@differentiable("entr", grad=lambda g, x: g * (-1 - x.log()))
def _entr(x: Tensor) -> Tensor:
    return where(x < 0, -math.inf, 0 - xlogy(x, x))


def ndtr(input: Tensor) -> Tensor:
    """The distribution function of the standard normal distribution, exact far in the left tail too.

    >>> norch.special.ndtr(norch.tensor([0.0, 1.96]))
    tensor([0.5000, 0.9750])
    """
    return erfc(as_operand(input, "ndtr") * -math.sqrt(0.5)) / 2


def xlog1py(input: Operand, other: Operand) -> Tensor:
    """input * log(1 + other). It is 0 where input is 0 and other is not NaN. Integers become floats.

    >>> norch.special.xlog1py(norch.tensor([0.0, 2.0]), norch.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """
    x, y = as_operand(input, "xlog1py"), as_operand(other, "xlog1py")
    kind = result_type(x, y)
    kind = kind if kind.is_floating_point or kind.is_complex else get_default_dtype()
    wide = float32 if kind.is_floating_point and kind.itemsize == 2 else kind
    return _xlog1py(x.to(wide), y.to(wide)).to(kind)


def _log1p_unless_at_origin(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return g * y.where(((x == 0) & (y <= -1)).logical_not(), 0).log1p()


@differentiable("xlog1py", broadcast=True, grad_x=_log1p_unless_at_origin, grad_y=lambda g, x, y: g * x / (y + 1))
def _xlog1py(x: Tensor, y: Tensor) -> Tensor:
    return where((x == 0) & (y == y), 0, x * log1p(where((x == 0) & (y == y), 0, y)))


# ---- tails of the normal distribution, computed in float64 whatever the dtype ----------------------------------------


def _in_float64(function: Any) -> Any:
    @functools.wraps(function)
    def wide(x: Tensor) -> Tensor:
        kind = x.dtype if x.dtype.is_floating_point else get_default_dtype()
        return function(x.detach().double()).to(kind)

    return wide


_SPLIT = 2.0**27 + 1  # of the 53 bits of a number into two halves (Dekker 1971)
_FAR = 5.0  # from which on the continued fraction has all digits after _TERMS
_TERMS = 40


@differentiable("erfcx", grad=lambda g, x, out: g * (2 * x * out - 2 / math.sqrt(math.pi)))
@_in_float64
def _erfcx(x: Tensor) -> Tensor:
    near, far = x.clamp(max=_FAR), x.clamp(min=_FAR)
    # exp(x^2) erfc(x), with the error of rounding x^2, as exp() takes that times x^2
    head = near * _SPLIT
    head = head - (head - near)
    tail, square = near - head, near * near
    lost = ((head * head - square) + 2 * head * tail) + tail * tail
    growth = square.exp()
    direct = growth * (1 + lost.where(growth.isfinite(), 0.0)) * erfc(near)
    # 1 / sqrt(pi) / (x + (1 / 2) / (x + (2 / 2) / (x + ...)))
    fraction = far
    for k in range(_TERMS, 0, -1):
        fraction = far + k / 2 / fraction
    return where(x > _FAR, 1 / (fraction * math.sqrt(math.pi)), direct)


def erfcx(input: Tensor) -> Tensor:
    """exp(input^2) erfc(input), which neither vanishes nor overflows for large numbers. Integers become floats.

    >>> norch.special.erfcx(norch.tensor([0.0, 1.0, 1000.0]))
    tensor([1.0000e+00, 4.2758e-01, 5.6419e-04])
    """
    return _erfcx(as_operand(input, "erfcx"))


def _log_ndtr_of(x: Tensor) -> Tensor:
    left = x.clamp(max=-1.0)
    tail = (_erfcx(left * -math.sqrt(0.5)) / 2).log() - left * left / 2
    return where(x < -1, tail, log1p(-erfc(x.clamp(min=-1.0) * math.sqrt(0.5)) / 2))


@differentiable("log_ndtr", grad=lambda g, x: g * math.sqrt(2 / math.pi) / erfcx(x * -math.sqrt(0.5)))
@_in_float64
def _log_ndtr(x: Tensor) -> Tensor:
    return _log_ndtr_of(x)


def log_ndtr(input: Tensor) -> Tensor:
    """log(ndtr(input)), exact far in the left tail too, where ndtr() is 0. Integers become floats.

    >>> norch.special.log_ndtr(norch.tensor([-50.0, 0.0]))
    tensor([-1.2548e+03, -6.9315e-01])
    """
    return _log_ndtr(as_operand(input, "log_ndtr"))


@differentiable("ndtri", grad=lambda g, out: g * math.sqrt(2 * math.pi) * (out.square() / 2).exp())
@_in_float64
def _ndtri(p: Tensor) -> Tensor:
    middle = erfinv((2 * p - 1).clamp(-0.9, 0.9)) * math.sqrt(2)
    rest = p.minimum(1 - p)
    small = rest.clamp(5e-324, 0.1)
    t = (-2 * small.log()).sqrt()
    # Abramowitz and Stegun 26.2.23, to 4.5e-4; then Newton's method for log(ndtr(x)) = log(p)
    over, under = 2.515517 + t * (0.802853 + t * 0.010328), 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    x = over / under - t
    for _ in range(3):
        slope = math.sqrt(2 / math.pi) / _erfcx(x * -math.sqrt(0.5))
        x = x - (_log_ndtr_of(x) - small.log()) / slope
    tail = where(rest == 0, -math.inf, x)
    quantiles = where((p - 0.5).abs() < 0.4, middle, where(p < 0.5, tail, -tail))
    return where((p >= 0) & (p <= 1), quantiles, math.nan)


def ndtri(input: Tensor) -> Tensor:
    """The inverse of ndtr(), the quantile function of the standard normal distribution. NaN outside [0, 1]. Integers
    become floats.

    >>> norch.special.ndtri(norch.tensor([0.0, 0.025, 0.5]))
    tensor([   -inf, -1.9600,  0.0000])
    """
    return _ndtri(as_operand(input, "ndtri"))
