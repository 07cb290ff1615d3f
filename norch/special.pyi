"""Written by `make stubs` from the code; a test fails when it is out of date."""

import builtins
from norch._package.typing import Operand
from norch.dtype import dtype
from norch.ops.reduce import Dims
from norch.tensor import Tensor
from typing import overload

def digamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Derivative of lgamma; NaN at negative integers."""
def entr(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-x log(x), whose sum over probabilities is their entropy: 0 at 0, -inf below."""
def erf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
def erfc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 - erf(x)."""
def erfcx(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """exp(input^2) erfc(input), which neither vanishes nor overflows for large numbers. Integers become floats."""
def erfinv(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The number whose erf is x; infinite at -1 and 1, NaN beyond."""
def exp2(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """2**x. Integers become floats."""
def expit(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 / (1 + e**-x). Integers become floats."""
def expm1(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """e**x - 1, exact near 0. Integers become floats."""
def gammainc(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Regularised lower incomplete gamma function P(a, x), in [0, 1]; NaN where an argument is negative. Differentiable by x."""
def gammaincc(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), exact where small. Differentiable by x."""
def gammaln(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Logarithm of the absolute value of the gamma function."""
def i0(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The modified Bessel function of the first kind, of order 0. Integers become floats."""
def i0e(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """i0(x) e**-|x|, which does not overflow."""
def i1(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The modified Bessel function of the first kind, of order 1. Integers become floats."""
def i1e(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """i1(x) e**-|x|, which does not overflow."""
def log1p(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """log(1 + x), exact near 0. Integers become floats."""
def log_ndtr(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """log(ndtr(input)), exact far to the left, too, where ndtr() is 0. Integers become floats."""
def log_softmax(input: Tensor, dim: int, dtype: dtype | None = ...) -> Tensor: """The logarithms of probabilities that sum to 1 along dim: x - logsumexp(x), exact for large x too."""
def logit(input: Tensor, eps: float | None = ..., *, out: Tensor | None = ...) -> Tensor: """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first limited to [eps, 1 - eps]."""
def logsumexp(input: Tensor, dim: Dims = ..., keepdim: bool = ..., *, out: Tensor | None = ...) -> Tensor: """log(sum(exp(x))) over all elements or the axes dim, without overflow. Integers become floats."""
def multigammaln(input: Tensor, p: int, *, out: Tensor | None = ...) -> Tensor: """The logarithm of the multivariate gamma function of dimension p. Integers become floats."""
def ndtr(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The distribution function of the standard normal distribution, exact far to the left, too."""
def ndtri(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The inverse of ndtr(), the quantile function of the standard normal distribution: NaN outside [0, 1]. Integers become floats."""
def polygamma(n: int, input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The n-th derivative of digamma: (-1)**(n + 1) n! sum((input + k)**-(n + 1)). Integers become floats."""
def psi(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Derivative of lgamma; NaN at negative integers."""
def round(input: Tensor, *, decimals: int = ..., out: Tensor | None = ...) -> Tensor: """input rounded to this many decimals (negative: to tens, hundreds ...), halves to the even digit."""
def sinc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """sin(pi x) / (pi x), 1 at 0. Integers become floats."""
def softmax(input: Tensor, dim: int, dtype: dtype | None = ...) -> Tensor: """exp(x) over its sum along dim: probabilities that sum to 1, stable for large x. Integers become floats."""
def xlog1py(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """input * log(1 + other), 0 where input is 0 and other no NaN. Integers become floats."""
def xlogy(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * log(b), 0 where a is 0 and b no NaN. Integers become floats."""
def zeta(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Hurwitz's zeta: the sum of (b + k)**-a over all k >= 0. Differentiable by b."""
