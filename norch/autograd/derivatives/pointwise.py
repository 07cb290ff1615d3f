"""Derivatives of the pointwise operations."""

from __future__ import annotations

import math
from typing import Any

from ..forms import Binary, Ternary, Unary

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off


_SLOPE = 2 * math.sqrt(2 / math.pi)  # of gelu_tanh: x * sigmoid(v), v = _SLOPE * (x + 0.044715 x**3)
_BEND = 3 * 0.044715 * _SLOPE

# ---- one input -------------------------------------------------------------------------------------------------------


class _Flat(Unary):
    """Steps: the derivative is 0 wherever there is one."""
    def grad_x(self, g: Any) -> Any: return g.new_zeros(g.shape)


class Neg(Unary):
    def grad_x(self, g: Any) -> Any: return -g


class Abs(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.sign()


class Sign(_Flat): pass
class Floor(_Flat): pass
class Ceil(_Flat): pass
class Round(_Flat): pass
class Trunc(_Flat): pass


class Square(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.x * 2)


class Cube(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.x.square() * 3)


class Reciprocal(Unary):
    def grad_x(self, g: Any) -> Any: return -g * (self.out * self.out)


class Sqrt(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.out * 2)


class Rsqrt(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.out * self.out * self.out * -0.5)


class Exp(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.out


class Exp2(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.out * math.log(2)


class Expm1(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.out + 1)


class Log(Unary):
    def grad_x(self, g: Any) -> Any: return g / self.x


class Log2(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x * math.log(2))


class Log10(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x * math.log(10))


class Log1p(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x + 1)


class Sin(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.cos()


class Cos(Unary):
    def grad_x(self, g: Any) -> Any: return -g * self.x.sin()


class Tan(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.out * self.out + 1)


class Asin(Unary):
    def grad_x(self, g: Any) -> Any: return g * (1 - self.x * self.x).rsqrt()


class Acos(Unary):
    def grad_x(self, g: Any) -> Any: return -g * (1 - self.x * self.x).rsqrt()


class Atan(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x * self.x + 1)


class Sinh(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.cosh()


class Cosh(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.sinh()


class Tanh(Unary):
    def grad_x(self, g: Any) -> Any: return g._tanh_backward(self.out)


class Asinh(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.x * self.x + 1).rsqrt()


class Acosh(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.x * self.x - 1).rsqrt()


class Atanh(Unary):
    def grad_x(self, g: Any) -> Any: return g / (1 - self.x * self.x)


class Erf(Unary):
    def grad_x(self, g: Any) -> Any: return g * ((self.x * -self.x).exp() * (2 / math.sqrt(math.pi)))


class Erfc(Unary):
    def grad_x(self, g: Any) -> Any: return g * ((self.x * -self.x).exp() * (-2 / math.sqrt(math.pi)))


class Sigmoid(Unary):
    def grad_x(self, g: Any) -> Any: return g._sigmoid_backward(self.out)


class Silu(Unary):
    def grad_x(self, g: Any) -> Any: return g._silu_backward(self.x)


class Gelu(Unary):
    def grad_x(self, g: Any) -> Any: return g._gelu_backward(self.x)


class Relu(Unary):
    connected = 2
    def grad_x(self, g: Any) -> Any: return g._relu_backward(self.out)


class Erfinv(Unary):
    def grad_x(self, g: Any) -> Any: return g * ((self.out * self.out).exp() * (math.sqrt(math.pi) / 2))


class Lgamma(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.digamma()


class Digamma(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.polygamma(1)


class Sinc(Unary):
    def grad_x(self, g: Any) -> Any:
        return g * (((self.x * math.pi).cos() - self.x.sinc()) / self.x).where(self.x != 0, 0)


class Logit(Unary):  # NaN outside [0, 1], infinite at its ends
    def grad_x(self, g: Any) -> Any:
        return (g / (self.x * (1 - self.x))).where((self.x >= 0) & (self.x <= 1), math.nan)


class GeluTanh(Unary):
    def grad_x(self, g: Any) -> Any: return g._gelu_tanh_backward(self.x)


class Mish(Unary):
    def grad_x(self, g: Any) -> Any: return g._mish_backward(self.x)


class Hardswish(Unary):
    def grad_x(self, g: Any) -> Any:
        return g * (self.x / 3 + 0.5).where((self.x >= 3).logical_not(), 1).where((self.x <= -3).logical_not(), 0)


class Softsign(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x.abs() + 1).square()


class Logsigmoid(Unary):
    def grad_x(self, g: Any) -> Any: return g * (-self.x).sigmoid()


class Mvlgamma(Unary):  # the sum of lgamma(x - k / 2) for k below count
    __slots__ = ("count",)
    count: int

    def grad_x(self, g: Any) -> Any:
        slope = self.x.digamma()
        for k in range(1, self.count):
            slope = slope + (self.x - k / 2).digamma()
        return g * slope


class Mantissa(Unary):  # x / 2**exponent
    __slots__ = ("exponent",)
    exponent: Any

    def grad_x(self, g: Any) -> Any: return g._scaled(self.exponent)


class Glu(Unary):  # a sigmoid(b) of the halves a and b along dim
    __slots__ = ("dim",)

    def grad_x(self, g: Any) -> Any:
        a, b = self.x.chunk(2, self.dim)
        s = b.sigmoid()
        return g._cat_of((g * s, (g * a)._sigmoid_backward(s)), self.dim)


# ---- two inputs ------------------------------------------------------------------------------------------------------


class Add(Binary):
    shares_grad = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return g


class Sub(Binary):
    shares_grad = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return -g


class Mul(Binary):
    def grad_a(self, g: Any) -> Any: return g * self.b
    def grad_b(self, g: Any) -> Any: return g * self.a


class Div(Binary):
    def grad_a(self, g: Any) -> Any: return g / self.b
    def grad_b(self, g: Any) -> Any: return -g * ((self.a / self.b) / self.b)


class Remainder(Binary):  # a - b floor(a / b)
    shares_grad = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return -g * self.a.div(self.b, rounding_mode="floor")


class Pow(Binary):
    def grad_a(self, g: Any) -> Any:  # b = 0 is a constant, also at a = 0 where a ** -1 is infinite
        b = self.b
        if b._weak:  # a Python number
            n = b.item()
            return g * (self.a.pow(n - 1) * n) if n else g.new_zeros(g.shape)
        return (g * (b * self.a.pow(b - 1))).where(b != 0, 0)

    def grad_b(self, g: Any) -> Any:  # 0 ** b is constant for b >= 0, though log(0) is infinite
        flat = (self.a == 0) & (self.b >= 0)
        return (g * (self.a.pow(self.b) * self.a.to(g.dtype).log())).where(flat.logical_not(), 0)


class Atan2(Binary):  # 0 at the origin, where there is none; a or b may be an integer, whose square could overflow
    def grad_a(self, g: Any) -> Any:
        a, b = self.a.to(g.dtype), self.b.to(g.dtype)
        square = a * a + b * b
        return g * (b / square).where(square != 0, 0)

    def grad_b(self, g: Any) -> Any:
        a, b = self.a.to(g.dtype), self.b.to(g.dtype)
        square = a * a + b * b
        return -g * (a / square).where(square != 0, 0)


class Maximum(Binary):  # equal inputs share the gradient; NaN, which is not less, lets it through
    def grad_a(self, g: Any) -> Any:
        return (g / 2).where(self.a == self.b, g).where((self.a < self.b).logical_not(), 0)

    def grad_b(self, g: Any) -> Any:
        return (g / 2).where(self.a == self.b, g).where((self.b < self.a).logical_not(), 0)


class Minimum(Binary):
    def grad_a(self, g: Any) -> Any:
        return (g / 2).where(self.a == self.b, g).where((self.a > self.b).logical_not(), 0)

    def grad_b(self, g: Any) -> Any:
        return (g / 2).where(self.a == self.b, g).where((self.b > self.a).logical_not(), 0)


class ClampMin(Binary):  # a value at the bound counts as inside
    def grad_a(self, g: Any) -> Any: return g.where(self.a >= self.b, 0)
    def grad_b(self, g: Any) -> Any: return g.where(self.a < self.b, 0)


class ClampMax(Binary):
    def grad_a(self, g: Any) -> Any: return g.where(self.a <= self.b, 0)
    def grad_b(self, g: Any) -> Any: return g.where(self.a > self.b, 0)


class ReluBackward(Binary):  # a is the gradient, b the result of relu
    def grad_a(self, g: Any) -> Any: return g._relu_backward(self.b)
    def grad_b(self, g: Any) -> Any: return None


class SigmoidBackward(Binary):  # a * b * (1 - b)
    def grad_a(self, g: Any) -> Any: return g._sigmoid_backward(self.b)
    def grad_b(self, g: Any) -> Any: return g * self.a * (1 - self.b * 2)


class TanhBackward(Binary):  # a * (1 - b * b)
    def grad_a(self, g: Any) -> Any: return g._tanh_backward(self.b)
    def grad_b(self, g: Any) -> Any: return g * self.a * (self.b * -2)


class SiluBackward(Binary):  # a * s * (1 + b * (1 - s)), s = sigmoid(b)
    def grad_a(self, g: Any) -> Any: return g._silu_backward(self.b)

    def grad_b(self, g: Any) -> Any:
        s = self.b.sigmoid()
        return g * self.a * (s * (1 - s) * (2 + self.b * (1 - s * 2)))


class GeluBackward(Binary):  # a * (Phi(b) + b * phi(b)), Phi and phi of the normal distribution
    def grad_a(self, g: Any) -> Any: return g._gelu_backward(self.b)

    def grad_b(self, g: Any) -> Any:
        square = self.b * self.b
        return g * self.a * ((2 - square) * (square * -0.5).exp() * (1 / math.sqrt(2 * math.pi)))


class Quotient(Binary):
    """A rounded quotient: steps, flat between them."""
    def grad_a(self, g: Any) -> Any: return g.new_zeros(g.shape)
    def grad_b(self, g: Any) -> Any: return g.new_zeros(g.shape)


class Fmod(Binary):  # a - b trunc(a / b)
    shares_grad = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return -g * self.a.div(self.b, rounding_mode="trunc")


class LogitLoss(Binary):  # (1 - b) a - logsigmoid(a)
    def grad_a(self, g: Any) -> Any: return g * ((1 - self.b) - (-self.a).sigmoid())
    def grad_b(self, g: Any) -> Any: return g * -self.a


class ProbabilityLoss(Binary):  # (b - 1) log(1 - a) - b log(a), of logarithms (and here a quotient) held in bounds
    def grad_a(self, g: Any) -> Any: return g * (self.a - self.b) / ((1 - self.a) * self.a).clamp(min=1e-12)
    def grad_b(self, g: Any) -> Any: return g * ((-self.a).log1p() - self.a.log())


class Ldexp(Binary):  # a * 2**b
    def grad_a(self, g: Any) -> Any: return g * self.b.exp2()
    def grad_b(self, g: Any) -> Any: return g * (self.out * math.log(2))


class Hypot(Binary):
    def grad_a(self, g: Any) -> Any: return g * (self.a / self.out)
    def grad_b(self, g: Any) -> Any: return g * (self.b / self.out)


class Copysign(Binary):
    def grad_a(self, g: Any) -> Any: return g * (self.out / self.a).where(self.a != 0, 0)
    def grad_b(self, g: Any) -> Any: return g.new_zeros(g.shape)


class Xlogy(Binary):
    def grad_a(self, g: Any) -> Any:
        return g.xlogy(self.b).where(((self.a == 0) & (self.b <= 0)).logical_not(), 0)

    def grad_b(self, g: Any) -> Any: return g * self.a / self.b


class Logaddexp(Binary):
    def grad_a(self, g: Any) -> Any: return g * (self.a - self.b).sigmoid()
    def grad_b(self, g: Any) -> Any: return g * (self.b - self.a).sigmoid()


class Logaddexp2(Binary):
    def grad_a(self, g: Any) -> Any: return g * ((self.a - self.b) * math.log(2)).sigmoid()
    def grad_b(self, g: Any) -> Any: return g * ((self.b - self.a) * math.log(2)).sigmoid()


class Fmax(Binary):  # of equal ones a has the gradient
    def grad_a(self, g: Any) -> Any: return g.where((self.a >= self.b) | self.b.isnan(), 0)
    def grad_b(self, g: Any) -> Any: return g.where(((self.a >= self.b) | self.b.isnan()).logical_not(), 0)


class Fmin(Binary):
    def grad_a(self, g: Any) -> Any: return g.where((self.a <= self.b) | self.b.isnan(), 0)
    def grad_b(self, g: Any) -> Any: return g.where(((self.a <= self.b) | self.b.isnan()).logical_not(), 0)


class Zeta(Binary):  # a, the exponent, is a number
    def grad_a(self, g: Any) -> Any: return None
    def grad_b(self, g: Any) -> Any: return -g * (self.a * (self.a + 1)._zeta(self.b))


class LeakyRelu(Binary):  # b: the slope for negative a, the weight of prelu
    connected = 2
    def grad_a(self, g: Any) -> Any: return g.where(self.a > 0, g * self.b)
    def grad_b(self, g: Any) -> Any: return (g * self.a).where((self.a > 0).logical_not(), 0)


class Hardshrink(Binary):  # b: the bound, a number
    connected = 2
    def grad_a(self, g: Any) -> Any: return g.where(self.a.abs() > self.b, 0)
    def grad_b(self, g: Any) -> Any: return None


class Softshrink(Hardshrink): pass


class Huber(Binary):  # b: the bound, a number
    connected = 2
    def grad_a(self, g: Any) -> Any: return g * self.a.clamp(-self.b, self.b)
    def grad_b(self, g: Any) -> Any: return None


class GeluTanhBackward(Binary):  # a is the gradient, b the input: a * (s + b s (1 - s) v'), s = sigmoid(v)
    def grad_a(self, g: Any) -> Any: return g._gelu_tanh_backward(self.b)

    def grad_b(self, g: Any) -> Any:
        square = self.b * self.b
        slope = square * _BEND + _SLOPE
        v = self.b * (square * (_BEND / 3) + _SLOPE)
        s, rest = v.sigmoid(), (-v).sigmoid()  # rest is 1 - s
        bend = self.b * ((rest - s) * slope * slope + self.b * (2 * _BEND))
        return g * self.a * (s * rest * (slope * 2 + bend))


class MishBackward(Binary):  # a * (t + b t'), t = tanh(softplus(b)), t' = (1 - t t) s, s = sigmoid(b)
    def grad_a(self, g: Any) -> Any: return g._mish_backward(self.b)

    def grad_b(self, g: Any) -> Any:
        s, rest = self.b.sigmoid(), (-self.b).sigmoid()  # rest is 1 - s
        t = (-((-self.b)._logsigmoid())).tanh()
        return g * self.a * ((1 - t * t) * s * (2 + self.b * (rest - s * t * 2)))


# ---- three inputs ----------------------------------------------------------------------------------------------------


class Where(Ternary):  # a chooses b or c
    def grad_a(self, g: Any) -> Any: return None
    def grad_b(self, g: Any) -> Any: return g.where(self.a, 0)
    def grad_c(self, g: Any) -> Any: return g.where(self.a.logical_not(), 0)


class Clamp(Ternary):  # a between b and c
    def grad_a(self, g: Any) -> Any: return g.where((self.a >= self.b) & (self.a <= self.c), 0)
    def grad_b(self, g: Any) -> Any: return g.where((self.a < self.b) & (self.b < self.c), 0)
    def grad_c(self, g: Any) -> Any: return g.where((self.a > self.c) | (self.c < self.b), 0)


class Lerp(Ternary):
    def grad_a(self, g: Any) -> Any: return g * (1 - self.c)
    def grad_b(self, g: Any) -> Any: return g * self.c
    def grad_c(self, g: Any) -> Any: return g * (self.b - self.a)


class Addcmul(Ternary):
    shares_grad = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return g * self.c
    def grad_c(self, g: Any) -> Any: return g * self.b


class Addcdiv(Ternary):
    shares_grad = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return g / self.c
    def grad_c(self, g: Any) -> Any: return -g * (self.b / (self.c * self.c))


class Hardtanh(Ternary):  # the row of clamp, but a value at a bound counts as outside; b and c are numbers
    connected = 2
    def grad_a(self, g: Any) -> Any: return g.where((self.a > self.b) & (self.a < self.c), 0)
    def grad_b(self, g: Any) -> Any: return None
    def grad_c(self, g: Any) -> Any: return None


class Elu(Ternary):  # b expm1(a c) for negative a
    def grad_a(self, g: Any) -> Any:
        below = (self.a._between(-math.inf, 0) * self.c).exp() * (self.b * self.c)
        return g * below.where((self.a > 0).logical_not(), 1)

    def grad_b(self, g: Any) -> Any: return None
    def grad_c(self, g: Any) -> Any: return None


class Softplus(Ternary):  # log1p(exp(a b)) / b, and a where a b > c
    def grad_a(self, g: Any) -> Any: return g.where(self.a * self.b > self.c, g * (self.a * self.b).sigmoid())
    def grad_b(self, g: Any) -> Any: return None
    def grad_c(self, g: Any) -> Any: return None
