"""The cases of elementwise operations; the activations are in cases_activation.py. See case.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from case import FLOAT_NAMES, INTEGER_NAMES, NUMBER_NAMES, PAIR, SPREAD_OUT, WHOLE_NAMES, Array, Shape, add, wide

import norch
from norch.ops import activation, pointwise
from norch.ops.composed import pointwise as composed
from norch.ops.dropout import masked_scale
from norch.ops.pointwise import _cube

# ---- pointwise, one input -------------------------------------------------------------------------------------------

UNARY_SHAPES = tuple((shape,) for shape in ((4, 37), (3, 1, 5), (2, 0, 3), (), (1,), (1037,)))
erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _of_numbers(function: Callable[..., float]) -> Callable[..., Array]:
    return np.vectorize(function, otypes=[np.float64])


@_of_numbers
def _erfinv(x: float) -> float:
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    y = math.copysign(math.sqrt(-math.log(1 - x * x)), x) if x else x
    for _ in range(60):  # Newton's method
        miss = math.erf(y) - x if abs(x) < 0.5 else (1 - abs(x) - math.erfc(abs(y))) * math.copysign(1, x)
        y -= miss * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return y


@_of_numbers
def lgamma(x: float) -> float:
    return math.inf if abs(x) > 1e300 or (x <= 0 and x == math.floor(x)) else math.lgamma(x)


@_of_numbers
def polygamma(n: int, x: float) -> float:
    """By recurrence to 40 and the asymptotic series; left of 0 for n <= 1 by reflection."""
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x <= 0 and x == math.floor(x):
        return math.inf if n else -math.copysign(math.inf, x) if x == 0 else math.nan
    if x < 0:
        part = math.pi * (x - round(x))
        slope = math.pi / math.tan(part) if n == 0 else (math.pi / math.sin(part)) ** 2
        return float(polygamma(n, 1 - x)) - slope if n == 0 else slope - float(polygamma(n, 1 - x))
    total, sign, factor = 0.0, -1 if n % 2 == 0 else 1, math.factorial(n)
    while x < 40:
        total += sign * factor / x ** (n + 1)
        x += 1
    if math.isinf(x):
        return math.inf if n == 0 else 0.0
    if n == 0:
        return total + math.log(x) - 0.5 / x - x**-2 / 12 + x**-4 / 120 - x**-6 / 252
    tail = factor / n * x**-n + factor / 2 * x ** -(n + 1)
    for k, b in ((2, 1 / 6), (4, -1 / 30), (6, 1 / 42), (8, -1 / 30)):
        tail += b * math.factorial(n + k - 1) / math.factorial(k) * x ** -(n + k)
    return total + sign * tail


def _sinc(x: Array) -> Array:
    return np.where((np.abs(x) >= 2.0**53) & np.isfinite(x), 0, np.sinc(x))


def _bessel(x: Array, order: int) -> Array:
    """I_order(x), for 0 and 1: the mean of e^(x cos t) cos(order t) over a period, by the trapezoidal rule."""
    cosine = np.cos(np.linspace(0, 2 * math.pi, 64, endpoint=False))
    along = x[..., None] * cosine
    return (np.sinh(along) * cosine if order else np.cosh(along)).mean(-1)


def _of_floats(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """For what leaves integers as they are."""
    return lambda x: function(x) if x.dtype.kind == "f" else x


def unary(name: str, reference: Any, domain: tuple[float, float] = (-3.0, 3.0), **more: Any) -> None:
    """A UNARY row."""
    call = more.pop("call", lambda m, x: getattr(m, name)(x))
    method = name + "_"
    more.setdefault("in_place", method if hasattr(norch.Tensor, method) else None)
    add(name, name, call, reference, domains=(domain,), shapes=UNARY_SHAPES, **more)


FLOAT: dict[str, Any] = {"result": "float", "grad": 2}

unary("neg", lambda x: -x, dtypes=NUMBER_NAMES, grad=2)
unary("abs", np.abs, dtypes=NUMBER_NAMES, grad=2)
unary("sign", lambda x: x if x.dtype == bool else np.nan_to_num(np.sign(x)), grad=1)
unary("square", lambda x: x * x, dtypes=NUMBER_NAMES, grad=2)
unary("cube", lambda x: x**3, call=lambda m, x: _cube(x), torch=lambda m, x: x**3, dtypes=FLOAT_NAMES, grad=2)
unary("reciprocal", lambda x: 1 / x, (0.3, 3.0), **FLOAT)
unary("sqrt", np.sqrt, (0.2, 9.0), **FLOAT)
unary("rsqrt", lambda x: 1 / np.sqrt(x), (0.2, 9.0), **FLOAT)
unary("exp", np.exp, **FLOAT)
unary("exp2", np.exp2, **FLOAT)
unary("expm1", np.expm1, **FLOAT)
unary("log", np.log, (0.1, 9.0), **FLOAT)
unary("log2", np.log2, (0.1, 9.0), **FLOAT)
unary("log10", np.log10, (0.1, 9.0), **FLOAT)
unary("log1p", np.log1p, (-0.9, 9.0), **FLOAT)
unary("sin", np.sin, (-9.0, 9.0), **FLOAT)
unary("cos", np.cos, (-9.0, 9.0), **FLOAT)
unary("tan", np.tan, (-1.4, 1.4), slack=4, **FLOAT)
unary("asin", np.arcsin, (-0.95, 0.95), **FLOAT)
unary("acos", np.arccos, (-0.95, 0.95), **FLOAT)
unary("atan", np.arctan, (-9.0, 9.0), **FLOAT)
unary("sinh", np.sinh, **FLOAT)
unary("cosh", np.cosh, **FLOAT)
unary("tanh", np.tanh, **FLOAT)
unary("asinh", np.arcsinh, (-9.0, 9.0), **FLOAT)
unary("acosh", np.arccosh, (1.1, 9.0), **FLOAT)
unary("atanh", np.arctanh, (-0.95, 0.95), **FLOAT)
unary("erf", erf, **FLOAT)
unary("erfc", _erfc, slack=4, **FLOAT)
unary("erfinv", _erfinv, (-0.95, 0.95), **FLOAT)
unary("lgamma", lgamma, (0.2, 9.0), scaled=True, **FLOAT)
unary(
    "digamma",
    lambda x: polygamma(0, x),
    (0.2, 9.0),
    scaled=True,
    torch_grad="of half our precision",
    **FLOAT,
)
for name, order, scaled in (("i0", 0, False), ("i0e", 0, True), ("i1", 1, False), ("i1e", 1, True)):
    unary(
        name,
        lambda x, order=order, scaled=scaled: _bessel(x, order) * np.exp(-np.abs(x) if scaled else 0),
        call=lambda m, x, name=name: getattr(m.special, name)(x),
        in_place="i0_" if name == "i0" else None,
        slack=4,
        scaled=True,
        edges=False,  # test_special.py
        **FLOAT,
    )
unary("sinc", _sinc, (0.2, 3.0), scaled=True, torch_edges="it rounds pi x before it takes the sine", **FLOAT)
unary("logit", lambda x: np.log(x / (1 - x)), (0.1, 0.9), scaled=True, **FLOAT)
unary("sigmoid", sigmoid, (-9.0, 9.0), **FLOAT)
unary("relu", lambda x: np.where(x < 0, 0, x), dtypes=NUMBER_NAMES, grad=2)
unary("floor", _of_floats(np.floor), dtypes=NUMBER_NAMES, grad=1)
unary("ceil", _of_floats(np.ceil), dtypes=NUMBER_NAMES, grad=1)
unary("round", _of_floats(np.rint), dtypes=NUMBER_NAMES, grad=1)
unary("trunc", _of_floats(np.trunc), dtypes=NUMBER_NAMES, grad=1)
unary("isnan", np.isnan, result="bool")
unary("isinf", np.isinf, result="bool")
unary("isfinite", np.isfinite, result="bool")
unary("signbit", lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0, result="bool")
unary("logical_not", np.logical_not, result="bool")
unary("bitwise_not", lambda x: ~x, dtypes=WHOLE_NAMES)

# ---- pointwise, two inputs ------------------------------------------------------------------------------------------

BINARY_SHAPES: tuple[tuple[Shape, ...], ...] = (
    ((4, 37), (4, 37)),
    ((4, 37), (37,)),
    ((4, 1), (1, 37)),
    ((), (3, 5)),
    ((3, 5), ()),
    ((), ()),
    ((0, 3), (1, 3)),
    ((1, 1), (1,)),
    ((2, 1, 3), (4, 1)),
    ((1037,), (1037,)),
)

TERNARY_SHAPES: tuple[tuple[Shape, ...], ...] = (
    ((4, 37), (4, 37), (4, 37)),
    ((4, 1), (37,), ()),
    ((), (2, 3), (2, 1)),
    ((0, 2), (2,), (1, 2)),
    ((1037,), (1037,), (1037,)),
)


def binary(name: str, reference: Any, *domains: tuple[float, float], **more: Any) -> None:
    """A BINARY row."""
    call = more.pop("call", lambda m, a, b: getattr(m, name)(a, b))
    method = name + "_"
    more.setdefault("in_place", method if hasattr(norch.Tensor, method) else None)
    row = more.pop("row", name)
    add(name, row, call, reference, domains=domains or ((-3.0, 3.0),) * 2, shapes=BINARY_SHAPES, **more)


def _int_power(a: Array, b: Array) -> Array:
    """a ** b modulo 2**64; a negative power is 1 / a ** -b without its fraction."""
    a, b = np.broadcast_arrays(a, b)
    flat = []
    for base, exponent in zip(a.ravel().tolist(), b.ravel().tolist()):
        if exponent >= 0:
            flat.append(pow(base, exponent, 1 << 64))
        else:
            flat.append({1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0) % (1 << 64))
    return np.array(flat, np.uint64).astype(np.int64).reshape(a.shape)


def _power(a: Array, b: Array) -> Array:
    return np.power(a, b) if a.dtype.kind == "f" else _int_power(a, b)


def _truncated(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0)))


def _fmod(a: Array, b: Array) -> Array:
    return np.fmod(a, b) if a.dtype.kind == "f" else a - b * _truncated(a, b)


def _xlogy(a: Array, b: Array) -> Array:
    return np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b))


def _igamma(a: Array, x: Array) -> Array:
    """P(a, x) by its power series."""
    term = total = np.ones(np.broadcast_shapes(a.shape, x.shape))
    for n in range(1, 80):
        term = term * x / (a + n)
        total = total + term
    return total * x**a * np.exp(-x) / np.exp(lgamma(a + 1.0))


def _shifted(a: Array, b: Array, to_left: bool) -> Array:
    """In int64, whose low bits are those of the narrower ones."""
    inside = (b >= 0) & (b < 64)
    count = np.where(inside, b, 0)
    return np.where(inside, a << count, 0) if to_left else np.where(inside, a >> count, -(a < 0).astype(np.int64))


def _close(a: Array, b: Array, **more: Any) -> Array:
    return np.isclose(a.astype(float), b.astype(float), **more)


NUMBERS: dict[str, Any] = {"dtypes": NUMBER_NAMES}
TRUTH: dict[str, Any] = {"result": "bool"}
binary("add", lambda a, b: a + b, grad=2)
binary("sub", lambda a, b: a - b, grad=2, **NUMBERS)
binary("mul", lambda a, b: a * b, grad=2)
binary("div", lambda a, b: a / b, (-3.0, 3.0), (0.5, 3.0), result="float", grad=2)
binary("floor_divide", np.floor_divide, (-9.0, 9.0), (0.7, 4.0), **NUMBERS)
binary(
    "remainder",
    np.remainder,
    (-9.0, 9.0),
    (0.7, 4.0),
    grad=2,
    slack=8,
    torch_edges="its quotients above 2**53 are NaN",
    **NUMBERS,
)
binary(
    "trunc_divide",
    _truncated,
    (-9.0, 9.0),
    (0.7, 4.0),
    call=lambda m, a, b: m.div(a, b, rounding_mode="trunc"),
    torch=lambda t, a, b: (
        t.div(a.float(), b, rounding_mode="trunc").to(a.dtype)
        if a.dtype is t.bfloat16
        else t.div(a, b, rounding_mode="trunc")
    ),
    grad=1,
    **NUMBERS,
)
binary(
    "fmod", _fmod, (-9.0, 9.0), (0.7, 4.0), grad=2, slack=8, torch_edges="its quotients above 2**53 are NaN", **NUMBERS
)
binary("hypot", np.hypot, grad=2, dtypes=FLOAT_NAMES, torch_edges="its slopes beside an infinity come and go")
binary("copysign", np.copysign, **FLOAT)
binary("xlogy", _xlogy, (-3.0, 3.0), (0.3, 9.0), slack=2, **FLOAT)
for name, upper in (("igamma", False), ("igammac", True)):
    binary(
        name,
        lambda a, x, upper=upper: 1 - _igamma(a, x) if upper else _igamma(a, x),
        (0.6, 6.0),
        (0.4, 9.0),
        call=lambda m, a, x, name=name: getattr(m, name)(a.detach(), x),  # a has no derivative
        inputs=(1,),
        in_place=None,
        scaled=True,
        slack=8,
        edges=False,  # test_special.py
        torch_grad="it is NaN at (1, 0)",
        **FLOAT,
    )
binary("logaddexp", np.logaddexp, scaled=True, grad=2, dtypes=FLOAT_NAMES)
binary("logaddexp2", np.logaddexp2, scaled=True, grad=2, dtypes=FLOAT_NAMES)
binary("fmax", np.fmax, grad=2)
binary("fmin", np.fmin, grad=2)
binary("pow", _power, (0.3, 3.0), (0.0, 3.0), grad=2, slack=2, **NUMBERS)
binary("atan2", np.arctan2, (-3.0, 3.0), (0.3, 3.0), torch_edges="the products in its derivative overflow", **FLOAT)
binary("maximum", np.maximum, grad=2)
binary("minimum", np.minimum, grad=2)
binary("clamp_min", np.maximum, call=lambda m, a, b: m.clamp(a, min=b), grad=2, in_place="clamp_min_", **NUMBERS)
binary("clamp_max", np.minimum, call=lambda m, a, b: m.clamp(a, max=b), grad=2, in_place="clamp_max_", **NUMBERS)
binary("eq", np.equal, **TRUTH)
binary("ne", np.not_equal, **TRUTH)
binary("lt", np.less, **TRUTH)
binary("le", np.less_equal, **TRUTH)
binary("gt", np.greater, **TRUTH)
binary("ge", np.greater_equal, **TRUTH)
binary("logical_and", np.logical_and, **TRUTH)
binary("logical_or", np.logical_or, **TRUTH)
binary("logical_xor", np.logical_xor, **TRUTH)
binary("bitwise_and", np.bitwise_and, dtypes=WHOLE_NAMES)
binary("bitwise_or", np.bitwise_or, dtypes=WHOLE_NAMES)
binary("bitwise_xor", np.bitwise_xor, dtypes=WHOLE_NAMES)
binary("bitwise_left_shift", lambda a, b: _shifted(a, b, True), (-9.0, 9.0), (0.0, 7.0), dtypes=INTEGER_NAMES)
binary("bitwise_right_shift", lambda a, b: _shifted(a, b, False), (-99.0, 99.0), (0.0, 7.0), dtypes=INTEGER_NAMES)


def backward_row(name: str, reference: Any, **more: Any) -> None:
    """A fused derivative: a function of the gradient and the result, or the input; of c, a parameter, if so."""
    row = f"{name}_backward"
    page = next(page for page in (pointwise, composed, activation) if hasattr(page, row))
    ternary = reference.__code__.co_argcount == 3
    more.setdefault("domains", (*SPREAD_OUT, (0.5, 2.0)) if ternary else SPREAD_OUT)
    more.setdefault("torch", False)
    add(
        row,
        row,
        lambda m, *given: getattr(page, row)(*given),
        reference,
        shapes=TERNARY_SHAPES if ternary else BINARY_SHAPES,
        dtypes=FLOAT_NAMES,
        **more,
    )


backward_row("relu", lambda a, b: np.where(b <= 0, 0, a), grad=2, inputs=(0,))
backward_row("nan_to_num", lambda a, b: np.where(np.isfinite(b), a, 0), grad=2, inputs=(0,))
backward_row("clamp_min", lambda a, b, c: np.where(b >= c, a, 0), grad=2, inputs=(0,))
backward_row("clamp_max", lambda a, b, c: np.where(b <= c, a, 0), grad=2, inputs=(0,))
backward_row(
    "sigmoid",
    lambda a, b: a * b * (1 - b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.sigmoid_backward(a, b),
    scaled=True,
)
backward_row(
    "tanh",
    lambda a, b: a * (1 - b * b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.tanh_backward(a, b),
    torch_edges="the products in its derivative are ordered otherwise",
    scaled=True,
)
# ---- pointwise: parameters, numbers, more inputs --------------------------------------------------------------------


def also(name: str, row: str, call: Any, reference: Any, **more: Any) -> None:
    more.setdefault("shapes", (((3, 5),), ((),), ((0, 2),)))
    add(name, row, call, reference, **more)


add(
    "where",
    "where",
    lambda m, a, b, c: m.where(a, b, c),
    np.where,
    domains=("bool", (-3.0, 3.0), (-3.0, 3.0)),
    shapes=TERNARY_SHAPES,
    grad=2,
    inputs=(1, 2),
)
add(
    "masked_scale",
    "masked_scale",
    lambda m, a, b, c: masked_scale(a, b, c),
    lambda a, b, c: b * np.where(a, c, 0),
    dtypes=FLOAT_NAMES,
    domains=("bool", (-3.0, 3.0), (-3.0, 3.0)),
    shapes=TERNARY_SHAPES,
    grad=2,
    inputs=(1,),
    torch=False,
)
add(
    "clamp",
    "clamp",
    lambda m, a, b, c: m.clamp(a, b, c),
    lambda a, b, c: np.minimum(np.maximum(a, b), c),
    domains=((-3.0, 3.0), (-2.0, 0.5), (0.0, 2.0)),
    shapes=TERNARY_SHAPES,
    grad=2,
    in_place="clamp_",
    **NUMBERS,
)
also(
    "add alpha",
    "",
    lambda m, a, b: m.add(a, b, alpha=2),
    lambda a, b: a + 2 * b,
    domains=SPREAD_OUT,
    shapes=PAIR,
    grad=2,
    scaled=True,
    **NUMBERS,
)
also(
    "sub alpha",
    "",
    lambda m, a, b: m.sub(a, b, alpha=3),
    lambda a, b: a - 3 * b,
    domains=SPREAD_OUT,
    shapes=PAIR,
    grad=2,
    scaled=True,
    **NUMBERS,
)
also(
    "div floor",
    "",
    lambda m, a, b: m.div(a, b, rounding_mode="floor"),
    np.floor_divide,
    domains=((-9.0, 9.0), (0.7, 4.0)),
    shapes=PAIR,
    **NUMBERS,
)
also(
    "div trunc",
    "",
    lambda m, a, b: m.div(a, b, rounding_mode="trunc"),
    _truncated,
    domains=((-9.0, 9.0), (0.7, 4.0)),
    shapes=PAIR,
    **NUMBERS,
)
also(
    "true_divide",
    "true_divide",
    lambda m, a, b: m.true_divide(a, b),
    lambda a, b: a / b,
    domains=((-9.0, 9.0), (0.7, 4.0)),
    shapes=PAIR,
    result="float",
    in_place="true_divide_",
    grad=2,
)
also(
    "isclose",
    "isclose",
    lambda m, a, b: m.isclose(a, b, rtol=0.37, atol=0.29),
    lambda a, b: _close(a, b, rtol=0.37, atol=0.29),
    domains=SPREAD_OUT,
    shapes=PAIR,
    result="bool",
)
also(
    "isclose equal_nan",
    "",
    lambda m, a, b: m.isclose(a, b, equal_nan=True),
    lambda a, b: _close(a, b, equal_nan=True),
    domains=SPREAD_OUT,
    shapes=PAIR,
    result="bool",
    dtypes=FLOAT_NAMES,
)
also("neg operator", "", lambda m, x: -x, lambda x: -x, dtypes=NUMBER_NAMES, grad=2)
also("invert operator", "", lambda m, x: ~x, lambda x: ~x, dtypes=WHOLE_NAMES)
also("x + 2", "", lambda m, x: x + 2, lambda x: x + 2, grad=2, **NUMBERS)
also("2 - x", "", lambda m, x: 2 - x, lambda x: 2 - x, grad=2, **NUMBERS)
also("x * 3", "", lambda m, x: x * 3, lambda x: x * 3, grad=2, **NUMBERS)
also("x * 0.3", "", lambda m, x: x * 0.3, lambda x: x * 0.3, dtypes=FLOAT_NAMES, grad=2)
also("x / 2", "", lambda m, x: x / 2, lambda x: x / 2, result="float", grad=2)
also("2 / x", "", lambda m, x: 2 / x, lambda x: 2 / x, domains=wide(0.3, 4.0), result="float", grad=2)
also("x // 2", "", lambda m, x: x // 2, lambda x: x // 2, domains=wide(-9.0, 9.0), **NUMBERS)
also("7 // x", "", lambda m, x: 7 // x, lambda x: 7 // x, domains=wide(0.7, 9.0), **NUMBERS)
also("x % 2", "", lambda m, x: x % 2, lambda x: x % 2, domains=wide(0.1, 9.0), grad=2, **NUMBERS)
also(
    "7 % x",
    "",
    lambda m, x: 7 % x,
    lambda x: 7 % x,
    domains=wide(0.8, 9.0),
    torch_edges="its quotients above 2**53 are NaN",
    slack=8,
    grad=2,
    **NUMBERS,
)
also("x ** 2", "", lambda m, x: x**2, lambda x: x**2, grad=2, **NUMBERS)
also("x ** 3", "", lambda m, x: x**3, lambda x: x**3, grad=2, **NUMBERS)
also("x ** 0", "", lambda m, x: x**0, lambda x: x**0, grad=2, **NUMBERS)
also("x ** -1.5", "", lambda m, x: x**-1.5, lambda x: x**-1.5, domains=wide(0.3, 3.0), dtypes=FLOAT_NAMES, grad=2)
also("x ** 0.5", "", lambda m, x: x**0.5, np.sqrt, domains=wide(0.3, 3.0), dtypes=FLOAT_NAMES, grad=2)
also(
    "2 ** x", "", lambda m, x: 2**x, lambda x: _power(np.full_like(x, 2), x), domains=wide(0.0, 5.0), grad=2, **NUMBERS
)
also("x & 3", "", lambda m, x: x & 3, lambda x: x & 3, dtypes=WHOLE_NAMES[1:])
also("x < 1", "", lambda m, x: x < 1, lambda x: x < 1, result="bool")
also("1 < x", "", lambda m, x: x.__gt__(1), lambda x: x > 1, result="bool")
also("x == 1", "", lambda m, x: x == 1, lambda x: x == 1, result="bool")
also(
    "clamp numbers",
    "",
    lambda m, x: m.clamp(x, -1, 2),
    lambda x: np.clip(x, -1, 2),
    grad=2,
    dtypes=("int32", "int64", *FLOAT_NAMES),
)
also("clamp min number", "", lambda m, x: m.clamp(x, min=1), lambda x: np.maximum(x, 1), grad=2, **NUMBERS)
also("clamp max number", "", lambda m, x: x.clip(max=1), lambda x: np.minimum(x, 1), grad=2, **NUMBERS)
also(
    "where number",
    "",
    lambda m, a, b: m.where(a, b, 1),
    lambda a, b: np.where(a, b, np.ones_like(b)),
    domains=("bool", (-3.0, 3.0)),
    shapes=PAIR,
    grad=2,
    inputs=(1,),
    **NUMBERS,
)
also("1 << x", "", lambda m, x: 1 << x, lambda x: 1 << x, domains=wide(0.0, 6.0), dtypes=INTEGER_NAMES, edges=False)
also("x >> 1", "", lambda m, x: x >> 1, lambda x: x >> 1, dtypes=INTEGER_NAMES)
