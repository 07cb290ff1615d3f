"""Elementwise operations.

``a + b`` comes here, is one call into C (csrc/ops/pointwise.c), and, when a gradient is wanted, one node of
autograd/derivatives.py. All of a form share one function body: _forms.py.
"""

from __future__ import annotations

from typing import Any

from .._handle import Handle
from ..autograd import derivatives as d
from ._forms import binary, binary_, operator, reflected, ternary, unary, unary_
from ._operand import must, operand

neg = unary("neg", d.Neg, "-x. Not for bool.")
abs = unary("abs", d.Abs, "|x|.")  # noqa: A001
sign = unary("sign", d.Sign, "-1, 0 or 1; NaN stays.")
square = unary("square", d.Square, "x * x.")
reciprocal = unary("reciprocal", d.Reciprocal, "1 / x. Integers become floats.")
sqrt = unary("sqrt", d.Sqrt, "Square root; NaN below 0. Integers become floats.")
rsqrt = unary("rsqrt", d.Rsqrt, "1 / sqrt(x). Integers become floats.")
exp = unary("exp", d.Exp, "e**x. Integers become floats.")
exp2 = unary("exp2", d.Exp2, "2**x. Integers become floats.")
expm1 = unary("expm1", d.Expm1, "e**x - 1, exact near 0. Integers become floats.")
log = unary("log", d.Log, "Natural logarithm; -inf at 0, NaN below. Integers become floats.")
log2 = unary("log2", d.Log2, "Logarithm to base 2. Integers become floats.")
log10 = unary("log10", d.Log10, "Logarithm to base 10. Integers become floats.")
log1p = unary("log1p", d.Log1p, "log(1 + x), exact near 0. Integers become floats.")
sin = unary("sin", d.Sin, "Sine of x radians. Integers become floats.")
cos = unary("cos", d.Cos, "Cosine of x radians. Integers become floats.")
tan = unary("tan", d.Tan, "Tangent of x radians. Integers become floats.")
asin = unary("asin", d.Asin, "Arc sine in radians; NaN outside [-1, 1].")
acos = unary("acos", d.Acos, "Arc cosine in radians; NaN outside [-1, 1].")
atan = unary("atan", d.Atan, "Arc tangent in radians.")
sinh = unary("sinh", d.Sinh, "Hyperbolic sine.")
cosh = unary("cosh", d.Cosh, "Hyperbolic cosine.")
tanh = unary("tanh", d.Tanh, "Hyperbolic tangent.")
asinh = unary("asinh", d.Asinh, "Inverse hyperbolic sine.")
acosh = unary("acosh", d.Acosh, "Inverse hyperbolic cosine; NaN below 1.")
atanh = unary("atanh", d.Atanh, "Inverse hyperbolic tangent; NaN outside [-1, 1].")
erf = unary("erf", d.Erf, "Error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.")
erfc = unary("erfc", d.Erfc, "1 - erf(x).")
sigmoid = unary("sigmoid", d.Sigmoid, "1 / (1 + e**-x). Integers become floats.")
silu = unary("silu", d.Silu, "x * sigmoid(x) (Elfwing et al. 2017). Floats only.")
gelu = unary(
    "gelu", d.Gelu, "x times the normal distribution at x (Hendrycks and Gimpel 2016), exact form. Floats only."
)
relu = unary("relu", d.Relu, "The larger of x and 0; NaN stays.")
floor = unary("floor", d.Floor, "The largest integer not above x.")
ceil = unary("ceil", d.Ceil, "The smallest integer not below x.")
round = unary("round", d.Round, "The nearest integer, halves to the even one.")  # noqa: A001
trunc = unary("trunc", d.Trunc, "x without its fraction.")
isnan = unary("isnan", None, "Where x is NaN.")
isinf = unary("isinf", None, "Where x is infinite.")
isfinite = unary("isfinite", None, "Where x is neither infinite nor NaN.")
logical_not = unary("logical_not", None, "Where x is 0 or False.")
bitwise_not = unary("bitwise_not", None, "Each bit inverted; for bool, logical not.")

_add = binary("add", d.Add)
_sub = binary("sub", d.Sub)
mul = binary("mul", d.Mul, "a * b.")
true_divide = binary("div", d.Div, "a / b as floats.")
floor_divide = binary("floor_divide", None, "a / b rounded down. Integer division by 0 raises ZeroDivisionError.")
remainder = binary("remainder", d.Remainder, "a - b * floor(a / b): the sign of b. An integer divisor 0 raises.")
_pow = binary("pow", d.Pow)
atan2 = binary("atan2", d.Atan2, "The angle of the point (b, a) in radians, in (-pi, pi].")
maximum = binary("maximum", d.Maximum, "The larger of a and b; NaN wins. Equal ones share the gradient.")
minimum = binary("minimum", d.Minimum, "The smaller of a and b; NaN wins. Equal ones share the gradient.")
_clamp_min = binary("clamp_min", d.ClampMin)
_clamp_max = binary("clamp_max", d.ClampMax)
eq = binary("eq", None, "Where a == b.")
ne = binary("ne", None, "Where a != b.")
lt = binary("lt", None, "Where a < b.")
le = binary("le", None, "Where a <= b.")
gt = binary("gt", None, "Where a > b.")
ge = binary("ge", None, "Where a >= b.")
logical_and = binary("logical_and", None, "Where both are non-zero.")
logical_or = binary("logical_or", None, "Where one is non-zero.")
logical_xor = binary("logical_xor", None, "Where exactly one is non-zero.")
bitwise_and = binary("bitwise_and", None, "a & b, for integers and bool.")
bitwise_or = binary("bitwise_or", None, "a | b, for integers and bool.")
bitwise_xor = binary("bitwise_xor", None, "a ^ b, for integers and bool.")
_where = ternary("where", d.Where)
_clamp = ternary("clamp", d.Clamp)


def add(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """a + alpha * b.

    >>> norch.add(norch.ones(2), 1)
    tensor([2., 2.])
    """
    return _add(a, b if alpha == 1 else mul(b, alpha))


def sub(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """a - alpha * b."""
    return _sub(a, b if alpha == 1 else mul(b, alpha))


def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """a / b as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
    if rounding_mode is None:
        return true_divide(a, b)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if rounding_mode == "trunc":
        a, b = must(a, "div"), must(b, "div")
        if a.dtype.is_floating_point or b.dtype.is_floating_point:
            return true_divide(a, b).trunc()
        inexact = logical_and(ne(remainder(a, b), 0), ne(lt(a, 0), lt(b, 0)))
        return add(floor_divide(a, b), inexact)  # one up where rounding down went away from 0
    raise ValueError(f"div: rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")


def pow(a: Any, b: Any) -> Any:  # noqa: A001
    """a ** b. Integers to a negative power raise ValueError."""
    if type(b) is int or type(b) is float:
        if b == 2 or b == 0.5:
            a = must(a, "pow")
            if a.dtype.is_floating_point:
                return square(a) if b == 2 else sqrt(a)
        if type(b) is int and b < 0 and not must(a, "pow").dtype.is_floating_point:
            raise ValueError(f"pow: integers to the negative power {b} are not integers; convert to floats first")
    return _pow(a, b)


def clamp(x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """x held between min and max (numbers or tensors); NaN stays. With min above max, max."""
    if min is None and max is None:
        raise ValueError("clamp: give min, max or both")
    if max is None:
        return _clamp_min(x, min)
    return _clamp_max(x, max) if min is None else _clamp(x, min, max)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:  # noqa: A002
    """input where condition (bool) holds, other elsewhere; all broadcast. Of condition alone: nonzero(as_tuple=True).

    >>> norch.where(norch.tensor([True, False]), 1.0, norch.zeros(2))
    tensor([1., 0.])
    """
    if input is None and other is None:
        return must(condition, "where").nonzero(as_tuple=True)
    return _where(condition, input, other)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Where |a - b| <= atol + rtol * |b|."""
    a, b = must(a, "isclose"), must(b, "isclose")
    if not a.dtype.is_floating_point:
        a, b = a.double(), b.double()
    close = eq(a, b) | (isfinite(b) & le(abs(_sub(a, b)), add(mul(abs(b), rtol), atol)))
    return close | (isnan(a) & isnan(b)) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all of isclose."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def _power_operator(self: Any, other: Any) -> Any:
    return pow(self, other) if operand(other) is not NotImplemented else NotImplemented


class PointwiseMethods(Handle):
    """The elementwise methods and operators of Tensor."""

    __slots__ = ()

    neg = negative = __neg__ = neg
    abs = absolute = __abs__ = abs
    sign, square, reciprocal, sqrt, rsqrt = sign, square, reciprocal, sqrt, rsqrt
    exp, exp2, expm1, log, log2, log10, log1p = exp, exp2, expm1, log, log2, log10, log1p
    sin, cos, tan, asin, acos, atan = sin, cos, tan, asin, acos, atan
    sinh, cosh, tanh, asinh, acosh, atanh = sinh, cosh, tanh, asinh, acosh, atanh
    erf, erfc, sigmoid, relu, floor, ceil, round, trunc = erf, erfc, sigmoid, relu, floor, ceil, round, trunc
    isnan, isinf, isfinite, logical_not, bitwise_not = isnan, isinf, isfinite, logical_not, bitwise_not
    __invert__ = bitwise_not

    add, sub, mul, div, true_divide, floor_divide = add, sub, mul, div, true_divide, floor_divide
    subtract, multiply, divide = sub, mul, div
    remainder, pow, atan2, maximum, minimum, clamp = remainder, pow, atan2, maximum, minimum, clamp
    clip = clamp
    eq, ne, lt, le, gt, ge = eq, ne, lt, le, gt, ge
    logical_and, logical_or, logical_xor = logical_and, logical_or, logical_xor
    bitwise_and, bitwise_or, bitwise_xor = bitwise_and, bitwise_or, bitwise_xor
    isclose, allclose = isclose, allclose

    __add__, __mul__ = operator("add", d.Add), operator("mul", d.Mul)
    __sub__, __truediv__ = operator("sub", d.Sub), operator("div", d.Div)
    __floordiv__, __mod__, __pow__ = operator("floor_divide"), operator("remainder", d.Remainder), _power_operator
    __and__, __or__, __xor__ = operator("bitwise_and"), operator("bitwise_or"), operator("bitwise_xor")
    __radd__, __rmul__ = reflected(_add), reflected(mul)
    __rsub__, __rtruediv__ = reflected(_sub), reflected(true_divide)
    __rfloordiv__, __rmod__, __rpow__ = reflected(floor_divide), reflected(remainder), reflected(_pow)
    __rand__, __ror__, __rxor__ = reflected(bitwise_and), reflected(bitwise_or), reflected(bitwise_xor)
    __lt__, __le__, __gt__, __ge__ = operator("lt"), operator("le"), operator("gt"), operator("ge")
    __eq__, __ne__ = operator("eq"), operator("ne")
    __hash__ = object.__hash__

    __iadd__, __isub__ = binary_("add", d.Add), binary_("sub", d.Sub)
    mul_ = __imul__ = binary_("mul", d.Mul)
    div_ = __itruediv__ = binary_("div", d.Div)
    floor_divide_ = __ifloordiv__ = binary_("floor_divide", None)
    remainder_ = __imod__ = binary_("remainder", d.Remainder)
    pow_ = __ipow__ = binary_("pow", d.Pow)
    __iand__, __ior__, __ixor__ = (
        binary_("bitwise_and", None),
        binary_("bitwise_or", None),
        binary_("bitwise_xor", None),
    )
    neg_, abs_, sqrt_, exp_ = unary_("neg", d.Neg), unary_("abs", d.Abs), unary_("sqrt", d.Sqrt), unary_("exp", d.Exp)
    sigmoid_, tanh_, relu_ = unary_("sigmoid", d.Sigmoid), unary_("tanh", d.Tanh), unary_("relu", d.Relu)
    floor_, ceil_, round_, trunc_ = (
        unary_("floor", d.Floor),
        unary_("ceil", d.Ceil),
        unary_("round", d.Round),
        unary_("trunc", d.Trunc),
    )
    log_, sin_, cos_, square_ = (
        unary_("log", d.Log),
        unary_("sin", d.Sin),
        unary_("cos", d.Cos),
        unary_("square", d.Square),
    )
    reciprocal_, rsqrt_ = unary_("reciprocal", d.Reciprocal), unary_("rsqrt", d.Rsqrt)
    clamp_min_, clamp_max_ = binary_("clamp_min", d.ClampMin), binary_("clamp_max", d.ClampMax)

    # Fused derivatives: self is the gradient.
    _relu_backward = binary("relu_backward", d.ReluBackward)
    _sigmoid_backward = binary("sigmoid_backward", d.SigmoidBackward)
    _tanh_backward = binary("tanh_backward", d.TanhBackward)
    _silu_backward = binary("silu_backward", d.SiluBackward)
    _gelu_backward = binary("gelu_backward", d.GeluBackward)

    def where(self, condition: Any, other: Any) -> Any:
        """self where condition holds, other elsewhere."""
        return _where(condition, self, other)

    def add_(self, other: Any, *, alpha: Any = 1) -> Any:
        """add() in place."""
        return self.__iadd__(other if alpha == 1 else mul(other, alpha))

    def sub_(self, other: Any, *, alpha: Any = 1) -> Any:
        """sub() in place."""
        return self.__isub__(other if alpha == 1 else mul(other, alpha))

    def clamp_(self, min: Any = None, max: Any = None) -> Any:  # noqa: A002
        """clamp() in place."""
        if min is None and max is None:
            raise ValueError("clamp_: give min, max or both")
        if min is not None:
            self.clamp_min_(min)
        return self if max is None else self.clamp_max_(max)

    clip_ = clamp_

    def clamp_min(self, min: Any) -> Any:  # noqa: A002
        """self, at least min."""
        return _clamp_min(self, min)

    def clamp_max(self, max: Any) -> Any:  # noqa: A002
        """self, at most max."""
        return _clamp_max(self, max)


# Functions made or defined here, less those of one underscore: norch/__init__.py hands them all on.
__all__ = [  # noqa: PLE0605
    name
    for name, thing in list(globals().items())
    if getattr(thing, "__module__", "") == __name__ and name[0] != "_" and not isinstance(thing, type)
]
