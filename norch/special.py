"""``norch.special``: functions of mathematical physics and statistics under the names of ``torch.special``.

What ``norch`` itself has is the same function under another name here: ``psi`` is ``norch.digamma``.
"""

from __future__ import annotations

import math

from ._exports import publish
from ._typing import Operand, Tensor
from .autograd.differentiable import differentiable
from .ops._operand import as_fixed_operand
from .ops.composed.pointwise import logit, mvlgamma, polygamma, round  # noqa: A004
from .ops.pointwise import digamma, erf, erfc, erfinv, exp2, expm1, lgamma, log1p, sigmoid, sinc, where, xlogy, zeta
from .ops.reduce import logsumexp
from .ops.softmax import log_softmax, softmax
from .ops.special import i0, i0e, i1, i1e, igamma, igammac

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln", "i0",
    "i0e", "i1", "i1e", "log1p", "log_softmax", "logit", "logsumexp", "multigammaln", "ndtr", "polygamma", "psi",
    "round", "sinc", "softmax", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

psi, gammaln, multigammaln, expit = digamma, lgamma, mvlgamma, sigmoid
gammainc, gammaincc = igamma, igammac


def entr(input: Tensor) -> Tensor:  # noqa: A002  (PyTorch's name)
    """-x log(x), whose sum over probabilities is their entropy: 0 at 0, -inf below.

    >>> norch.special.entr(norch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.3466, 0.0000])
    """
    return _entr(as_fixed_operand(input, "entr"))


@differentiable("entr", grad=lambda g, x: g * (-1 - x.log()))
def _entr(x: Tensor) -> Tensor:
    return where(x < 0, -math.inf, 0 - xlogy(x, x))


def ndtr(input: Tensor) -> Tensor:  # noqa: A002
    """The distribution function of the standard normal distribution, exact far to the left, too."""
    return erfc(as_fixed_operand(input, "ndtr") * -math.sqrt(0.5)) / 2


def xlog1py(input: Operand, other: Operand) -> Tensor:  # noqa: A002
    """input * log(1 + other), 0 where input is 0 and other no NaN. Integers become floats."""
    x, y = as_fixed_operand(input, "xlog1py"), as_fixed_operand(other, "xlog1py")
    return where((x == 0) & (y == y), 0, x * log1p(where((x == 0) & (y == y), 0, y)))


publish(globals())
