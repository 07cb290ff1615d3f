"""The ONNX operators of the rows of csrc/ops.def: a name, or a function of the graph and the operands' names. Operands
have the dtype that the row computes in."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._binding.header import listed
from .._binding.library import constants, lib
from ..dtype import DTYPES

_NAMES = listed(lib.norch_op_name)
_BOOL, _INT32, _INT64 = constants["BOOL"], constants["INT32"], constants["INT64"]


class _Row:
    """The graph, and constants in the dtype of a row, for its formula."""

    __slots__ = ("dtype", "g")

    def __init__(self, g: Any, dtype: int):
        self.g, self.dtype = g, dtype

    def __call__(self, op: str, *operands: Any, **attributes: Any) -> Any:
        """Adds a node; numbers among its inputs become constants."""
        names = [operand if isinstance(operand, str) else self.g.scalar(operand, self.dtype) for operand in operands]
        return self.g.node(op, *names, **attributes)


def _is(op: str) -> Callable[..., Any]:
    return lambda r, *inputs: r(op, *inputs)


def _negative(r: Any, x: str) -> Any:
    """Whether the sign of x is minus, -0.0 included; False for NaN."""
    return r("Or", r("Less", x, 0), r("Less", r("Reciprocal", x), 0))


_SAME = {
    "neg": "Neg", "abs": "Abs", "sign": "Sign", "reciprocal": "Reciprocal", "sqrt": "Sqrt", "exp": "Exp", "log": "Log",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh",
    "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf",
    "sigmoid": "Sigmoid", "softsign": "Softsign", "mish": "Mish", "hardswish": "HardSwish", "relu": "Relu",
    "selu": "Selu", "floor": "Floor", "ceil": "Ceil", "round": "Round", "conj": "Identity", "add": "Add", "sub": "Sub",
    "mul": "Mul", "div": "Div", "pow": "Pow", "leaky_relu": "PRelu", "maximum": "Max", "minimum": "Min",
    "clamp_min": "Max", "clamp_max": "Min",
}  # fmt: skip

_UNARY: dict[str, Callable[..., Any]] = {
    "square": lambda r, x: r("Mul", x, x),
    "cube": lambda r, x: r("Mul", x, r("Mul", x, x)),
    "rsqrt": lambda r, x: r("Reciprocal", r("Sqrt", x)),
    "exp2": lambda r, x: r("Pow", 2.0, x),
    "expm1": lambda r, x: r("Sub", r("Exp", x), 1.0),
    "log2": lambda r, x: r("Div", r("Log", x), math.log(2)),
    "log10": lambda r, x: r("Div", r("Log", x), math.log(10)),
    "log1p": lambda r, x: r("Log", r("Add", x, 1.0)),
    "erfc": lambda r, x: r("Sub", 1.0, r("Erf", x)),
    "logit": lambda r, x: r("Log", r("Div", x, r("Sub", 1.0, x))),
    "silu": lambda r, x: r("Mul", x, r("Sigmoid", x)),
    "gelu": lambda r, x: r("Mul", r("Mul", x, 0.5), r("Add", r("Erf", r("Mul", x, math.sqrt(0.5))), 1.0)),
    "gelu_tanh": lambda r, x: r("Mul", x, r("Sigmoid", r(
        "Mul", x, r("Add", r("Mul", r("Mul", x, x), 0.071354816272600248), 1.5957691216057308)))),
    "frac": lambda r, x: r("Sub", x, _UNARY["trunc"](r, x)),
    "hardsigmoid": lambda r, x: r("Div", r("Min", r("Max", r("Add", x, 3.0), 0.0), 6.0), 6.0),
    "angle": lambda r, x: r("Where", r("IsNaN", x), x, r("Where", r("Less", x, 0.0), math.pi, 0.0)),
    "tanhshrink": lambda r, x: r("Sub", x, r("Tanh", x)),
    "logsigmoid": lambda r, x: r("Neg", r("Softplus", r("Neg", x))),
    "trunc": lambda r, x: r("Mul", r("Sign", x), r("Floor", r("Abs", x))),
    "sinc": lambda r, x: r("Where", r("Equal", x, 0.0), 1.0, r(
        "Div", r("Sin", r("Mul", x, math.pi)), r("Mul", x, math.pi))),
}  # fmt: skip
_TRUTHS: dict[str, Callable[..., Any]] = {
    "isnan": _is("IsNaN"),
    "isinf": _is("IsInf"),
    "isfinite": lambda r, x: r("Not", r("Or", r("IsNaN", x), r("IsInf", x))),
    "signbit": lambda r, x: _negative(r, x),
}


def _signed(r: Any, size: str, like: str) -> Any:
    return r("Where", _negative(r, like), r("Neg", size), size)


def _angle(r: Any, y: str, x: str) -> Any:
    """atan2: the angle in the first quadrant, moved to its quadrant."""
    high, wide = r("Abs", y), r("Abs", x)
    first = r("Where", r("Equal", high, wide), math.pi / 4, r("Atan", r("Div", high, wide)))
    first = r("Where", r("Equal", high, 0.0), r("Where", r("IsNaN", x), x, 0.0), first)
    return _signed(r, r("Where", _negative(r, x), r("Sub", math.pi, first), first), y)


def _number_of(op: str) -> Callable[..., Any]:
    """Max or Min that ignores a NaN if the other operand is a number, as fmax() and fmin() do."""
    return lambda r, a, b: r("Where", r("IsNaN", a), b, r("Where", r("IsNaN", b), a, r(op, a, b)))


def _floored(r: Any, a: str, b: str) -> Any:
    return r("Floor", r("Div", a, b))


_BINARY: dict[str, Callable[..., Any]] = {
    "hypot": lambda r, a, b: r("Sqrt", r("Add", r("Mul", a, a), r("Mul", b, b))),
    "xlogy": lambda r, a, b: r("Where", r("Equal", a, 0.0), r("Where", r("IsNaN", b), b, 0.0), r(
        "Mul", a, r("Log", b))),
    "logaddexp": lambda r, a, b: r("Where", r("Equal", a, b), r("Add", a, math.log(2)), r(
        "Add", r("Max", a, b), r("Log", r("Add", r("Exp", r("Neg", r("Abs", r("Sub", a, b)))), 1.0)))),
    "logaddexp2": lambda r, a, b: r("Where", r("Equal", a, b), r("Add", a, 1.0), r("Add", r("Max", a, b), r(
        "Div", r("Log", r("Add", r("Pow", 2.0, r("Neg", r("Abs", r("Sub", a, b)))), 1.0)), math.log(2)))),
    "copysign": lambda r, a, b: _signed(r, r("Abs", a), b),
    "atan2": _angle,
    "fmax": _number_of("Max"),
    "fmin": _number_of("Min"),
    "hardshrink": lambda r, a, b: r("Where", r("LessOrEqual", r("Abs", a), b), 0.0, a),
    "softshrink": lambda r, a, b: r("Sub", a, r("Min", r("Max", a, r("Neg", b)), b)),
    "huber": lambda r, a, b: r("Where", r("Less", r("Abs", a), b), r("Mul", r("Mul", a, a), 0.5), r(
        "Mul", b, r("Sub", r("Abs", a), r("Mul", b, 0.5)))),
    "elu": lambda r, a, b: r("Where", r("Greater", a, 0.0), a, r("Mul", b, r("Sub", r("Exp", a), 1.0))),
    "celu": lambda r, a, b: r("Where", r("Greater", a, 0.0), a, r("Mul", b, r("Sub", r("Exp", r("Div", a, b)), 1.0))),
    "round_decimals": lambda r, a, b: r("Div", r("Round", r("Mul", a, b)), b),
    "round_tens": lambda r, a, b: r("Mul", r("Round", r("Div", a, b)), b),
    "floor_divide": _floored,
    "remainder": lambda r, a, b: r("Sub", a, r("Mul", _floored(r, a, b), b)),
    "trunc_divide": lambda r, a, b: _UNARY["trunc"](r, r("Div", a, b)),
    "fmod": lambda r, a, b: r("Mod", a, b, fmod=1),
}  # fmt: skip
_INTEGERS: dict[str, Callable[..., Any]] = {
    "floor_divide": lambda r, a, b: r("Div", r("Sub", a, r("Mod", a, b)), b),
    "remainder": _is("Mod"),
    "trunc_divide": _is("Div"),
    "floor": _is("Identity"),
    "ceil": _is("Identity"),
    "round": _is("Identity"),
    "trunc": _is("Identity"),
    "bitwise_not": _is("BitwiseNot"),
    "bitwise_and": _is("BitwiseAnd"),
    "bitwise_or": _is("BitwiseOr"),
    "bitwise_xor": _is("BitwiseXor"),
}
_BOOLS = {"bitwise_not": "Not", "bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "add": "Or",
          "mul": "And", "maximum": "Or", "minimum": "And"}  # fmt: skip
_COMPARED = {"eq": "Equal", "ne": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_TERNARY: dict[str, Callable[..., Any]] = {
    "clamp": lambda r, a, b, c: r("Min", r("Max", a, b), c),
    "lerp": lambda r, a, b, c: r("Add", a, r("Mul", c, r("Sub", b, a))),
    "addcmul": lambda r, a, b, c: r("Add", a, r("Mul", b, c)),
    "addcdiv": lambda r, a, b, c: r("Add", a, r("Div", b, c)),
    "threshold": lambda r, a, b, c: r("Where", r("LessOrEqual", a, b), c, a),
    "nan_to_num": lambda r, a, b, c: r("Where", r("IsNaN", a), b, r("Where", r("IsInf", a), r(
        "Where", r("Less", a, 0.0), r("Neg", c), c), a)),
    "softplus": lambda r, a, b, c: r("Where", r("Greater", r("Mul", a, b), c), a, r(
        "Div", r("Softplus", r("Mul", a, b)), b)),
}  # fmt: skip


def _formula(g: Any, name: str, formulas: dict[str, Callable[..., Any]], dtype: int) -> Callable[..., Any]:
    kind = DTYPES[dtype].kind
    formula: Any = None
    if kind == "b":
        formula = _is(_BOOLS[name]) if name in _BOOLS else None
    elif kind in "iu":
        formula = _INTEGERS.get(name)
    if formula is None and kind != "c" and (kind != "b" or name == "where"):
        formula = formulas.get(name) or (_is(_SAME[name]) if name in _SAME else None)
    return formula or g.refuse(f"computes {name} of {DTYPES[dtype].name}, for which there is no ONNX operator")


def unary(g: Any, out: Any, op: int, x: Any) -> str:
    """A UNARY row."""
    name = _NAMES[op]
    if name == "logical_not":
        return g.node("Not", g.cast(x, _BOOL))
    if name in _TRUTHS:
        wide = x.dtype if x.kind == "f" else constants["FLOAT32"]
        return _TRUTHS[name](_Row(g, wide), g.cast(x, wide))
    dtype = out[0].dtype
    return _formula(g, name, _UNARY, dtype)(_Row(g, dtype), g.cast(x, dtype))


def binary(g: Any, out: Any, op: int, a: Any, b: Any) -> str:
    """A BINARY row."""
    name = _NAMES[op]
    if name in _LOGICAL:
        return g.node(_LOGICAL[name], g.cast(a, _BOOL), g.cast(b, _BOOL))
    if name in _COMPARED:
        wide = lib.norch_result_type([a.example, b.example])
        if DTYPES[wide].kind == "b" and name not in ("eq", "ne"):
            wide = _INT32
        result_ref = g.node(_COMPARED[name], g.cast(a, wide), g.cast(b, wide))
        return g.node("Not", result_ref) if name == "ne" else result_ref
    dtype = out[0].dtype
    return _formula(g, name, _BINARY, dtype)(_Row(g, dtype), g.cast(a, dtype), g.cast(b, dtype))


def ternary(g: Any, out: Any, op: int, a: Any, b: Any, c: Any) -> str:
    """A TERNARY or CHOICE row."""
    name, dtype = _NAMES[op], out[0].dtype
    if name == "where":
        return g.where(g.cast(a, _BOOL), g.cast(b, dtype), g.cast(c, dtype), dtype)
    if name == "masked_scale":
        factor = g.node("Where", g.cast(a, _BOOL), g.cast(c, dtype), g.scalar(0, dtype))
        return g.node("Mul", g.cast(b, dtype), factor)
    return _formula(g, name, _TERNARY, dtype)(_Row(g, dtype), *(g.cast(x, dtype) for x in (a, b, c)))


_REDUCED = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd", "amax": "ReduceMax", "amin": "ReduceMin",
            "norm": "ReduceL2"}  # fmt: skip


def reduction(g: Any, out: Any, op: int, x: Any, axes: Any, keepdim: bool, dtype: int, param: float) -> str:
    """A REDUCE row; empty axes mean all."""
    name = _NAMES[op]
    over = [axis % max(x.ndim, 1) for axis in axes] if axes else list(range(x.ndim))
    attributes = {"keepdims": int(keepdim)}
    if name in ("argmax", "argmin"):
        return _extreme(g, name, x, over, bool(keepdim))
    result = out[0].dtype
    if not x.ndim or not over:
        return g.cast(x, result) if name in _REDUCED else g.refuse("reduces no axis, for which there is no entry")
    at = g.number_list(over)
    if name in ("any", "all") or (x.kind == "b" and name in ("amax", "amin")):
        greatest = "ReduceMax" if name in ("any", "amax") else "ReduceMin"
        truth = g.node("Cast", g.cast(x, _BOOL), to=g.type_of(_INT32))
        return g.node("Cast", g.node(greatest, truth, at, **attributes), to=g.type_of(_BOOL))
    source = g.cast(x, result)
    if name in _REDUCED:
        return g.node(_REDUCED[name], source, at, **attributes)
    if name == "nansum":
        if x.kind == "f":
            source = g.node("Where", g.node("IsNaN", source), g.scalar(0, result), source)
        return g.node("ReduceSum", source, at, **attributes)
    if name == "mean_square":
        return g.node("ReduceMean", g.node("Mul", source, source), at, **attributes)
    if name not in ("var", "std"):
        g.refuse(f"computes {name}, for which there is no ONNX operator")
    centered = g.node("Sub", source, g.node("ReduceMean", source, at, keepdims=1))
    total = g.node("ReduceSum", g.node("Mul", centered, centered), at, **attributes)
    traces = len(g.traces)
    counts = [1] * traces
    for axis in over:
        size = x.shape[axis]
        counts = [n * s for n, s in zip(counts, size if type(size) is tuple else (size,) * traces)]
    if len(set(counts)) == 1:
        quotient = g.node("Div", total, g.scalar(max(counts[0] - param, 0), result))
    else:
        count = g.node("Squeeze", g.size(tuple(counts)), g.number_list([0]))
        count = g.node("Sub", g.node("Cast", count, to=g.type_of(result)), g.scalar(param, result))
        quotient = g.node("Div", total, g.node("Max", count, g.scalar(0, result)))
    return g.node("Sqrt", quotient) if name == "std" else quotient


def _extreme(g: Any, name: str, x: Any, over: list[int], keepdim: bool) -> str:
    """argmax and argmin; of the flattened tensor if all axes are reduced."""
    op = "ArgMax" if name == "argmax" else "ArgMin"
    source = g.cast(x, _INT32) if x.kind == "b" else x.name
    if len(over) == 1 and x.ndim:
        return g.node(op, source, axis=over[0], keepdims=int(keepdim))
    if len(over) != x.ndim:
        g.refuse("takes the index of an extreme over some of several axes, for which there is no ONNX operator")
    flat = g.node(op, g.node("Reshape", source, g.number_list([-1])), axis=0, keepdims=0)
    return g.node("Reshape", flat, g.number_list([1] * x.ndim)) if keepdim and x.ndim else flat
