"""Elementwise operations: rows of csrc/ops.def, each with its derivative beside it.

``a + b`` is one call into C (csrc/ops/pointwise.c) and, if a gradient is wanted, one node. op() of op.py declares a
row. The parameters of its gradient functions say what the node saves: x (or a, b, c) are the inputs, out is the result,
g its gradient. Functions that need more than a row follow the rows.
"""

from __future__ import annotations

import math

from .._binding.library import lib
from .._package.typing import Any, Operand, Tensor, overload
from .._tensor.handle import Handle
from ..autograd.differentiable import differentiable
from ..autograd.grad_mode import mode
from ..autograd.outlive import outlive_writes
from ..dtype import float32, float64, uint8
from ..errors import ArgumentError, DTypeError, Error, rename_error
from ._arguments import named_function, public
from ._autocast import in_autocast, policy
from ._checks import floats_of, numbers_of
from ._inplace_methods import inplace_form
from ._operand import as_operand, operand
from ._out import takes_out
from ._rows import binary, writes
from .op import METHODS, backward_op, function_op, method, op

# ---- gradients that take more than a line --------------------------------------------------------------------------

# They neither divide by 0 nor multiply 0 by infinity, so that their derivatives, forward and reverse, are right where
# an input is 0.


def _grad_of_abs(g: Tensor, x: Tensor) -> Tensor:
    return g * sgn(x)


def refused(derivative: str) -> Any:
    """A gradient function that raises."""

    def refuse(g: Tensor) -> Tensor:
        raise NotImplementedError(f"{derivative} is not implemented, as in PyTorch")

    return refuse


def flat(g: Tensor) -> Tensor:
    """The gradient of a step function, which is 0 wherever it exists."""
    return g.new_zeros(g.shape)


def _grad_of_sgn(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """(g - out Re(conj(g) out)) / |x|: the part of g that is tangential to the unit circle at out. 0 at x = 0."""
    size = x.abs().where(x != 0, 1)  # a quotient by 0 has no derivative, even where it is left out
    return ((g - out * (g.conj() * out).real) / size).where(x != 0, 0)


def _grad_of_base(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """g b a ** (b - 1). It is 0 for b = 0, also at a = 0, where a ** -1 is infinite, and for an infinite g."""
    if b._weak:  # b stands for a Python number
        n = b.item()
        return g * (a.pow(n - 1) * n) if n else g.new_zeros(g.shape)
    b = b if b.dtype.kind in "fc" else b.to(g.dtype)  # of integers b - 1 could overflow
    varies = (b != 0) | a.reciprocal().isfinite()
    base = a.where(varies, 1)  # before the power, so that no derivative meets 0 times infinity
    return g.where((b != 0) | g.isfinite(), 0) * (b * base.pow(b - 1))


def _grad_of_exponent(g: Any, a: Any, b: Any) -> Any:
    """g a ** b log(a); 0 for a = 0 and b >= 0, where log(a) is infinite but 0 ** b is constant."""
    if a._weak and (n := a.item()) > 0:  # a stands for a Python number
        return g * (a.pow(b) * math.log(n))
    is_flat = (a == 0) & (b.real >= 0)
    varies = is_flat.logical_not()
    base = g.new_ones(()).where(is_flat, a.to(g.dtype))  # of dtype g: where() of two Python numbers has the default one
    return g.where(varies, 0) * (base.pow(b) * base.log())


# The policy of functions that grow fast or lose digits: autocast computes them in float32 on CUDA.
_WIDE: Any = {"autocast": "- float32"}

# ---- one input ----------------------------------------------------------------------------------------------------

neg = negative = op("neg", "-x. Not for bool.", grad=lambda g: -g, aliases=("negative",))
abs = absolute = op(
    "abs",
    "The absolute value; of complex numbers the modulus.",
    grad=_grad_of_abs,
    aliases=("absolute",),
)
sign = op("sign", "The sign of x: -1, 0 or 1; 0 for NaN.", grad=flat)
square = op("square", "x * x, by element.", grad=lambda g, x: g * (x * 2), **_WIDE)
reciprocal = op("reciprocal", "1 / x. Integers become floats.", grad=lambda g, out: -g * (out * out), **_WIDE)
sqrt = op("sqrt", "Square root; NaN below 0. Integers become floats.", grad=lambda g, out: g / (out * 2))
rsqrt = op("rsqrt", "1 / sqrt(x). Integers become floats.", grad=lambda g, out: g * (out * out * out * -0.5), **_WIDE)
exp = op("exp", "e**x. Integers become floats.", grad=lambda g, out: g * out, **_WIDE)
exp2 = op("exp2", "2**x. Integers become floats.", grad=lambda g, out: g * out * math.log(2))
expm1 = op("expm1", "e**x - 1, exact near 0. Integers become floats.", grad=lambda g, out: g * (out + 1), **_WIDE)
log = op("log", "Natural logarithm; -inf at 0, NaN below. Integers become floats.", grad=lambda g, x: g / x, **_WIDE)
log2 = op("log2", "Logarithm to base 2. Integers become floats.", grad=lambda g, x: g / (x * math.log(2)), **_WIDE)
log10 = op("log10", "Logarithm to base 10. Integers become floats.", grad=lambda g, x: g / (x * math.log(10)), **_WIDE)
log1p = op("log1p", "log(1 + x), exact near 0. Integers become floats.", grad=lambda g, x: g / (x + 1), **_WIDE)
sin = op("sin", "Sine of x radians. Integers become floats.", grad=lambda g, x: g * x.cos())
cos = op("cos", "Cosine of x radians. Integers become floats.", grad=lambda g, x: -g * x.sin())
tanh = op("tanh", "Hyperbolic tangent. Integers become floats.", grad=lambda g, out: tanh_backward(g, out))
sigmoid = op("sigmoid", "1 / (1 + e**-x). Integers become floats.", grad=lambda g, out: sigmoid_backward(g, out))
relu = op(
    "relu", "The larger of x and 0; NaN stays.", grad=lambda g, out: relu_backward(g, out), depends_on=1, out=False
)
floor = op("floor", "The largest integer not above x.", grad=flat)
ceil = op("ceil", "The smallest integer not below x.", grad=flat)
trunc = fix = op("trunc", "x without its fraction: rounded towards 0.", grad=flat, aliases=("fix",))
isnan = op("isnan", "Where x is NaN: a tensor of bools.", inplace=False, out=False)
isinf = op("isinf", "Where x is inf or -inf: a tensor of bools.", inplace=False, out=False)
isfinite = op("isfinite", "Where x is neither infinite nor NaN.", inplace=False, out=False)
signbit = op("signbit", "Where the sign is a minus, that of -0.0 too.", inplace=False)
logical_not = op("logical_not", "Where x is 0 or False: a tensor of bools.")
bitwise_not = op("bitwise_not", "Each bit inverted; for bool, logical not.")
_root = function_op("pow", row="sqrt", grad=lambda g, x: g / (sqrt(x) * 2))  # x ** 0.5, which may be written to
_inverse = function_op("pow", row="reciprocal", grad=lambda g, x: -g * reciprocal(x).square())  # and so may x ** -1
_cube = function_op("cube", grad=lambda g, x: g * (x.square() * 3))


@method
def positive(input: Tensor) -> Tensor:
    """input, unchanged. DTypeError for bool.

    >>> norch.positive(norch.tensor([-1, 2]))
    tensor([-1,  2])
    """
    return numbers_of(input, "positive")


@method(inplace=True, out=True)
def sgn(input: Tensor) -> Tensor:
    """-1, 0 or 1 as sign(); of complex numbers x / |x|, 0 at 0."""
    x = as_operand(input, "sgn")
    return _sgn(x) if x.is_complex() else sign(x)


_sgn = function_op("sgn", grad=_grad_of_sgn, holomorphic=False)

# ---- two inputs ---------------------------------------------------------------------------------------------------

_add = function_op("add", grad_a=lambda g: g, grad_b=lambda g: g, shares_grad=True)
_sub = function_op("sub", grad_a=lambda g: g, grad_b=lambda g: -g, shares_grad=True)
mul = multiply = op(
    "mul",
    "a * b, element by element.",
    grad_a=lambda g, b: g * b,
    grad_b=lambda g, a: g * a,
    saves_numbers=True,
    aliases=("multiply",),
)
_div = function_op(
    "div", "a / b as floats.", grad_a=lambda g, b: g / b, grad_b=lambda g, a, b: -g * ((a / b) / b), saves_numbers=True
)
true_divide = method(_div, name="true_divide", inplace=True)
floor_divide = op(
    "floor_divide",
    "a / b rounded down. Integer division by 0 raises ZeroDivisionError.",
    grad_a=refused("floor_divide: the derivative"),
    grad_b=refused("floor_divide: the derivative"),
)
# As in PyTorch, the derivative of floor_divide() is refused, and that of div() with a rounding_mode is 0.
_floor_divide = function_op("floor_divide", grad_a=flat, grad_b=flat)
_trunc_divide = function_op("trunc_divide", grad_a=flat, grad_b=flat)
remainder = op(
    "remainder",
    "a - b * floor(a / b): the sign of b. An integer divisor 0 raises.",
    grad_a=lambda g: g,
    grad_b=lambda g, a, b: -g * a.div(b, rounding_mode="floor"),
    shares_grad=True,
)
fmod = op(
    "fmod",
    "a - b * trunc(a / b): the sign of a. An integer divisor 0 raises.",
    grad_a=lambda g: g,
    grad_b=lambda g, a, b: -g * a.div(b, rounding_mode="trunc"),
    shares_grad=True,
)


_pow = function_op("pow", grad_a=_grad_of_base, grad_b=_grad_of_exponent, **_WIDE)


copysign = op(
    "copysign",
    "|a| with the sign of b. Integers become floats.",
    grad_a=lambda g, a, out: g * (out / a.where(a != 0, math.inf)),
    grad_b=flat,
)


def _shared(g: Tensor, equal: Tensor, excluded: Tensor) -> Tensor:
    """Equal inputs get half of g each, and an input that was not chosen none. If one is NaN, both get g."""
    return (g / 2).where(equal, g).where(excluded.logical_not(), 0)


maximum = op(
    "maximum",
    "The larger of a and b; NaN wins. Equal ones share the gradient.",
    grad_a=lambda g, a, b: _shared(g, a == b, a < b),
    grad_b=lambda g, a, b: _shared(g, a == b, b < a),
    inplace=False,
)
minimum = op(
    "minimum",
    "The smaller of a and b; NaN wins. Equal ones share the gradient.",
    grad_a=lambda g, a, b: _shared(g, a == b, a > b),
    grad_b=lambda g, a, b: _shared(g, a == b, b > a),
    inplace=False,
)
fmax = op(
    "fmax",
    "The larger of a and b; NaN loses. Of equal ones a has the gradient.",
    grad_a=lambda g, a, b: g.where((a >= b) | b.isnan(), 0),
    grad_b=lambda g, a, b: g.where(((a >= b) | b.isnan()).logical_not(), 0),
    inplace=False,
)
fmin = op(
    "fmin",
    "The smaller of a and b; NaN loses. Of equal ones a has the gradient.",
    grad_a=lambda g, a, b: g.where((a <= b) | b.isnan(), 0),
    grad_b=lambda g, a, b: g.where(((a <= b) | b.isnan()).logical_not(), 0),
    inplace=False,
)
# A value at the bound counts as inside.
_clamp_min = function_op(
    "clamp_min", grad_a=lambda g, a, b: _at_least(g, a, b), grad_b=lambda g, a, b: g.where(a < b, 0)
)
_clamp_max = function_op(
    "clamp_max", grad_a=lambda g, a, b: _at_most(g, a, b), grad_b=lambda g, a, b: g.where(a > b, 0)
)
eq = op("eq", "Where a == b: a tensor of bools. NaN equals nothing.")
ne = not_equal = op("ne", "Where a != b: a tensor of bools. NaN differs from everything.", aliases=("not_equal",))
lt = less = op("lt", "Where a < b: a tensor of bools.", aliases=("less",))
le = less_equal = op("le", "Where a <= b: a tensor of bools.", aliases=("less_equal",))
gt = greater = op("gt", "Where a > b: a tensor of bools.", aliases=("greater",))
ge = greater_equal = op("ge", "Where a >= b: a tensor of bools.", aliases=("greater_equal",))
logical_and = op("logical_and", "Where both are not 0: a tensor of bools.")
logical_or = op("logical_or", "Where at least one of both is not 0: a tensor of bools.")
logical_xor = op("logical_xor", "Where exactly one of both is not 0: a tensor of bools.")
bitwise_and = op("bitwise_and", "a & b, for integers and bool.")
bitwise_or = op("bitwise_or", "a | b, for integers and bool.")
bitwise_xor = op("bitwise_xor", "a ^ b, for integers and bool.")
bitwise_left_shift = op("bitwise_left_shift", "a * 2**b modulo the size of the integer; 0 where b < 0.")
bitwise_right_shift = op("bitwise_right_shift", "a / 2**b rounded down; for b < 0 its sign: 0 or -1.")

# Derivatives that are rows of their own, in one pass over memory: a is the gradient, b the result.
relu_backward: Any = backward_op("relu_backward")
sigmoid_backward: Any = backward_op(  # a * b * (1 - b)
    "sigmoid_backward", grad_b=lambda g, a, b: g * a * (1 - b * 2)
)
tanh_backward: Any = backward_op(  # a * (1 - b * b)
    "tanh_backward", grad_b=lambda g, a, b: g * -2 * (a * b)
)

clamp_min_backward: Any = backward_op("clamp_min_backward")
clamp_max_backward: Any = backward_op("clamp_max_backward")


def _at_least(g: Tensor, a: Tensor, bound: Tensor) -> Tensor:
    """g where a is at least the bound, else 0. Its derivative does not depend on a and the bound, so they are not in
    its graph."""
    return g.where(a >= bound, 0) if mode.enabled else clamp_min_backward(g, a, bound)


def _at_most(g: Tensor, a: Tensor, bound: Tensor) -> Tensor:
    return g.where(a <= bound, 0) if mode.enabled else clamp_max_backward(g, a, bound)


# ---- three inputs -------------------------------------------------------------------------------------------------

_where = function_op(  # a chooses b or c
    "where", grad_b=lambda g, a: g.where(a, 0), grad_c=lambda g, a: g.where(a.logical_not(), 0)
)
_clamp = function_op(  # a between b and c
    "clamp",
    grad_a=lambda g, a, b, c: _at_most(_at_least(g, a, b), a, c),
    grad_b=lambda g, a, b, c: g.where((a < b) & (b < c), 0),
    grad_c=lambda g, a, b, c: g.where((a > c) | (c < b), 0),
)
_lerp = function_op(
    "lerp", grad_a=lambda g, c: g * (1 - c), grad_b=lambda g, c: g * c, grad_c=lambda g, a, b: g * (b - a)
)
_addcmul = function_op(
    "addcmul", grad_a=lambda g: g, grad_b=lambda g, c: g * c, grad_c=lambda g, b: g * b, shares_grad=True
)

# ---- functions of several rows ------------------------------------------------------------------------------------


@method(aliases=("divide",), out=True)
def div(input: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """input / other as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return _floor_divide(input, other)
    if rounding_mode == "trunc":
        return _trunc_divide(input, other)
    raise ArgumentError(f"div: rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")


@method(out=True)
@policy("- float32")
def pow(input: Operand, exponent: Operand) -> Tensor:
    """input ** exponent. Integers to a negative power raise ValueError; of bools True and False are the only powers."""
    if mode.casting and (out := in_autocast(pow, input, exponent)) is not None:
        return out
    if (type(exponent) is int or type(exponent) is float) and exponent in _POWERS:
        input = as_operand(input, "pow")
        if (kind := input.dtype.kind) == "c" or kind == "f" and exponent != 1:
            return _POWERS[exponent](input)
    if type(exponent) is bool and as_operand(input, "pow").dtype.kind == "b":
        return logical_or(input, not exponent)
    return _pow(input, _legal_power(input, exponent))


@differentiable("pow", grad=flat)
def _one(x: Tensor) -> Tensor:
    """x ** 0, 1 also where x is NaN."""
    return lib.norch_full_like(x, -1, 1.0, 1)


# Of complex numbers x ** 1 is x, which exp(log(x)) is but nearly; a power of floats by the kernel is exact there.
_POWERS: dict[float, Any] = {0: _one, 1: lambda x: _sub(x, 0), 2: square, 3: _cube, 0.5: _root, -1: _inverse}


def _legal_power(a: Operand, b: Operand) -> Any:
    if type(b) is int and b < 0 and as_operand(a, "pow").dtype.kind not in "fc":
        raise ArgumentError(f"pow: integers to the negative power {b} are not integers; convert to floats first")
    return b


@method(aliases=("clip",), out=True)
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """input limited to [min, max], which are numbers or tensors; NaN stays. With min above max, max."""
    if min is None and max is None:
        raise ArgumentError("clamp: give min, max or both")
    try:
        if max is None:
            return _clamp_min(input, min)
        return _clamp_max(input, max) if min is None else _clamp(input, min, max)
    except (Error, TypeError) as error:
        rename_error(error, "clamp")
        raise


@method(out=True)
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """input, at least min (a number or a tensor); NaN stays."""
    return _clamp_min(input, min)


@method(out=True)
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """input, at most max (a number or a tensor); NaN stays."""
    return _clamp_max(input, max)


@method(out=True)
def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """input + weight * (end - input): from input, at weight 0, to end, at weight 1. Floats only."""
    x = as_operand(input, "lerp")
    return _lerp(x if x.is_complex() else floats_of(x, "lerp"), end, weight)


@overload
def where(condition: Tensor, input: None = ..., other: None = ...) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Operand, other: Operand) -> Tensor: ...
@takes_out
def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Any:
    """input where condition (bool, or uint8) holds, other elsewhere; all broadcast. Of condition alone: its
    nonzero(as_tuple=True).

    >>> norch.where(norch.tensor([True, False]), 1.0, norch.zeros(2))
    tensor([1., 0.])
    """
    if input is None and other is None:
        return as_operand(condition, "where").nonzero(as_tuple=True)
    try:
        return _where(condition, input, other)
    except DTypeError:
        if (out := _by_bytes(condition, input, other)) is None:
            raise
        return out


def _by_bytes(condition: Any, input: Any, other: Any) -> Tensor | None:
    """where() of a mask of bytes, which PyTorch had before it had bool; None for other dtypes."""
    if getattr(condition, "dtype", None) is not uint8:
        return None
    return _where(ne(condition, 0), input, other)


@method(composed=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where |input - other| <= atol + rtol * |other|."""
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: rtol and atol must not be negative, got {rtol} and {atol}")
    a, b = as_operand(input, "isclose"), as_operand(other, "isclose")
    if a.dtype.kind not in "fc":
        a, b = a.double(), b if b.is_complex() else b.double()
    close = eq(a, b) | (isfinite(b) & le(abs(_sub(a, b)), _add(mul(abs(b), rtol), atol)))
    return close | (isnan(a) & isnan(b)) if equal_nan else close


@method(composed=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close: |input - other| <= atol + rtol * |other|."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


divide, clip = div, clamp


# ---- methods that are called otherwise, and operators ---------------------------------------------------------------


def _where_method(self: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """self where condition holds, other elsewhere."""
    try:
        return _where(condition, self, other)
    except DTypeError:
        if (out := _by_bytes(condition, self, other)) is None:
            raise
        return out


_pow_, _div_, _write_lerp = inplace_form(_pow), inplace_form(div), writes("ternary", "lerp")
_true_divide_, _clamp_min_, _clamp_max_ = inplace_form(true_divide), inplace_form(_clamp_min), inplace_form(_clamp_max)
_clamp_ = inplace_form(_clamp)


_composed_lerp_ = inplace_form(lerp)


@method
def lerp_(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """lerp() in place."""
    if isinstance(end, Handle) and end.dtype is input.dtype and input.dtype in (float32, float64):
        if type(weight) is float and lib.norch_shape(end) == lib.norch_shape(input):
            out = _write_lerp(input, end, operand(weight))
            if out is not NotImplemented:
                return out
    return _composed_lerp_(input, end, weight)


@method(aliases=("divide_",))
def div_(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """div() in place."""
    return _true_divide_(self, other) if rounding_mode is None else _div_(self, other, rounding_mode=rounding_mode)


@method
def pow_(self: Tensor, exponent: Operand) -> Tensor:
    """pow() in place."""
    if type(exponent) is bool and self.dtype.kind == "b":
        return self.logical_or_(not exponent)
    return _pow_(self, _legal_power(self, exponent))


@method(aliases=("clip_",))
def clamp_(self: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """clamp() in place."""
    if min is None and max is None:
        raise ArgumentError("clamp_: give min, max or both")
    if max is None:
        return _clamp_min_(self, min)
    return _clamp_max_(self, max) if min is None else _clamp_(self, min, max)


@method
def clamp_min_(self: Tensor, min: Operand) -> Tensor:
    """clamp_min() in place."""
    return _clamp_min_(self, min)


@method
def clamp_max_(self: Tensor, max: Operand) -> Tensor:
    """clamp_max() in place."""
    return _clamp_max_(self, max)


def _power_operator(self: Tensor, other: Operand) -> Tensor:
    return pow(self, other) if operand(other, "pow") is not NotImplemented else NotImplemented


def _power_into(self: Tensor, other: Operand) -> Tensor:
    return pow_(self, other) if operand(other, "pow_") is not NotImplemented else NotImplemented


def _operators(**functions: Any) -> None:
    """Declares Tensor's operators: add=function gives __add__, __radd__ and __iadd__ (keywords: and_=)."""
    for key, function in functions.items():
        name = key.rstrip("_")
        METHODS[f"__{name}__"] = _operator(function)
        METHODS[f"__r{name}__"] = _reflected(function)
        METHODS[f"__i{name}__"] = inplace_form(function, is_operator=True)


def _operator(function: Any) -> Any:
    """A binary row as an operator, which returns NotImplemented for other operands than tensors, numbers and arrays."""
    _, row, node_class = function.row
    as_operator = binary(row, node_class, is_operator=True)
    as_operator.__annotations__["return"] = "Tensor"
    return named_function(as_operator, function.__name__, function.__doc__ or "")


def _reflected(function: Any) -> Any:
    def swapped(self: Tensor, other: Any) -> Tensor:
        other = operand(other, function.__name__)
        return NotImplemented if other is NotImplemented else function(other, self)

    return swapped


_operators(add=_add, sub=_sub, mul=mul, truediv=true_divide, floordiv=floor_divide, mod=remainder, pow=_pow)
_operators(and_=bitwise_and, or_=bitwise_or, xor=bitwise_xor, lshift=bitwise_left_shift, rshift=bitwise_right_shift)
_quotient = METHODS["__rtruediv__"]


@policy("- float32")
def _reflected_quotient(self: Tensor, other: Operand) -> Tensor:
    if mode.casting and (out := in_autocast(_reflected_quotient, self, other)) is not None:
        return out
    out = _quotient(self, other)
    return out if out is NotImplemented else outlive_writes(out, self)  # PyTorch saves 1 / self


METHODS.update({f"__{compare.__name__}__": _operator(compare) for compare in (eq, ne, lt, le, gt, ge)})
METHODS.update(__neg__=neg, __pos__=positive, __abs__=abs, __invert__=bitwise_not)
METHODS.update(__pow__=_power_operator, __ipow__=_power_into, where=_where_method, __rtruediv__=_reflected_quotient)


# norch/__init__.py exports all of them
__all__ = [name for name in public(globals(), "flat", "refused") if not name.endswith("_backward")]
