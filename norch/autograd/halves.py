"""float16 and bfloat16 in gradients: a gradient function of several operations computes in float32, and so do the sums
over broadcast axes. The gradient of an input is rounded once, to the input's dtype."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType

from .._binding.library import constants
from .._package.typing import Any
from .._tensor.handle import Handle
from .derivative import propagate_by

HALVES = (constants["FLOAT16"], constants["BFLOAT16"])


@functools.cache
def _operations() -> set[int]:
    """The byte code instructions of Python 3.10 to 3.14 that may be operations on tensors."""
    from opcode import opmap

    return {
        code
        for name, code in opmap.items()
        if name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "COMPARE_OP", "UNARY_NEGATIVE", "UNARY_INVERT", "BINARY_OP")
        or name[:13] == "CALL_FUNCTION"
        or name == "CALL_METHOD"
        or (name[:7] in ("BINARY_", "INPLACE") and name not in ("BINARY_SUBSCR", "BINARY_SLICE"))
    }


def widened(x: Any) -> Any:
    """x with 16-bit floats as float32, also in a list or tuple."""
    if isinstance(x, Handle):
        return x.float() if x._dtype in HALVES else x  # type: ignore[attr-defined]
    if type(x) in (list, tuple):
        return type(x)(widened(item) for item in x)
    return x


def is_composite(function: Any) -> bool:
    """Whether a gradient function uses more than one operation, directly or in a function that it calls."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "row"):  # a function of ops/op.py, which is one kernel
        return False
    calls = [op for op in code.co_code[::2] if op in _operations()]
    if len(calls) != 1:
        return len(calls) > 1
    called = function.__globals__.get(code.co_names[0]) if code.co_names else None
    return type(called) is FunctionType and is_composite(called)


def _by_rule(function: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient function that computes in float32 and rounds the result if it is composite."""
    if not is_composite(function):
        return function
    wide = _kept_wide(function)

    def rounded(g: Any, *values: Any) -> Any:
        out = wide(g.float(), *values)
        if isinstance(out, (tuple, list)):
            return tuple([x if x is None else x.to(g.dtype) for x in out])
        return out if out is None else out.to(g.dtype)

    return rounded


def _kept_wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient function that computes in float32 from the saved values."""
    return lambda g, *values: function(g, *map(widened, values))


def propagate(node: Any, g: Any, *needed: Any) -> Any:
    """node.propagate(g, *needed), wrapped if g is a 16-bit float. If the node broadcast, its gradients stay in float32
    until unbroadcast() has summed them."""
    if getattr(g, "_dtype", -1) not in HALVES:
        return node.propagate(g, *needed)
    in_float32 = _propagate_by(_by_rule if node.metas is None else _kept_wide, type(node))
    if in_float32 is None:
        return node.propagate(g, *needed)
    if node.metas is None:
        return in_float32(node, g, *needed)
    grads = in_float32(node, g.float(), *needed)
    return [x if x is None or meta is not None else x.to(g.dtype) for x, meta in zip(grads, node.metas)]  # of as many


_propagate_by: Any = functools.cache(propagate_by)
