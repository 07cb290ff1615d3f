"""The operations and what they must give: one row a way of calling one.

``call(m, *inputs)`` is written once, for m = norch and m = torch; ``reference`` says in NumPy what comes out, over
float64, int64 or bool inputs. Every row of csrc/ops.def and every operation in norch/__init__.py has a case here;
test_ops.py fails otherwise, and walks the cases over dtypes, layouts and edge values.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import norch

FLOAT_NAMES = ("float32", "float64")
NUMBER_NAMES = ("uint8", "int32", "int64", *FLOAT_NAMES)
WHOLE_NAMES = ("bool", "uint8", "int32", "int64")
ALL_NAMES = ("bool", *NUMBER_NAMES)

Array = Any
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One way to call one operation.

    row          its row in ops.def, or the name of the public function, or "" for more of the same
    domains      the interval that each input is drawn from, or "bool" / "index" for inputs of that fixed kind
    shapes       of the inputs: several tuples, one shape an input each
    result       dtype of each result: same, float (integers become the default one), bool, sum, index, or a name
    dtypes       that norch takes
    grad         how many derivatives are checked: 0, 1, 2
    inputs       which inputs have derivatives; None: all that are floats
    in_place     the name of the method that does the same in place
    torch        PyTorch's way where it is called otherwise; False where it has none
    slack        multiplies the tolerances
    edges        whether edge values go through it
    torch_edges  whether they are compared with PyTorch too, or else why not
    index_below  indices are drawn from 0 up to this
    scaled       whether errors are measured against the size of the terms that a result adds up
    """

    name: str
    row: str
    call: Callable[..., Any]
    reference: Callable[..., Any]
    domains: tuple[Any, ...] = ((-3.0, 3.0),)
    shapes: tuple[tuple[Shape, ...], ...] = (((3, 5),),)
    result: str = "same"
    dtypes: tuple[str, ...] = ALL_NAMES
    grad: int = 0
    inputs: tuple[int, ...] | None = None
    in_place: str | None = None
    torch: Any = None
    slack: float = 1.0
    edges: bool = True
    torch_edges: bool | str = True
    index_below: int = 0
    scaled: bool = False

    def __str__(self) -> str:
        return self.name

    def torch_call(self) -> Callable[..., Any]:
        """How PyTorch is asked."""
        return self.call if self.torch is None else self.torch


CASES: list[Case] = []


def add(name: str, row: str, call: Any, reference: Any, **more: Any) -> None:
    """One more case."""
    assert all(name != case.name for case in CASES), f"two cases named {name}"
    CASES.append(Case(name, row, call, reference, **more))


# ---- inputs ---------------------------------------------------------------------------------------------------------


def source(text: str) -> np.random.Generator:
    """Random numbers that depend on text alone."""
    return np.random.default_rng(zlib.crc32(text.encode()))


def draw(case: Case, shapes: Sequence[Shape], dtype: str, rng: np.random.Generator) -> list[Array]:
    """Inputs of the given shapes, from the case's domains; NumPy arrays of the dtype."""
    arrays = []
    for position, shape in enumerate(shapes):
        domain = case.domains[min(position, len(case.domains) - 1)]
        if isinstance(domain, str) and domain == "bool":
            arrays.append(rng.random(shape) < 0.5)
        elif isinstance(domain, str):
            arrays.append(rng.integers(0, case.index_below, shape))
        elif dtype == "bool":
            # where 0 lies outside the domain False is left out
            arrays.append(rng.random(shape) < (0.5 if domain[0] <= 0 else 2))
        elif dtype in WHOLE_NAMES:
            low, high = math.ceil(domain[0]), math.floor(domain[1])
            arrays.append(rng.integers(max(low, 0) if dtype == "uint8" else low, max(high, 1) + 1, shape).astype(dtype))
        else:
            arrays.append(np.asarray(rng.uniform(*domain, shape)).astype(dtype))
    return arrays


_MAKERS = {"float32": np.float32, "float64": np.float64}


def edge_values(dtype: str) -> Array:
    """The values of a dtype at which formulas break."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOAT_NAMES:
        info, one = np.finfo(dtype), _MAKERS[dtype](1)
        values = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-20, -1e-20]
        values += [info.max, -info.max, info.tiny, -info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
        values += [np.nextafter(one, 2 * one), np.nextafter(one, -one), 88.0, -88.0, 1e4, -1e4, 16777217.0, 0.49999997]
        return np.array(values, dtype)
    whole = np.iinfo(dtype)
    values = {0, 1, 2, 3, 7, whole.max, whole.max - 1, whole.min, whole.min + 1, whole.max // 2}
    return np.array(sorted(values | ({-1, -2, -7} if whole.min else set())), dtype)


def edge_inputs(case: Case, dtype: str) -> list[Array]:
    """Edge values for a pointwise case: all of them, in all pairs, or in many triples."""
    values = edge_values(dtype)
    if len(case.domains) == 1:
        return [np.tile(values, 3)]
    if len(case.domains) == 2:
        pairs = np.array(list(itertools.product(range(len(values)), repeat=2)))
        return [values[pairs[:, 0]], values[pairs[:, 1]]]
    picks = source(case.name + dtype).integers(0, len(values), (3, 400))
    arrays = [values[picks[0]], values[picks[1]], values[picks[2]]]
    if case.domains[0] == "bool":
        arrays[0] = picks[0] % 2 == 0
    return arrays


def laid_out(array: Array, layout: str) -> tuple[Any, Array]:
    """A tensor of the values of array, laid out in memory as asked, and those values (expanded ones repeat).

    contiguous; transposed: the axes reversed in memory; strided: every second element of a larger tensor; offset: one
    element into its memory; expanded: the first axis at stride 0.
    """
    if layout == "contiguous" or array.ndim == 0:
        return norch.tensor(array), array
    if layout == "transposed":
        axes = tuple(reversed(range(array.ndim)))
        return norch.tensor(np.ascontiguousarray(array.transpose(axes))).permute(axes), array
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return norch.tensor(wide)[..., ::2], array
    if layout == "offset":
        flat = norch.tensor(np.concatenate([array.reshape(-1)[:1], array.reshape(-1)]))
        return (flat[1:].view(array.shape) if array.size else norch.tensor(array)), array
    assert layout == "expanded", layout
    if not array.shape[0]:
        return norch.tensor(array), array
    row = np.ascontiguousarray(array[:1])
    return norch.tensor(row).expand(array.shape), np.broadcast_to(row, array.shape)


# ---- pointwise, one input -------------------------------------------------------------------------------------------

UNARY_SHAPES = tuple((shape,) for shape in ((4, 37), (3, 1, 5), (2, 0, 3), (), (1,), (1037,)))
_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _of_floats(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """For what leaves integers as they are."""
    return lambda x: function(x) if x.dtype.kind == "f" else x


def _wide(low: float, high: float) -> tuple[tuple[float, float], ...]:
    return ((low, high),)


def unary(name: str, reference: Any, domain: tuple[float, float] = (-3.0, 3.0), **more: Any) -> None:
    """A UNARY row."""
    call = more.pop("call", lambda m, x: getattr(m, name)(x))
    method = name + "_"
    more.setdefault("in_place", method if hasattr(norch.Tensor, method) else None)
    add(name, name, call, reference, domains=(domain,), shapes=UNARY_SHAPES, **more)


FLOAT: dict[str, Any] = {"result": "float", "grad": 2}

unary("neg", lambda x: -x, dtypes=NUMBER_NAMES, grad=2)
unary("abs", np.abs, dtypes=NUMBER_NAMES, grad=2, torch_edges="its sign of NaN is 0")
unary("sign", lambda x: x if x.dtype == bool else np.sign(x), grad=1, torch_edges="its sign of NaN is 0")
unary("square", lambda x: x * x, dtypes=NUMBER_NAMES, grad=2)
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
unary("erf", _erf, **FLOAT)
unary("erfc", _erfc, slack=4, **FLOAT)
unary("sigmoid", _sigmoid, (-9.0, 9.0), **FLOAT)
unary(
    "silu",
    lambda x: x / (1 + np.exp(-x)),
    call=lambda m, x: m.nn.functional.silu(x),
    dtypes=FLOAT_NAMES,
    grad=2,
    slack=2,
)
unary(
    "gelu",
    lambda x: 0.5 * x * (1 + _erf(x * math.sqrt(0.5))),
    call=lambda m, x: m.nn.functional.gelu(x),
    dtypes=FLOAT_NAMES,
    grad=2,
    slack=200,  # 1 + erf(x) cancels for negative x
)
unary("relu", lambda x: np.where(x < 0, 0, x), dtypes=NUMBER_NAMES, grad=2)
unary("floor", _of_floats(np.floor), dtypes=NUMBER_NAMES, grad=1)
unary("ceil", _of_floats(np.ceil), dtypes=NUMBER_NAMES, grad=1)
unary("round", _of_floats(np.rint), dtypes=NUMBER_NAMES, grad=1)
unary("trunc", _of_floats(np.trunc), dtypes=NUMBER_NAMES, grad=1)
unary("isnan", np.isnan, result="bool")
unary("isinf", np.isinf, result="bool")
unary("isfinite", np.isfinite, result="bool")
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


def _close(a: Array, b: Array, **more: Any) -> Array:
    return np.isclose(a.astype(float), b.astype(float), **more)


NUMBERS: dict[str, Any] = {"dtypes": NUMBER_NAMES}
TRUTH: dict[str, Any] = {"result": "bool"}
SPREAD_OUT = ((-3.0, 3.0), (-3.0, 3.0))

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
binary("bitwise_and", np.bitwise_and, dtypes=WHOLE_NAMES, in_place="__iand__")
binary("bitwise_or", np.bitwise_or, dtypes=WHOLE_NAMES, in_place="__ior__")
binary("bitwise_xor", np.bitwise_xor, dtypes=WHOLE_NAMES, in_place="__ixor__")


def _backward_row(name: str, reference: Any, **more: Any) -> None:
    """A fused derivative: a method of the gradient."""
    row = f"{name}_backward"
    add(
        row,
        row,
        lambda m, a, b: getattr(a, "_" + row)(b),
        reference,
        domains=SPREAD_OUT,
        shapes=BINARY_SHAPES,
        dtypes=FLOAT_NAMES,
        **more,
    )


def _silu_slope(x: Array) -> Array:
    s = _sigmoid(x)
    return s * (1 + x * (1 - s))


def _gelu_slope(x: Array) -> Array:
    return 0.5 * (1 + _erf(x * math.sqrt(0.5))) + x / math.sqrt(2 * math.pi) * np.exp(-0.5 * x * x)


_backward_row("relu", lambda a, b: np.where(b <= 0, 0, a), grad=2, inputs=(0,), torch=False)
_backward_row(
    "sigmoid",
    lambda a, b: a * b * (1 - b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.sigmoid_backward(a, b),
    scaled=True,
)
_backward_row(
    "tanh",
    lambda a, b: a * (1 - b * b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.tanh_backward(a, b),
    torch_edges="the products in its derivative are ordered otherwise",
    scaled=True,
)
_backward_row(
    "silu",
    lambda a, b: a * _silu_slope(b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.silu_backward(a, b),
    scaled=True,
    edges=False,  # norch gives the limits 0 and 1 at infinity
)
_backward_row(
    "gelu",
    lambda a, b: a * _gelu_slope(b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.gelu_backward(a, b),
    scaled=True,
)

# ---- pointwise: parameters, numbers, more inputs --------------------------------------------------------------------

TERNARY_SHAPES: tuple[tuple[Shape, ...], ...] = (
    ((4, 37), (4, 37), (4, 37)),
    ((4, 1), (37,), ()),
    ((), (2, 3), (2, 1)),
    ((0, 2), (2,), (1, 2)),
    ((1037,), (1037,), (1037,)),
)


def _more(name: str, row: str, call: Any, reference: Any, **more: Any) -> None:
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
PAIR: tuple[tuple[Shape, ...], ...] = (((3, 5), (3, 5)), ((2, 1), (4,)), ((), (3,)), ((0, 2), (2,)))
_more(
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
_more(
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
_more(
    "div floor",
    "",
    lambda m, a, b: m.div(a, b, rounding_mode="floor"),
    np.floor_divide,
    domains=((-9.0, 9.0), (0.7, 4.0)),
    shapes=PAIR,
    **NUMBERS,
)
_more(
    "div trunc",
    "",
    lambda m, a, b: m.div(a, b, rounding_mode="trunc"),
    _truncated,
    domains=((-9.0, 9.0), (0.7, 4.0)),
    shapes=PAIR,
    **NUMBERS,
)
_more(
    "true_divide",
    "true_divide",
    lambda m, a, b: m.true_divide(a, b),
    lambda a, b: a / b,
    domains=((-9.0, 9.0), (0.7, 4.0)),
    shapes=PAIR,
    result="float",
    grad=2,
)
_more(
    "isclose",
    "isclose",
    lambda m, a, b: m.isclose(a, b, rtol=0.37, atol=0.29),
    lambda a, b: _close(a, b, rtol=0.37, atol=0.29),
    domains=SPREAD_OUT,
    shapes=PAIR,
    result="bool",
)
_more(
    "isclose equal_nan",
    "",
    lambda m, a, b: m.isclose(a, b, equal_nan=True),
    lambda a, b: _close(a, b, equal_nan=True),
    domains=SPREAD_OUT,
    shapes=PAIR,
    result="bool",
    dtypes=FLOAT_NAMES,
)
_more("neg operator", "", lambda m, x: -x, lambda x: -x, dtypes=NUMBER_NAMES, grad=2)
_more("invert operator", "", lambda m, x: ~x, lambda x: ~x, dtypes=WHOLE_NAMES)
_more("x + 2", "", lambda m, x: x + 2, lambda x: x + 2, grad=2, **NUMBERS)
_more("2 - x", "", lambda m, x: 2 - x, lambda x: 2 - x, grad=2, **NUMBERS)
_more("x * 3", "", lambda m, x: x * 3, lambda x: x * 3, grad=2, **NUMBERS)
_more("x * 0.3", "", lambda m, x: x * 0.3, lambda x: x * 0.3, dtypes=FLOAT_NAMES, grad=2)
_more("x / 2", "", lambda m, x: x / 2, lambda x: x / 2, result="float", grad=2)
_more("2 / x", "", lambda m, x: 2 / x, lambda x: 2 / x, domains=_wide(0.3, 4.0), result="float", grad=2)
_more("x // 2", "", lambda m, x: x // 2, lambda x: x // 2, domains=_wide(-9.0, 9.0), **NUMBERS)
_more("7 // x", "", lambda m, x: 7 // x, lambda x: 7 // x, domains=_wide(0.7, 9.0), **NUMBERS)
_more("x % 2", "", lambda m, x: x % 2, lambda x: x % 2, domains=_wide(0.1, 9.0), grad=2, **NUMBERS)
_more(
    "7 % x",
    "",
    lambda m, x: 7 % x,
    lambda x: 7 % x,
    domains=_wide(0.8, 9.0),
    torch_edges="its quotients above 2**53 are NaN",
    slack=8,
    grad=2,
    **NUMBERS,
)
_more("x ** 2", "", lambda m, x: x**2, lambda x: x**2, grad=2, **NUMBERS)
_more("x ** 3", "", lambda m, x: x**3, lambda x: x**3, grad=2, **NUMBERS)
_more("x ** 0", "", lambda m, x: x**0, lambda x: x**0, grad=2, **NUMBERS)
_more("x ** -1.5", "", lambda m, x: x**-1.5, lambda x: x**-1.5, domains=_wide(0.3, 3.0), dtypes=FLOAT_NAMES, grad=2)
_more("x ** 0.5", "", lambda m, x: x**0.5, np.sqrt, domains=_wide(0.3, 3.0), dtypes=FLOAT_NAMES, grad=2)
_more(
    "2 ** x", "", lambda m, x: 2**x, lambda x: _power(np.full_like(x, 2), x), domains=_wide(0.0, 5.0), grad=2, **NUMBERS
)
_more("x & 3", "", lambda m, x: x & 3, lambda x: x & 3, dtypes=WHOLE_NAMES[1:])
_more("x < 1", "", lambda m, x: x < 1, lambda x: x < 1, result="bool")
_more("1 < x", "", lambda m, x: x.__gt__(1), lambda x: x > 1, result="bool")
_more("x == 1", "", lambda m, x: x == 1, lambda x: x == 1, result="bool")
_more(
    "clamp numbers",
    "",
    lambda m, x: m.clamp(x, -1, 2),
    lambda x: np.clip(x, -1, 2),
    grad=2,
    dtypes=("int32", "int64", *FLOAT_NAMES),
)
_more("clamp min number", "", lambda m, x: m.clamp(x, min=1), lambda x: np.maximum(x, 1), grad=2, **NUMBERS)
_more("clamp max number", "", lambda m, x: x.clip(max=1), lambda x: np.minimum(x, 1), grad=2, **NUMBERS)
_more(
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

# ---- reductions -----------------------------------------------------------------------------------------------------

# (name, arguments of norch and PyTorch, NumPy's axis and keepdims, shapes)
ROWS_3D: tuple[tuple[Shape, ...], ...] = (((2, 3, 4),), ((5, 1, 67),), ((3, 0, 2),))
ONE_AXIS: tuple[tuple[str, dict[str, Any], tuple[Any, bool], tuple[tuple[Shape, ...], ...]], ...] = (
    ("dim=0", {"dim": 0}, (0, False), (((3, 5),), ((67, 4),), ((2, 3, 4),), ((7,),), ((3, 0),))),
    ("dim=-1", {"dim": -1}, (-1, False), (((3, 5),), ((4, 67),), ((2, 3, 4),), ((1037,),), ((0, 3),))),
    ("dim=1 keepdim", {"dim": 1, "keepdim": True}, (1, True), (((3, 5),), ((2, 3, 4),), ((5, 67, 1),))),
)
ALL_AXES = (("all", {}, (None, False), (((3, 5),), ((),), ((2, 3, 4),), ((1037,),), ((40, 67),))),)
MANY_AXES = (
    ("dim=(0, 2)", {"dim": (0, 2)}, ((0, 2), False), ROWS_3D),
    ("dim=(1, -1) keepdim", {"dim": (1, -1), "keepdim": True}, ((1, 2), True), ROWS_3D),
)


def reduction(name: str, reference: Any, forms: Any, torch: Any = None, **more: Any) -> None:
    """A REDUCE row: one case a choice of axes. reference(x, axis, keepdims)."""
    row = more.pop("row", name)
    only = more.pop("arguments", {})
    for form, arguments, (axis, keepdims), shapes in forms:
        given = {**arguments, **only}
        add(
            f"{name} {form}",
            row,
            lambda m, x, given=given: getattr(m, row)(x, **given),
            lambda x, axis=axis, keepdims=keepdims: reference(x, axis, keepdims),
            shapes=shapes,
            torch=None if torch is None else lambda t, x, given=given: torch(t, x, **given),
            scaled=True,
            **more,
        )


def _logsumexp(x: Array, axis: Any, keepdims: bool) -> Array:
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    result = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return result if keepdims else np.squeeze(result, axis=axis)


def _total(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=np.int64 if x.dtype.kind != "f" else np.float64)


def _product(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.prod(x, axis=axis, keepdims=keepdims, dtype=np.int64 if x.dtype.kind != "f" else np.float64)


def _spread(root: bool, correction: float) -> Callable[..., Any]:
    def reference(x: Array, axis: Any, keepdims: bool) -> Array:
        centre = np.mean(x, axis=axis, keepdims=True)
        total = np.sum((x - centre) ** 2, axis=axis, keepdims=keepdims)
        count = x.size / max(total.size, 1)
        variance = total / max(count - correction, 0)
        return np.sqrt(variance) if root else variance

    return reference


EVERY = (*ALL_AXES, *ONE_AXIS, *MANY_AXES)
FILLED = tuple(  # for what has no value over no elements
    (form, arguments, axes, tuple(s for s in shapes if 0 not in s[0])) for form, arguments, axes, shapes in EVERY
)
FILLED_ONE = FILLED[: len(ALL_AXES) + len(ONE_AXIS)]
F_ONLY: dict[str, Any] = {"dtypes": FLOAT_NAMES}

reduction("sum", _total, EVERY, result="sum", grad=2)
reduction("mean", lambda x, a, k: np.mean(x, axis=a, keepdims=k), EVERY, grad=2, **F_ONLY)
reduction(
    "prod",
    _product,
    (*ALL_AXES, *ONE_AXIS),
    result="sum",
    grad=2,
    domains=_wide(-1.5, 1.5),
    slack=40,
    torch_edges="inf * 0 comes and goes with the order",
)
reduction(
    "amax",
    lambda x, a, k: np.max(x, axis=a, keepdims=k),
    FILLED,
    torch_edges="its derivative is NaN everywhere beside a NaN",
    grad=2,
)
reduction(
    "amin",
    lambda x, a, k: np.min(x, axis=a, keepdims=k),
    FILLED,
    torch_edges="its derivative is NaN everywhere beside a NaN",
    grad=2,
)
reduction("any", lambda x, a, k: np.any(x != 0, axis=a, keepdims=k), EVERY, result="bool")
reduction("all", lambda x, a, k: np.all(x != 0, axis=a, keepdims=k), EVERY, result="bool")
reduction("argmax", lambda x, a, k: np.argmax(x, axis=a, keepdims=k), FILLED_ONE, result="index")
reduction("argmin", lambda x, a, k: np.argmin(x, axis=a, keepdims=k), FILLED_ONE, result="index")
reduction("var", _spread(False, 1), EVERY, grad=2, slack=4, **F_ONLY)
reduction("std", _spread(True, 1), EVERY, grad=2, slack=4, **F_ONLY)
reduction(
    "logsumexp",
    _logsumexp,
    FILLED,
    torch=lambda t, x, dim=None, keepdim=False: t.logsumexp(x, tuple(range(x.ndim)) if dim is None else dim, keepdim),
    result="float",
    grad=2,
)
for _name, _root in (("var", False), ("std", True)):
    for _label, _given in (
        ("correction=0", {"correction": 0}),
        ("unbiased=False", {"unbiased": False}),
        ("correction=1.5", {"correction": 1.5}),
    ):
        _correction = _given.get("correction", 0)
        add(
            f"{_name} {_label}",
            _name,
            lambda m, x, name=_name, given=_given: getattr(m, name)(x, dim=-1, **given),
            lambda x, r=_root, c=_correction: _spread(r, c)(x, -1, False),
            shapes=(((3, 5),), ((4, 67),)),
            dtypes=FLOAT_NAMES,
            grad=2,
            scaled=True,
            slack=4,
        )
for _name in ("max", "min"):
    _value = {"max": np.max, "min": np.min}[_name]
    _arg = {"max": np.argmax, "min": np.argmin}[_name]
    _pair = {"max": np.maximum, "min": np.minimum}[_name]
    add(
        f"{_name} all",
        _name,
        lambda m, x, n=_name: getattr(m, n)(x),
        lambda x, f=_value: f(x),
        shapes=(((3, 5),), ((),), ((4, 67),)),
        grad=2,
    )
    for _dim, _keep in ((0, False), (-1, True)):
        add(
            f"{_name} dim={_dim}{' keepdim' if _keep else ''}",
            _name,
            lambda m, x, n=_name, d=_dim, k=_keep: tuple(getattr(m, n)(x, dim=d, keepdim=k)),
            lambda x, f=_value, g=_arg, d=_dim, k=_keep: (
                (f(x, axis=d, keepdims=k), g(x, axis=d, keepdims=k)) if x.ndim else (x, np.zeros((), np.int64))
            ),
            shapes=(((3, 5),), ((2, 3, 4),), ((),), ((67, 33),)),
            result="same index",
            grad=2,
        )
    add(
        f"{_name} pair",
        _name,
        lambda m, a, b, n=_name: getattr(m, n)(a, b),
        _pair,
        domains=SPREAD_OUT,
        shapes=PAIR,
        grad=2,
    )


def _log_softmax(x: Array, axis: int) -> Array:
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _softmax(x: Array, axis: int) -> Array:
    return np.exp(_log_softmax(x, axis))


for _dim in (0, -1):
    _shapes = (((3, 5),), ((4, 67),), ((2, 3, 4),), ((1,),))
    add(
        f"softmax dim={_dim}",
        "softmax",
        lambda m, x, d=_dim: m.softmax(x, d),
        lambda x, d=_dim: _softmax(x, d),
        shapes=_shapes,
        result="float",
        grad=2,
        slack=4,
        scaled=True,
    )
    add(
        f"log_softmax dim={_dim}",
        "log_softmax",
        lambda m, x, d=_dim: m.log_softmax(x, d),
        lambda x, d=_dim: _log_softmax(x, d),
        shapes=_shapes,
        result="float",
        grad=2,
        slack=4,
        scaled=True,
    )
add(
    "softmax dtype",
    "",
    lambda m, x: m.softmax(x, 0, dtype=m.float64),
    lambda x: _softmax(x.astype(float), 0),
    result="float64",
    grad=2,
    slack=4,
    scaled=True,
)
add(
    "sum dtype",
    "",
    lambda m, x: m.sum(x, 0, dtype=m.float64),
    lambda x: x.sum(0, dtype=float),
    result="float64",
    grad=2,
    scaled=True,
)
add(
    "sum to int32",
    "",
    lambda m, x: m.sum(x, dtype=m.int32),
    lambda x: x.sum(dtype=np.int64),
    result="int32",
    dtypes=WHOLE_NAMES,
)
add(
    "mean dtype",
    "",
    lambda m, x: m.mean(x, 0, dtype=m.float64),
    lambda x: x.mean(0, dtype=float),
    result="float64",
    grad=2,
    scaled=True,
)
add(
    "prod dtype",
    "",
    lambda m, x: m.prod(x, dtype=m.float64),
    lambda x: x.prod(dtype=float),
    result="float64",
    grad=2,
    torch_edges="inf * 0 comes and goes with the order",
    slack=40,
    scaled=True,
)

# ---- products -------------------------------------------------------------------------------------------------------

MATRICES: tuple[tuple[Shape, ...], ...] = (
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (2, 3, 2)),
    ((2, 2, 3), (3, 4)),
    ((2, 3), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((1, 1), (1, 1)),
    ((33, 65), (65, 37)),
    ((130, 70), (70, 129)),
    ((300,), (300,)),
)
NOT_BOOL: dict[str, Any] = {"dtypes": NUMBER_NAMES, "scaled": True, "slack": 8}


def _product_case(name: str, call: Any, reference: Any, shapes: Any, count: int, **more: Any) -> None:
    add(
        name,
        name.split()[0],
        call,
        reference,
        domains=((-3.0, 3.0),) * count,
        shapes=shapes,
        grad=2,
        **{**NOT_BOOL, **more},
    )


_product_case("matmul", lambda m, a, b: m.matmul(a, b), np.matmul, MATRICES, 2)
_product_case("matmul operator", lambda m, a, b: a @ b, np.matmul, MATRICES[:4], 2)
_product_case("matmul of itself", lambda m, a: a @ a.mT, lambda a: a @ a.swapaxes(-1, -2), (((3, 4),), ((2, 3, 4),)), 1)
_product_case("mm", lambda m, a, b: m.mm(a, b), np.matmul, MATRICES[:1], 2)
_product_case("bmm", lambda m, a, b: m.bmm(a, b), np.matmul, MATRICES[4:5], 2)
_product_case("mv", lambda m, a, b: m.mv(a, b), np.matmul, MATRICES[3:4], 2)
_product_case("dot", lambda m, a, b: m.dot(a, b), np.matmul, MATRICES[1:2], 2)
LAYERS = (
    ((4, 3), (2, 3), (2,)),
    ((3,), (2, 3), (2,)),
    ((2, 2, 3), (4, 3), (4,)),
    ((0, 3), (2, 3), (2,)),
    ((70, 67), (33, 67), (33,)),
)
_product_case("linear", lambda m, x, w, b: m.nn.functional.linear(x, w, b), lambda x, w, b: x @ w.T + b, LAYERS, 3)
_product_case(
    "linear without bias",
    lambda m, x, w: m.nn.functional.linear(x, w),
    lambda x, w: x @ w.T,
    tuple(shapes[:2] for shapes in LAYERS),
    2,
)

# ---- joining, copies and casts --------------------------------------------------------------------------------------

JOINED: tuple[tuple[Shape, ...], ...] = (((2, 3), (2, 3)), ((1, 3), (4, 3)), ((0, 3), (2, 3)))


def _copying(name: str, row: str, call: Any, reference: Any, shapes: Any, **more: Any) -> None:
    more = {"grad": 2, **more}
    add(name, row, call, reference, domains=((-3.0, 3.0),) * len(shapes[0]), shapes=shapes, **more)


_copying("cat", "cat", lambda m, a, b: m.cat([a, b]), lambda a, b: np.concatenate([a, b]), JOINED)
_copying(
    "cat dim=-1",
    "cat",
    lambda m, a, b: m.cat((a, b, a), dim=-1),
    lambda a, b: np.concatenate([a, b, a], -1),
    JOINED[:1],
)
_copying(
    "cat dim=1",
    "cat",
    lambda m, a, b: m.cat([a, b], 1),
    lambda a, b: np.concatenate([a, b], 1),
    (((2, 3, 2), (2, 1, 2)), ((2, 0), (2, 5))),
)
_copying(
    "stack",
    "stack",
    lambda m, a, b: m.stack([a, b]),
    lambda a, b: np.stack([a, b]),
    (((2, 3), (2, 3)), ((), ()), ((0,), (0,))),
)
_copying(
    "stack dim=-1",
    "stack",
    lambda m, a, b: m.stack([a, b], dim=-1),
    lambda a, b: np.stack([a, b], -1),
    (((2, 3), (2, 3)),),
)
COPIED: tuple[tuple[Shape, ...], ...] = (((3, 5),), ((),), ((0, 2),), ((2, 3, 4),), ((130, 67),))
_copying("clone", "clone", lambda m, x: m.clone(x), lambda x: x, COPIED)
_copying("contiguous", "", lambda m, x: x.contiguous(), lambda x: x, COPIED)
_copying("copy", "", lambda m, x: x.to(x.dtype, copy=True), lambda x: x, COPIED)
for _to in ALL_NAMES:
    add(
        f"cast to {_to}",
        "",
        lambda m, x, to=_to: x.to(getattr(m, to)),
        lambda x, to=_to: (x != 0) if to == "bool" else np.trunc(x) if to not in FLOAT_NAMES else x,
        shapes=COPIED,
        domains=((0.0, 120.0),) if _to == "uint8" else ((-120.0, 120.0),),
        result=_to,
        grad=2 if _to == "float64" else 0,
        edges=False,
    )
add(
    "copy_",
    "",
    lambda m, a, b: m.zeros_like(a).copy_(b) if b is not None else a,
    lambda a, b: np.broadcast_to(b, a.shape),
    domains=SPREAD_OUT,
    shapes=(((3, 5), (3, 5)), ((2, 3), (3,)), ((2, 3), ())),
    grad=2,
    inputs=(1,),
)

# ---- views ----------------------------------------------------------------------------------------------------------


def view(name: str, row: str, call: Any, reference: Any, *shapes: Shape, **more: Any) -> None:
    """A view of one input."""
    add(name, row, call, reference, shapes=tuple((shape,) for shape in shapes), **{"grad": 2, **more})


view("reshape", "reshape", lambda m, x: m.reshape(x, (3, -1)), lambda x: x.reshape(3, -1), (3, 5), (2, 3, 4), (6,))
view("reshape to one", "", lambda m, x: x.reshape(-1), lambda x: x.reshape(-1), (3, 5), (), (0, 2))
view("view", "", lambda m, x: x.contiguous().view(-1, 2), lambda x: x.reshape(-1, 2), (2, 3), (4,))
view("view number", "", lambda m, x: x.view(1, 1), lambda x: x.reshape(1, 1), (1,), ())
view("ravel", "", lambda m, x: x.ravel(), lambda x: x.ravel(), (2, 3), ())
view("permute", "permute", lambda m, x: m.permute(x, (2, 0, -2)), lambda x: x.transpose(2, 0, 1), (2, 3, 4), (0, 1, 2))
view("transpose", "transpose", lambda m, x: m.transpose(x, 0, -1), lambda x: x.swapaxes(0, -1), (2, 3), (2, 3, 4), (5,))
view("t", "t", lambda m, x: m.t(x), lambda x: x.T, (2, 3), (4,), ())
view("T", "", lambda m, x: x.T, lambda x: x.T, (2, 3))
view("mT", "", lambda m, x: x.mT, lambda x: x.swapaxes(-1, -2), (2, 3), (2, 3, 4))
view(
    "broadcast_to",
    "broadcast_to",
    lambda m, x: m.broadcast_to(x, (4, 2, 3)),
    lambda x: np.broadcast_to(x, (4, 2, 3)),
    (2, 3),
    (1, 3),
    (3,),
    (),
    (4, 1, 1),
)
view("expand", "", lambda m, x: x.expand(2, -1, 3), lambda x: np.broadcast_to(x, (2, *x.shape[:1], 3)), (4, 1), (4, 3))
view("squeeze", "squeeze", lambda m, x: m.squeeze(x), np.squeeze, (1, 3, 1), (2, 3), (), (1, 1))
view(
    "squeeze dim", "", lambda m, x: m.squeeze(x, 1), lambda x: x.squeeze(1) if x.shape[1] == 1 else x, (2, 1, 3), (2, 3)
)
view("unsqueeze", "unsqueeze", lambda m, x: m.unsqueeze(x, -1), lambda x: x[..., None], (2, 3), (), (0, 2))
view("flatten", "flatten", lambda m, x: m.flatten(x, 1), lambda x: x.reshape(x.shape[0], -1), (2, 3, 4), (2, 3))
view("flatten all", "", lambda m, x: m.flatten(x), np.ravel, (2, 3, 4), (), (0, 2))
view("select", "select", lambda m, x: m.select(x, 1, -2), lambda x: x[:, -2], (2, 3), (2, 3, 4))
view("narrow", "narrow", lambda m, x: m.narrow(x, 1, 1, 2), lambda x: x[:, 1:3], (2, 3), (2, 5, 2))
view("narrow empty", "", lambda m, x: m.narrow(x, 0, 2, 0), lambda x: x[2:2], (2, 3), (5,))
view("slice", "", lambda m, x: x[1:, ::2], lambda x: x[1:, ::2], (3, 5), (2, 1), (1, 3))
view("index", "", lambda m, x: x[..., None, -1], lambda x: x[..., None, -1], (3, 5), (4,))
view("diagonal", "diagonal", lambda m, x: m.diagonal(x), lambda x: np.diagonal(x), (3, 3), (2, 5), (5, 2))
view("diagonal above", "", lambda m, x: m.diagonal(x, 1, -1, 0), lambda x: np.diagonal(x, 1, -1, 0), (3, 4), (2, 3, 4))
view(
    "unfold",
    "",
    lambda m, x: x.unfold(-1, 3, 2),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, -1)[..., ::2, :],
    (2, 7),
    (5,),
    (3, 3),
)
view("unbind", "", lambda m, x: x.unbind(0), lambda x: tuple(x), (2, 3), (3,), result="same same")

# ---- indexing -------------------------------------------------------------------------------------------------------


def _put_along(x: Array, index: Array, src: Array, axis: int) -> Array:
    out = x.copy()
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[axis] = index[place]
        out[tuple(to)] += src[place]
    return out


def _put_rows(x: Array, index: Array, src: Array, axis: int) -> Array:
    out = x.copy()
    np.add.at(np.moveaxis(out, axis, 0), index, np.moveaxis(src, axis, 0))
    return out


def indexing(name: str, call: Any, reference: Any, domains: Any, inputs: Any, *shapes: Any, **more: Any) -> None:
    """A case with a tensor of indices below 3."""
    add(
        name,
        name.split()[0],
        call,
        reference,
        domains=domains,
        inputs=inputs,
        shapes=shapes,
        grad=2,
        index_below=3,
        edges=False,
        **more,
    )


_VALUES = (-3.0, 3.0)
indexing(
    "gather",
    lambda m, x, i: m.gather(x, 0, i),
    lambda x, i: np.take_along_axis(x[:, : i.shape[1]], i, 0),
    (_VALUES, "index"),
    (0,),
    ((3, 5), (2, 5)),
    ((3, 4), (6, 2)),
    ((3, 2), (0, 2)),
)
indexing(
    "gather dim=-1",
    lambda m, x, i: m.gather(x, -1, i),
    lambda x, i: np.take_along_axis(x[: i.shape[0]], i, -1),
    (_VALUES, "index"),
    (0,),
    ((5, 3), (5, 2)),
    ((4, 3), (2, 8)),
)
indexing(
    "scatter_add",
    lambda m, x, i, s: m.scatter_add(x, 0, i, s),
    lambda x, i, s: _put_along(x, i, s, 0),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((3, 5), (4, 5), (4, 5)),
    ((3, 5), (2, 3), (4, 5)),
    ((3, 2), (0, 2), (0, 2)),
    scaled=True,
)
indexing(
    "scatter_add dim=1",
    lambda m, x, i, s: m.scatter_add(x, 1, i, s),
    lambda x, i, s: _put_along(x, i, s, 1),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((4, 3), (4, 6), (4, 6)),
    ((2, 3), (2, 4), (2, 4)),
    scaled=True,
)
indexing(
    "index_select",
    lambda m, x, i: m.index_select(x, 0, i),
    lambda x, i: x[i],
    (_VALUES, "index"),
    (0,),
    ((3, 5), (4,)),
    ((3,), (2,)),
    ((3, 2), (0,)),
)
indexing(
    "index_select dim=1",
    lambda m, x, i: m.index_select(x, 1, i),
    lambda x, i: x[:, i],
    (_VALUES, "index"),
    (0,),
    ((2, 3), (4,)),
    ((2, 3, 2), (1,)),
)
indexing(
    "index_add",
    lambda m, x, i, s: m.index_add(x, 0, i, s),
    lambda x, i, s: _put_rows(x, i, s, 0),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((3, 5), (4,), (4, 5)),
    ((3,), (2,), (2,)),
    scaled=True,
)
indexing(
    "index_add dim=1",
    lambda m, x, i, s: m.index_add(x, 1, i, s),
    lambda x, i, s: _put_rows(x, i, s, 1),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((2, 3), (4,), (2, 4)),
    scaled=True,
)

# Public functions of norch that are no operations on elements.
NO_OPERATIONS = {
    "Generator", "Size", "Tensor", "arange", "as_tensor", "bernoulli", "device", "dtype", "empty", "empty_like",
    "enable_grad", "eye", "from_numpy", "full", "full_like", "get_default_dtype", "get_num_threads", "is_grad_enabled",
    "is_tensor", "linspace", "manual_seed", "no_grad", "ones", "ones_like", "promote_types", "rand", "rand_like",
    "randint", "randn", "randn_like", "randperm", "seed", "set_default_dtype", "set_grad_enabled", "set_num_threads",
    "tensor", "zeros", "zeros_like", "allclose",
    "ArgumentError", "DTypeError", "DeviceError", "Error", "ShapeError",
}  # fmt: skip

BY_NAME = {case.name: case for case in CASES}
