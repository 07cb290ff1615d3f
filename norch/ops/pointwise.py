"""Elementwise operations.

``a + b`` comes here, is one call into C (csrc/ops/pointwise.c), and, when a gradient is wanted, one node of
autograd/derivatives/pointwise.py. All of a form share one function body: _forms.py.
"""

from __future__ import annotations

from typing import Any

from .._handle import Handle
from ..autograd import derivatives as d
from ..errors import ArgumentError, DTypeError, Error, rename_error
from ._forms import binary, operator, reflected, ternary, unary
from ._inplace import in_place
from ._operand import as_operand, floats_of, operand, public, rename_errors
from .copy import result_type

neg = negative = unary("neg", d.Neg, "-x. Not for bool.")
abs = absolute = unary("abs", d.Abs, "|x|.")  # noqa: A001
sign = sgn = unary("sign", d.Sign, "-1, 0 or 1; 0 for NaN.")
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
asin = arcsin = unary("asin", d.Asin, "Arc sine in radians; NaN outside [-1, 1].")
acos = arccos = unary("acos", d.Acos, "Arc cosine in radians; NaN outside [-1, 1].")
atan = arctan = unary("atan", d.Atan, "Arc tangent in radians.")
sinh = unary("sinh", d.Sinh, "Hyperbolic sine.")
cosh = unary("cosh", d.Cosh, "Hyperbolic cosine.")
tanh = unary("tanh", d.Tanh, "Hyperbolic tangent.")
asinh = arcsinh = unary("asinh", d.Asinh, "Inverse hyperbolic sine.")
acosh = arccosh = unary("acosh", d.Acosh, "Inverse hyperbolic cosine; NaN below 1.")
atanh = arctanh = unary("atanh", d.Atanh, "Inverse hyperbolic tangent; NaN outside [-1, 1].")
erf = unary("erf", d.Erf, "Error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.")
erfc = unary("erfc", d.Erfc, "1 - erf(x).")
erfinv = unary("erfinv", d.Erfinv, "The number whose erf is x; infinite at -1 and 1, NaN beyond.")
lgamma = unary("lgamma", d.Lgamma, "Logarithm of the absolute value of the gamma function.")
digamma = unary("digamma", d.Digamma, "Derivative of lgamma; NaN at negative integers.")
sinc = unary("sinc", d.Sinc, "sin(pi x) / (pi x), 1 at 0.")
sigmoid = unary("sigmoid", d.Sigmoid, "1 / (1 + e**-x). Integers become floats.")
relu = unary("relu", d.Relu, "The larger of x and 0; NaN stays.")
floor = unary("floor", d.Floor, "The largest integer not above x.")
ceil = unary("ceil", d.Ceil, "The smallest integer not below x.")
trunc = fix = unary("trunc", d.Trunc, "x without its fraction.")
isnan = unary("isnan", None, "Where x is NaN.")
isinf = unary("isinf", None, "Where x is infinite.")
isfinite = unary("isfinite", None, "Where x is neither infinite nor NaN.")
signbit = unary("signbit", None, "Where the sign is a minus, that of -0.0 too.")
logical_not = unary("logical_not", None, "Where x is 0 or False.")
bitwise_not = unary("bitwise_not", None, "Each bit inverted; for bool, logical not.")
_cube = unary("cube", d.Cube, "")
_round, _logit = unary("round", d.Round, ""), unary("logit", d.Logit, "")

_add = binary("add", d.Add)
_sub = binary("sub", d.Sub)
mul = multiply = binary("mul", d.Mul, "a * b.")
true_divide = binary("div", d.Div, "a / b as floats.")
floor_divide = binary("floor_divide", None, "a / b rounded down. Integer division by 0 raises ZeroDivisionError.")
_floor_divide, _trunc_divide = binary("floor_divide", d.Quotient), binary("trunc_divide", d.Quotient)
remainder = binary("remainder", d.Remainder, "a - b * floor(a / b): the sign of b. An integer divisor 0 raises.")
fmod = binary("fmod", d.Fmod, "a - b * trunc(a / b): the sign of a. An integer divisor 0 raises.")
_pow = binary("pow", d.Pow)
atan2 = arctan2 = binary("atan2", d.Atan2, "The angle of the point (b, a) in radians, in (-pi, pi].")
hypot = binary("hypot", d.Hypot, "sqrt(a * a + b * b), without overflow on the way. Floats only.")
copysign = binary("copysign", d.Copysign, "|a| with the sign of b. Integers become floats.")
xlogy = binary("xlogy", d.Xlogy, "a * log(b), 0 where a is 0 and b no NaN. Integers become floats.")
logaddexp = binary("logaddexp", d.Logaddexp, "log(e**a + e**b), without overflow. Floats only.")
logaddexp2 = binary("logaddexp2", d.Logaddexp2, "log2(2**a + 2**b), without overflow. Floats only.")
maximum = binary("maximum", d.Maximum, "The larger of a and b; NaN wins. Equal ones share the gradient.")
minimum = binary("minimum", d.Minimum, "The smaller of a and b; NaN wins. Equal ones share the gradient.")
fmax = binary("fmax", d.Fmax, "The larger of a and b; NaN loses. Of equal ones a has the gradient.")
fmin = binary("fmin", d.Fmin, "The smaller of a and b; NaN loses. Of equal ones a has the gradient.")
_clamp_min, _clamp_max = binary("clamp_min", d.ClampMin), binary("clamp_max", d.ClampMax)
eq = binary("eq", None, "Where a == b.")
ne = not_equal = binary("ne", None, "Where a != b.")
lt = less = binary("lt", None, "Where a < b.")
le = less_equal = binary("le", None, "Where a <= b.")
gt = greater = binary("gt", None, "Where a > b.")
ge = greater_equal = binary("ge", None, "Where a >= b.")
logical_and = binary("logical_and", None, "Where both are non-zero.")
logical_or = binary("logical_or", None, "Where one is non-zero.")
logical_xor = binary("logical_xor", None, "Where exactly one is non-zero.")
bitwise_and = binary("bitwise_and", None, "a & b, for integers and bool.")
bitwise_or = binary("bitwise_or", None, "a | b, for integers and bool.")
bitwise_xor = binary("bitwise_xor", None, "a ^ b, for integers and bool.")
bitwise_left_shift = binary("bitwise_left_shift", None, "a * 2**b modulo the size of the integer; 0 where b < 0.")
bitwise_right_shift = binary("bitwise_right_shift", None, "a / 2**b rounded down; for b < 0 its sign: 0 or -1.")
_where = ternary("where", d.Where)
_clamp = ternary("clamp", d.Clamp)
_lerp, _addcmul, _addcdiv = ternary("lerp", d.Lerp), ternary("addcmul", d.Addcmul), ternary("addcdiv", d.Addcdiv)


def add(input: Any, other: Any, second: Any = None, *, alpha: Any = 1) -> Any:  # noqa: A002
    """input + alpha * other; add(input, alpha, other) is the older way to say it.

    >>> norch.add(norch.ones(2), 1)
    tensor([2., 2.])
    """
    if second is not None:
        other, alpha = second, other
    return _add(input, other if alpha == 1 else _times(input, other, alpha, "add"))


def sub(input: Any, other: Any, second: Any = None, *, alpha: Any = 1) -> Any:  # noqa: A002
    """input - alpha * other; sub(input, alpha, other) is the older way to say it."""
    if second is not None:
        other, alpha = second, other
    return _sub(input, other if alpha == 1 else _times(input, other, alpha, "sub"))


def _times(input: Any, other: Any, factor: Any, name: str) -> Any:  # noqa: A002
    """other * factor, on its way to be added to input: among integers the factor is one, too."""
    input, other = as_operand(input, name), as_operand(other, name)  # noqa: A001
    if other.dtype.kind == "b":  # the factor is of the dtype of the sum
        other = other.to(result_type(input, other))
        factor = bool(factor) if other.dtype.kind == "b" and not isinstance(factor, float) else factor
    if isinstance(factor, float) and not other.dtype.is_floating_point:
        if not input.dtype.is_floating_point:
            raise DTypeError(f"{name}: a factor of integers is an integer, not {factor}")
        other = other.to(input.dtype)
    return mul(other, as_operand(factor, name))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:  # noqa: A002
    """input / other as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return _floor_divide(input, other)
    if rounding_mode == "trunc":
        return _trunc_divide(input, other)
    raise ArgumentError(f"div: rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")


def pow(input: Any, exponent: Any) -> Any:  # noqa: A001, A002
    """input ** exponent. Integers to a negative power raise ValueError; of bools True and False are the only powers."""
    if (type(exponent) is int or type(exponent) is float) and exponent in _POWERS:
        input = as_operand(input, "pow")  # noqa: A001
        if input.dtype.is_floating_point:
            return _POWERS[exponent](input)
    if type(exponent) is bool and as_operand(input, "pow").dtype.kind == "b":
        return logical_or(input, not exponent)
    return _pow(input, _legal_power(input, exponent))


_POWERS: dict[float, Any] = {2: square, 3: _cube, 0.5: sqrt, -1: reciprocal}


def _legal_power(a: Any, b: Any) -> Any:
    if type(b) is int and b < 0 and not as_operand(a, "pow").dtype.is_floating_point:
        raise ArgumentError(f"pow: integers to the negative power {b} are not integers; convert to floats first")
    return b


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """input held between min and max (numbers or tensors); NaN stays. With min above max, max."""
    if min is None and max is None:
        raise ArgumentError("clamp: give min, max or both")
    try:
        if max is None:
            return _clamp_min(input, min)
        return _clamp_max(input, max) if min is None else _clamp(input, min, max)
    except (Error, TypeError) as error:
        rename_error(error, "clamp")
        raise


def clamp_min(input: Any, min: Any) -> Any:  # noqa: A002
    """input, at least min (a number or a tensor); NaN stays."""
    return _clamp_min(input, min)


def clamp_max(input: Any, max: Any) -> Any:  # noqa: A002
    """input, at most max (a number or a tensor); NaN stays."""
    return _clamp_max(input, max)


def lerp(input: Any, end: Any, weight: Any) -> Any:  # noqa: A002
    """input + weight * (end - input): from input, at weight 0, to end, at weight 1. Floats only."""
    return _lerp(floats_of(input, "lerp"), end, weight)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:  # noqa: A002
    """input where condition (bool) holds, other elsewhere; all broadcast. Of condition alone: nonzero(as_tuple=True).

    >>> norch.where(norch.tensor([True, False]), 1.0, norch.zeros(2))
    tensor([1., 0.])
    """
    if input is None and other is None:
        return as_operand(condition, "where").nonzero(as_tuple=True)
    return _where(condition, input, other)


@rename_errors
def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:  # noqa: A002
    """Where |input - other| <= atol + rtol * |other|."""
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: rtol and atol must not be negative, got {rtol} and {atol}")
    a, b = as_operand(input, "isclose"), as_operand(other, "isclose")
    if not a.dtype.is_floating_point:
        a, b = a.double(), b.double()
    close = eq(a, b) | (isfinite(b) & le(abs(_sub(a, b)), add(mul(abs(b), rtol), atol)))
    return close | (isnan(a) & isnan(b)) if equal_nan else close


@rename_errors
def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:  # noqa: A002
    """Whether all of isclose."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


subtract, divide, clip = sub, div, clamp


def _power_operator(self: Any, other: Any) -> Any:
    return pow(self, other) if operand(other, "pow") is not NotImplemented else NotImplemented


def _power_into(self: Any, other: Any) -> Any:
    return self.pow_(other) if operand(other, "pow_") is not NotImplemented else NotImplemented


class PointwiseMethods(Handle):
    """The elementwise methods and operators of Tensor."""

    __slots__ = ()

    neg, negative, abs, absolute, sign, sgn = neg, negative, abs, absolute, sign, sgn
    square, reciprocal, sqrt, rsqrt = square, reciprocal, sqrt, rsqrt
    exp, exp2, expm1, log, log2, log10, log1p = exp, exp2, expm1, log, log2, log10, log1p
    sin, cos, tan, asin, acos, atan = sin, cos, tan, asin, acos, atan
    sinh, cosh, tanh, asinh, acosh, atanh = sinh, cosh, tanh, asinh, acosh, atanh
    arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh
    erf, erfc, erfinv, lgamma, digamma, sinc = erf, erfc, erfinv, lgamma, digamma, sinc
    sigmoid, relu, floor, ceil, trunc, fix = sigmoid, relu, floor, ceil, trunc, fix
    isnan, isinf, isfinite, signbit = isnan, isinf, isfinite, signbit
    logical_not, bitwise_not = logical_not, bitwise_not
    __neg__, __abs__, __invert__ = neg, abs, bitwise_not

    add, sub, mul, div, true_divide, floor_divide = add, sub, mul, div, true_divide, floor_divide
    subtract, multiply, divide = sub, mul, div
    remainder, fmod, pow, atan2, arctan2, hypot = remainder, fmod, pow, atan2, atan2, hypot
    copysign, xlogy, logaddexp, logaddexp2 = copysign, xlogy, logaddexp, logaddexp2
    maximum, minimum, fmax, fmin = maximum, minimum, fmax, fmin
    clamp, clip, clamp_min, clamp_max, lerp = clamp, clip, clamp_min, clamp_max, lerp
    eq, ne, lt, le, gt, ge = eq, ne, lt, le, gt, ge
    not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
    logical_and, logical_or, logical_xor = logical_and, logical_or, logical_xor
    bitwise_and, bitwise_or, bitwise_xor = bitwise_and, bitwise_or, bitwise_xor
    bitwise_left_shift, bitwise_right_shift = bitwise_left_shift, bitwise_right_shift
    isclose, allclose = isclose, allclose

    __add__, __mul__ = operator("add", d.Add), operator("mul", d.Mul)
    __sub__, __truediv__ = operator("sub", d.Sub), operator("div", d.Div)
    __floordiv__, __mod__, __pow__ = operator("floor_divide"), operator("remainder", d.Remainder), _power_operator
    __and__, __or__, __xor__ = operator("bitwise_and"), operator("bitwise_or"), operator("bitwise_xor")
    __lshift__, __rshift__ = operator("bitwise_left_shift"), operator("bitwise_right_shift")
    __radd__, __rmul__ = reflected(_add), reflected(mul)
    __rsub__, __rtruediv__ = reflected(_sub), reflected(true_divide)
    __rfloordiv__, __rmod__, __rpow__ = reflected(floor_divide), reflected(remainder), reflected(_pow)
    __rand__, __ror__, __rxor__ = reflected(bitwise_and), reflected(bitwise_or), reflected(bitwise_xor)
    __rlshift__, __rrshift__ = reflected(bitwise_left_shift), reflected(bitwise_right_shift)
    __lt__, __le__, __gt__, __ge__ = operator("lt"), operator("le"), operator("gt"), operator("ge")
    __eq__, __ne__ = operator("eq"), operator("ne")
    __hash__ = object.__hash__

    neg_, abs_, sign_, square_, reciprocal_, sqrt_, rsqrt_ = in_place(neg, abs, sign, square, reciprocal, sqrt, rsqrt)
    exp_, exp2_, expm1_, log_, log2_, log10_, log1p_ = in_place(exp, exp2, expm1, log, log2, log10, log1p)
    sin_, cos_, tan_, asin_, acos_, atan_ = in_place(sin, cos, tan, asin, acos, atan)
    sinh_, cosh_, tanh_, asinh_, acosh_, atanh_ = in_place(sinh, cosh, tanh, asinh, acosh, atanh)
    erf_, erfc_, erfinv_, lgamma_, digamma_, sinc_ = in_place(erf, erfc, erfinv, lgamma, digamma, sinc)
    sigmoid_, relu_, floor_, ceil_, trunc_ = in_place(sigmoid, relu, floor, ceil, trunc)
    logical_not_, bitwise_not_ = in_place(logical_not, bitwise_not)
    negative_, absolute_, sgn_, fix_, arcsin_, arccos_, arctan_ = neg_, abs_, sign_, trunc_, asin_, acos_, atan_
    arcsinh_, arccosh_, arctanh_ = asinh_, acosh_, atanh_

    _add_, _sub_, mul_, true_divide_, floor_divide_ = in_place(_add, _sub, mul, true_divide, floor_divide)
    remainder_, fmod_, atan2_, hypot_ = in_place(remainder, fmod, atan2, hypot)
    copysign_, xlogy_, lerp_, _clamp_min_, _clamp_max_ = in_place(copysign, xlogy, lerp, _clamp_min, _clamp_max)
    eq_, ne_, lt_, le_, gt_, ge_ = in_place(eq, ne, lt, le, gt, ge)
    logical_and_, logical_or_, logical_xor_ = in_place(logical_and, logical_or, logical_xor)
    bitwise_and_, bitwise_or_, bitwise_xor_ = in_place(bitwise_and, bitwise_or, bitwise_xor)
    bitwise_left_shift_, bitwise_right_shift_ = in_place(bitwise_left_shift, bitwise_right_shift)
    multiply_, arctan2_, not_equal_ = mul_, atan2_, ne_
    less_, less_equal_, greater_, greater_equal_ = lt_, le_, gt_, ge_
    __iadd__, __isub__, __imul__, __itruediv__, __ifloordiv__, __imod__, __iand__, __ior__, __ixor__ = in_place(
        _add, _sub, mul, true_divide, floor_divide, remainder, bitwise_and, bitwise_or, bitwise_xor, accept=operand
    )
    __ilshift__, __irshift__ = in_place(bitwise_left_shift, bitwise_right_shift, accept=operand)
    _pow_, _div_, _clamp_ = in_place(_pow, div, _clamp)

    # Fused derivatives: self is the gradient.
    _relu_backward = binary("relu_backward", d.ReluBackward)
    _between = ternary("clamp", d.Hardtanh, "x between b and c; a value at a bound has no gradient.")
    _sigmoid_backward = binary("sigmoid_backward", d.SigmoidBackward)
    _tanh_backward = binary("tanh_backward", d.TanhBackward)
    _silu_backward = binary("silu_backward", d.SiluBackward)
    _gelu_backward = binary("gelu_backward", d.GeluBackward)
    _gelu_tanh_backward = binary("gelu_tanh_backward", d.GeluTanhBackward)
    _mish_backward = binary("mish_backward", d.MishBackward)
    _zeta = binary("zeta", d.Zeta)
    _logsigmoid = unary("logsigmoid", d.Logsigmoid, "")

    def where(self, condition: Any, other: Any) -> Any:
        """self where condition holds, other elsewhere."""
        return _where(condition, self, other)

    def add_(self, other: Any, second: Any = None, *, alpha: Any = 1) -> Any:
        """add() in place."""
        if second is not None:
            other, alpha = second, other
        return self._add_(other if alpha == 1 else _times(self, other, alpha, "add_"))

    def sub_(self, other: Any, second: Any = None, *, alpha: Any = 1) -> Any:
        """sub() in place."""
        if second is not None:
            other, alpha = second, other
        return self._sub_(other if alpha == 1 else _times(self, other, alpha, "sub_"))

    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Any:
        """div() in place."""
        return self.true_divide_(other) if rounding_mode is None else self._div_(other, rounding_mode=rounding_mode)

    def pow_(self, exponent: Any) -> Any:
        """pow() in place."""
        if type(exponent) is bool and self.dtype.kind == "b":
            return self.logical_or_(not exponent)
        return self._pow_(_legal_power(self, exponent))

    __ipow__ = _power_into

    def clamp_(self, min: Any = None, max: Any = None) -> Any:  # noqa: A002
        """clamp() in place."""
        if min is None and max is None:
            raise ArgumentError("clamp_: give min, max or both")
        if max is None:
            return self._clamp_min_(min)
        return self._clamp_max_(max) if min is None else self._clamp_(min, max)

    def clamp_min_(self, min: Any) -> Any:  # noqa: A002
        """clamp_min() in place."""
        return self._clamp_min_(min)

    def clamp_max_(self, max: Any) -> Any:  # noqa: A002
        """clamp_max() in place."""
        return self._clamp_max_(max)

    subtract_, divide_, clip_ = sub_, div_, clamp_


# norch/__init__.py hands them all on
__all__ = public(globals())
