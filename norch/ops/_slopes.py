"""Gradients of elementwise operations that take more than a line (pointwise.py). They neither divide by 0 nor multiply
0 by infinity, so that their derivatives, forward and reverse, are right where an input is 0.
"""

from __future__ import annotations

import math

from .._package.typing import Any, Tensor


def by_first_argument(names: str) -> Any:
    """A gradient function that raises."""
    return refused(f"{names}: the derivative by the first argument")


def refused(derivative: str) -> Any:
    """A gradient function that raises."""

    def refuse(g: Tensor) -> Tensor:
        raise NotImplementedError(f"{derivative} is not implemented, as in PyTorch")

    return refuse


def slope_of_acosh(x: Tensor) -> Tensor:
    """1 / sqrt(x**2 - 1). For complex x it is a product of two roots, because the root of the product has the wrong
    sign for Re x < 0.
    """
    return (x - 1).rsqrt() * (x + 1).rsqrt() if x.dtype.is_complex else (x * x - 1).rsqrt()


_SERIES = [(-1) ** k * 2 * k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 9)]


def slope_of_sinc(x: Tensor) -> Tensor:
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


def grad_of_base(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """g b a ** (b - 1). It is 0 for b = 0, also at a = 0, where a ** -1 is infinite, and for an infinite g."""
    if b._weak:  # b stands for a Python number
        n = b.item()
        return g * (a.pow(n - 1) * n) if n else g.new_zeros(g.shape)
    b = b if b.dtype.kind in "fc" else b.to(g.dtype)  # of integers b - 1 could overflow
    varies = (b != 0) | a.reciprocal().isfinite()
    base = a.where(varies, 1)  # before the power, so that no derivative meets 0 times infinity
    return g.where((b != 0) | g.isfinite(), 0) * (b * base.pow(b - 1))


def grad_of_exponent(g: Any, a: Any, b: Any) -> Any:
    """g a ** b log(a); 0 for a = 0 and b >= 0, where log(a) is infinite but 0 ** b is constant."""
    if a._weak and (n := a.item()) > 0:  # a stands for a Python number
        return g * (a.pow(b) * math.log(n))
    is_flat = (a == 0) & (b.real >= 0)
    varies = is_flat.logical_not()
    base = g.new_ones(()).where(is_flat, a.to(g.dtype))  # of dtype g: where() of two Python numbers has the default one
    return g.where(varies, 0) * (base.pow(b) * base.log())


def over_square(g: Any, a: Any, b: Any) -> Any:
    """g a / (a a + b b). It is 0 at the origin, where no gradient exists. Integers become floats, because squares could
    overflow.
    """
    a, b = a.to(g.dtype), b.to(g.dtype)
    norm = a * a + b * b
    return g * (a / norm.where(norm != 0, math.inf))


def flat(g: Tensor) -> Tensor:
    """The gradient of a step function, which is 0 wherever it exists."""
    return g.new_zeros(g.shape)


def grad_of_sgn(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """(g - out Re(conj(g) out)) / |x|: the part of g that is tangential to the unit circle at out. 0 at x = 0."""
    size = x.abs().where(x != 0, 1)  # a quotient by 0 has no derivative, even where it is left out
    return ((g - out * (g.conj() * out).real) / size).where(x != 0, 0)
