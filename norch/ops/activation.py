"""Activation functions that are rows of csrc/ops.def, and glu. nn/functional wraps them with PyTorch's signatures."""

from __future__ import annotations

import math

from .._binding.library import lib
from .._package.typing import Any, Tensor
from ..autograd.differentiable import differentiable
from ..autograd.grad_mode import mode
from ..autograd.levels import BatchedBase
from .copy import cat
from .op import OPCODES, backward_op, function_op
from .pointwise import mul, sigmoid, sigmoid_backward

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
softsign = function_op(
    "softsign",
    """x / (1 + |x|).

    >>> norch.nn.functional.softsign(norch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """,
    grad=lambda g, x: softsign_backward(g, x),
)
logsigmoid = function_op(
    "logsigmoid",
    """log(sigmoid(x)), without overflow. Floats only.

    >>> norch.nn.functional.logsigmoid(norch.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """,
    grad=lambda g, x: logsigmoid_backward(g, x),
)
hardsigmoid = function_op(
    "hardsigmoid", "relu6(x + 3) / 6. Floats only.", grad=lambda g, x: hardsigmoid_backward(g, x), depends_on=1
)
selu = function_op(
    "selu",
    "elu with constants that keep mean 0 and variance 1 (Klambauer et al. 2017). Floats only.",
    grad=lambda g, x: selu_backward(g, x),
)
tanhshrink = function_op("tanhshrink", "x - tanh(x). Floats only.", grad=lambda g, x: tanhshrink_backward(g, x))

# ---- with parameters, which have no gradient but for the slope of leaky_relu, the weight of prelu --------------------

leaky_relu = function_op(
    "leaky_relu",
    "a for positive a, b * a for others. Floats only.",
    depends_on=2,
    grad_a=lambda g, a, b: leaky_relu_backward(g, a, b),
    grad_b=lambda g, a: (g * a).where((a > 0).logical_not(), 0),
)
hardshrink = function_op(
    "hardshrink",
    "0 for |a| up to b, a for others. Floats only.",
    depends_on=2,
    grad_a=lambda g, a, b: shrink_backward(g, a, b),
)
softshrink = function_op(
    "softshrink",
    "0 for |a| up to b, a less b or plus b for others. Floats only.",
    depends_on=2,
    grad_a=lambda g, a, b: shrink_backward(g, a, b),
)
huber = function_op(
    "huber",
    "a**2 / 2 for |a| below b, b (|a| - b / 2) for others. Floats only.",
    depends_on=2,
    grad_a=lambda g, a, b: huber_backward(g, a, b),
)


def _held(**gradient: Any) -> Any:
    about = "a held between b and c. A value at a bound has no gradient. Floats only."
    return function_op("hardtanh", about, row="clamp", depends_on=2, **gradient)


_hardtanh = _held(grad_a=lambda g, a, b, c: g.where(((a <= b) | (a >= c)).logical_not(), 0))  # NaN has one
_hardtanh_about_0 = _held(grad_a=lambda g, a, c: hardtanh_backward(g, a, c))
_relu6 = _held(grad_a=lambda g, a: relu6_backward(g, a))
# In place they save what was written, which lies at a bound where a did or was beyond it.
_hardtanh_ = _held(grad_a=lambda g, b, c, out: g.where(((out <= b) | (out >= c)).logical_not(), 0))
_hardtanh_about_0_ = _held(grad_a=lambda g, c, out: hardtanh_backward(g, out, c))
_relu6_ = _held(grad_a=lambda g, out: relu6_backward(g, out))


def hardtanh(low: Any, high: Any, in_place: bool) -> Any:
    """The function of a, low and high that clamps a to [low, high]. It has the gradient that takes the fewest passes.
    in_place says that the caller will ask for the in-place form, for a dtype that has both bounds.
    """
    if type(low) in (int, float) and type(high) in (int, float):
        if low == 0 and high == 6:
            return _relu6_ if in_place else _relu6
        if low == -high:
            return _hardtanh_about_0_ if in_place else _hardtanh_about_0
    return _hardtanh_ if in_place else _hardtanh


threshold = function_op(
    "threshold",
    "c for a up to b, a for others.",
    depends_on=2,
    grad_a=lambda g, a, b: threshold_backward(g, a, b),
)
elu = function_op(
    "elu", "a for positive a, b * expm1(a) for others. Floats only.", grad_a=lambda g, a, b: elu_backward(g, a, b)
)
celu = function_op(
    "celu", "a for positive a, b * expm1(a / b) for others. Floats only.", grad_a=lambda g, a, b: celu_backward(g, a, b)
)
softplus = function_op(
    "softplus",
    "log(1 + e**(b a)) / b, and a where b a > c. Floats only.",
    grad_a=lambda g, a, b, c: softplus_backward(g, a * b, c),
)


def _glu_grad(g: Any, x: Any, dim: int) -> Any:
    a, b = x.chunk(2, dim)
    s = b.sigmoid()
    if mode.enabled or isinstance(g, BatchedBase) or isinstance(x, BatchedBase):
        return cat((g * s, g * sigmoid_backward(a, s)), dim)
    out = lib.norch_empty(lib.norch_shape(x), x._dtype, (x._device_type, x._device_index))
    of_a, of_b = out.chunk(2, dim)
    lib.norch_binary_into(of_b, OPCODES["sigmoid_backward"], a, s)
    lib.norch_binary_into(of_b, OPCODES["mul"], of_b, g)
    lib.norch_binary_into(of_a, OPCODES["mul"], s, g)
    return out


@differentiable(grad=_glu_grad)
def glu(x: Tensor, dim: int) -> Tensor:
    """a * sigmoid(b), where a and b are the halves of x along dim."""
    half = x.shape[dim] // 2
    a, s = lib.norch_narrow(x, dim, 0, half), sigmoid(lib.norch_narrow(x, dim, half, half))
    if isinstance(s, BatchedBase):
        return mul(a, s)
    lib.norch_binary_into(s, OPCODES["mul"], a, s)
    return s


# ---- derivatives that are rows of their own, in one pass over memory: a is the gradient, b the input -----------------

# Those of the second order multiply a by a slope first, of some units at most: the product of g and a may overflow.


def _silu_second(g: Any, a: Any, b: Any) -> Any:
    """The derivative of a s (1 + b (1 - s)), s = sigmoid(b)."""
    s, rest = b.sigmoid(), (-b).sigmoid()  # rest is 1 - s
    return g * (a * (s * rest * (2 + b * (rest - s))))


def _gelu_second(g: Any, a: Any, b: Any) -> Any:
    """The derivative of a (Phi(b) + b phi(b)), with Phi and phi of the normal distribution."""
    square = b.clamp(-40, 40).square()  # 0 comes from there on
    return g * (a * ((2 - square) * (square * -0.5).exp() * (1 / math.sqrt(2 * math.pi))))


_SLOPE = 2 * math.sqrt(2 / math.pi)  # of gelu_tanh: x * sigmoid(v), v = _SLOPE * (x + 0.044715 x**3)
_BEND = 3 * 0.044715 * _SLOPE


def _gelu_tanh_second(g: Any, a: Any, b: Any) -> Any:
    """The derivative of a (s + b s (1 - s) v'), s = sigmoid(v)."""
    b = b.clamp(-40, 40)  # 0 comes from there on
    square = b * b
    slope = square * _BEND + _SLOPE
    v = b * (square * (_BEND / 3) + _SLOPE)
    s, rest = v.sigmoid(), (-v).sigmoid()  # rest is 1 - s
    bend = b * ((rest - s) * slope * slope + b * (2 * _BEND))
    return g * (a * (s * rest * (slope * 2 + bend)))


def _mish_second(g: Any, a: Any, b: Any) -> Any:
    """The derivative of a (t + b t'), t = tanh(softplus(b)), t' = (1 - t t) s, s = sigmoid(b)."""
    b = b.clamp(-1000, 1000)  # 0 comes from there on
    s, rest = b.sigmoid(), (-b).sigmoid()  # rest is 1 - s
    t = (-logsigmoid(-b)).tanh()
    return g * (a * ((1 - t * t) * s * (2 + b * (rest - s * t * 2))))


silu_backward: Any = backward_op("silu_backward", grad_b=_silu_second)
gelu_backward: Any = backward_op("gelu_backward", grad_b=_gelu_second)
gelu_tanh_backward: Any = backward_op("gelu_tanh_backward", grad_b=_gelu_tanh_second)
mish_backward: Any = backward_op("mish_backward", grad_b=_mish_second)
hardswish_backward: Any = backward_op("hardswish_backward", grad_b=lambda g, a, b: (g * (a / 3)).where(b.abs() < 3, 0))
softsign_backward: Any = backward_op(
    "softsign_backward", grad_b=lambda g, a, b: g * (a * (b.sign() * -2 / (b.abs() + 1) ** 3))
)
logsigmoid_backward: Any = backward_op(
    "logsigmoid_backward", grad_b=lambda g, a, b: -g * (a * (b.sigmoid() * (-b).sigmoid()))
)


def _tanhshrink_second(g: Any, a: Any, b: Any) -> Any:
    """The derivative of a t t, t = tanh(b)."""
    t = b.tanh()
    return g * (a * (2 * t * (1 - t * t)))


tanhshrink_backward: Any = backward_op("tanhshrink_backward", grad_b=_tanhshrink_second)
hardsigmoid_backward: Any = backward_op("hardsigmoid_backward")
relu6_backward: Any = backward_op("relu6_backward")
selu_backward: Any = backward_op("selu_backward", grad_b=lambda g, a, b: g * selu_backward(a, b).where(b < 0, 0))

# ---- those with a parameter c, which has no gradient ----------------------------------------------------------------

hardtanh_backward: Any = backward_op("hardtanh_backward")
shrink_backward: Any = backward_op("shrink_backward")
threshold_backward: Any = backward_op("threshold_backward")
leaky_relu_backward: Any = backward_op(
    "leaky_relu_backward", grad_c=lambda g, a, b: (g * a).where((b > 0).logical_not(), 0)
)
elu_backward: Any = backward_op("elu_backward", grad_b=lambda g, a, b, c: g * elu_backward(a, b, c).where(b < 0, 0))
celu_backward: Any = backward_op(
    "celu_backward", grad_b=lambda g, a, b, c: g * celu_backward(a / c, b, c).where(b < 0, 0)
)
softplus_backward: Any = backward_op(
    "softplus_backward", grad_b=lambda g, a, b, c: (g * (a * (b.sigmoid() * (-b).sigmoid()))).where(b < c, 0)
)
huber_backward: Any = backward_op("huber_backward", grad_b=lambda g, a, b, c: (g * a).where(b.abs() < c, 0))
