"""Activation functions that are rows of csrc/ops.def, and glu. nn/functional wraps them with PyTorch's signatures."""

from __future__ import annotations

import math

from .._typing import Any, Tensor
from ..autograd.differentiable import differentiable
from .copy import cat
from .op import function_op
from .pointwise import sigmoid_backward

# ---- one input ------------------------------------------------------------------------------------------------------

silu = function_op(
    "silu", "x * sigmoid(x) (Elfwing et al. 2017). Floats and complex numbers.", grad=lambda g, x: silu_backward(g, x)
)
gelu = function_op(
    "gelu",
    "x times the normal distribution at x (Hendrycks and Gimpel 2016), exact form. Floats only.",
    grad=lambda g, x: gelu_backward(g, x),
)
gelu_tanh = function_op(
    "gelu_tanh", "gelu with a tanh in place of erf. Floats only.", grad=lambda g, x: gelu_tanh_backward(g, x)
)
mish = function_op("mish", "x * tanh(softplus(x)) (Misra 2019). Floats only.", grad=lambda g, x: mish_backward(g, x))
hardswish = function_op(
    "hardswish",
    "x * relu6(x + 3) / 6 (Howard et al. 2019). Floats only.",
    grad=lambda g, x: hardswish_backward(g, x),
)
softsign = function_op("softsign", "x / (1 + |x|).", grad=lambda g, x: g / (x.abs() + 1).square())
logsigmoid = function_op("logsigmoid", "log(sigmoid(x)). Floats only.", grad=lambda g, x: g * (-x).sigmoid())

# ---- with parameters, which have no gradient but for the slope of leaky_relu, the weight of prelu --------------------

leaky_relu = function_op(
    "leaky_relu",
    "a for positive a, b * a for others. Floats only.",
    depends_on=2,
    grad_a=lambda g, a, b: g.where(a > 0, g * b),
    grad_b=lambda g, a: (g * a).where((a > 0).logical_not(), 0),
)
hardshrink = function_op(
    "hardshrink",
    "0 for |a| up to b, a for others. Floats only.",
    depends_on=2,
    grad_a=lambda g, a, b: g.where((a.abs() <= b).logical_not(), 0),  # as of a that is kept, so of NaN
)
softshrink = function_op(
    "softshrink",
    "0 for |a| up to b, a less b or plus b for others. Floats only.",
    depends_on=2,
    grad_a=lambda g, a, b: g.where(a.abs() > b, 0),
)
huber = function_op(
    "huber",
    "a**2 / 2 for |a| below b, b (|a| - b / 2) for others. Floats only.",
    depends_on=2,
    grad_a=lambda g, a, b: g * a.clamp(-b, b).to(a.dtype),
)
hardtanh = function_op(
    "hardtanh",
    "a held between b and c. A value at a bound has no gradient. Floats only.",
    row="clamp",
    depends_on=2,
    grad_a=lambda g, a, b, c: g.where((a > b) & (a < c), 0),
)


def _elu_grad(g: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    below = (hardtanh(a, -math.inf, 0) * c).exp() * (b * c)
    return g * below.where((a > 0).logical_not(), 1)


elu = function_op("elu", "a for positive a, b * expm1(c * a) for others. Floats only.", grad_a=_elu_grad)
softplus = function_op(
    "softplus",
    "log(1 + e**(b a)) / b, and a where b a > c. Floats only.",
    grad_a=lambda g, a, b, c: g.where(a * b > c, g * (a * b).sigmoid()),
)


def _glu_grad(g: Any, x: Any, dim: int) -> Any:
    a, b = x.chunk(2, dim)
    s = b.sigmoid()
    return cat((g * s, sigmoid_backward(g * a, s)), dim)


@differentiable(grad=_glu_grad)
def glu(x: Tensor, dim: int) -> Tensor:
    """a * sigmoid(b), with a and b the halves of x along dim."""
    a, b = x.chunk(2, dim)
    return a * b.sigmoid()


# ---- derivatives that are rows of their own, in one pass over memory: a is the gradient, b the input -----------------


def _silu_second(g: Any, a: Any, b: Any) -> Any:
    """Of a s (1 + b (1 - s)), s = sigmoid(b)."""
    s = b.sigmoid()
    return g * a * (s * (1 - s) * (2 + b * (1 - s * 2)))


def _gelu_second(g: Any, a: Any, b: Any) -> Any:
    """Of a (Phi(b) + b phi(b)), Phi and phi of the normal distribution."""
    square = b * b
    return g * a * ((2 - square) * (square * -0.5).exp() * (1 / math.sqrt(2 * math.pi)))


_SLOPE = 2 * math.sqrt(2 / math.pi)  # of gelu_tanh: x * sigmoid(v), v = _SLOPE * (x + 0.044715 x**3)
_BEND = 3 * 0.044715 * _SLOPE


def _gelu_tanh_second(g: Any, a: Any, b: Any) -> Any:
    """Of a (s + b s (1 - s) v'), s = sigmoid(v)."""
    square = b * b
    slope = square * _BEND + _SLOPE
    v = b * (square * (_BEND / 3) + _SLOPE)
    s, rest = v.sigmoid(), (-v).sigmoid()  # rest is 1 - s
    bend = b * ((rest - s) * slope * slope + b * (2 * _BEND))
    return g * a * (s * rest * (slope * 2 + bend))


def _mish_second(g: Any, a: Any, b: Any) -> Any:
    """Of a (t + b t'), t = tanh(softplus(b)), t' = (1 - t t) s, s = sigmoid(b)."""
    s, rest = b.sigmoid(), (-b).sigmoid()  # rest is 1 - s
    t = (-logsigmoid(-b)).tanh()
    return g * a * ((1 - t * t) * s * (2 + b * (rest - s * t * 2)))


silu_backward: Any = function_op("silu_backward", grad_a=lambda g, b: silu_backward(g, b), grad_b=_silu_second)
gelu_backward: Any = function_op("gelu_backward", grad_a=lambda g, b: gelu_backward(g, b), grad_b=_gelu_second)
gelu_tanh_backward: Any = function_op(
    "gelu_tanh_backward", grad_a=lambda g, b: gelu_tanh_backward(g, b), grad_b=_gelu_tanh_second
)
mish_backward: Any = function_op("mish_backward", grad_a=lambda g, b: mish_backward(g, b), grad_b=_mish_second)
hardswish_backward: Any = function_op(
    "hardswish_backward",
    grad_a=lambda g, b: hardswish_backward(g, b),
    grad_b=lambda g, a, b: (g * a / 3).where(b.abs() < 3, 0),
)
