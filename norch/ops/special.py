"""Modified Bessel functions and incomplete gamma functions, rows of csrc/ops.def whose formulas are in
csrc/cpu/math_special.h; and functions composed for ``norch.special`` alone."""

from __future__ import annotations

import math

from .._typing import Operand, Operation, Tensor
from ..autograd.differentiable import differentiable
from ._arguments import as_fixed_operand
from .op import function_op, op
from .pointwise import erfc, log1p, where, xlogy

__all__ = ["i0", "igamma", "igammac"]


def _over(y: Tensor, x: Tensor) -> Tensor:
    """y / x for an odd y of slope 1/2 at 0, 1/2 there."""
    return (y / x.where(x != 0, 1)).where(x != 0, 0.5)


def _density(a: Tensor, x: Tensor) -> Tensor:
    """x**(a - 1) e**-x / gamma(a), the slope of igamma(a, x) along x."""
    return (xlogy(a - 1, x) - x - a.lgamma()).exp()


def _grad_of_first(g: Tensor) -> Tensor:
    raise NotImplementedError("igamma, igammac: the derivative by the first argument is not implemented, as in PyTorch")


i0: Operation = op(
    "i0",
    "Modified Bessel function of the first kind, of order 0; even, from 1 at 0. Integers become floats.",
    grad=lambda g, x: g * i1(x),
)
i0e: Operation = function_op(
    "i0e", "i0(x) e**-|x|, which does not overflow.", grad=lambda g, x, out: g * (i1e(x) - x.sign() * out)
)
i1: Operation = function_op(
    "i1",
    "Modified Bessel function of the first kind, of order 1; odd. Integers become floats.",
    grad=lambda g, x, out: g * (i0(x) - _over(out, x)),
)
i1e: Operation = function_op(
    "i1e",
    "i1(x) e**-|x|, which does not overflow.",
    grad=lambda g, x, out: g * (i0e(x) - x.sign() * out - _over(out, x)),
)
igamma = op(
    "igamma",
    "Regularised lower incomplete gamma function P(a, x), in [0, 1]; NaN where an argument is negative. Differentiable "
    "by x.",
    grad_a=_grad_of_first,
    grad_b=lambda g, a, b: g * _density(a, b),
)
igammac = op(
    "igammac",
    "Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), exact where small. Differentiable by x.",
    grad_a=_grad_of_first,
    grad_b=lambda g, a, b: -g * _density(a, b),
)


def entr(input: Tensor) -> Tensor:  # PyTorch's name
    """-x log(x), whose sum over probabilities is their entropy: 0 at 0, -inf below.

    >>> norch.special.entr(norch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.3466, 0.0000])
    """
    return _entr(as_fixed_operand(input, "entr"))


@differentiable("entr", grad=lambda g, x: g * (-1 - x.log()))
def _entr(x: Tensor) -> Tensor:
    return where(x < 0, -math.inf, 0 - xlogy(x, x))


def ndtr(input: Tensor) -> Tensor:
    """The distribution function of the standard normal distribution, exact far to the left, too."""
    return erfc(as_fixed_operand(input, "ndtr") * -math.sqrt(0.5)) / 2


def xlog1py(input: Operand, other: Operand) -> Tensor:
    """input * log(1 + other), 0 where input is 0 and other no NaN. Integers become floats."""
    x, y = as_fixed_operand(input, "xlog1py"), as_fixed_operand(other, "xlog1py")
    return where((x == 0) & (y == y), 0, x * log1p(where((x == 0) & (y == y), 0, y)))
