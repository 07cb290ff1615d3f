"""The rule for float16 and bfloat16: an operation that is composed of several others computes in float32 and rounds
once.

A composed function is declared with @composed (_entry.py), and @method(composed=True) for methods: everything that it
calls sees float32. The kernels of single operations widen inside, and need no declaration. Gradients follow the same
rule: autograd/derivative.py applies it to gradient functions of more than one operation.
"""

from __future__ import annotations

from .._binding.library import constants
from .._package.typing import Any
from .._tensor.handle import Handle
from ..autograd.halves import HALVES, widened

WIDE = tuple(constants[name] for name in ("FLOAT32", "FLOAT64"))


def rounded_once(function: Any, arguments: tuple[Any, ...], named: dict[str, Any], mixed: bool) -> Any:
    """Calls function. If there are halves among the arguments, it computes in float32, and the results are rounded
    once.
    """
    values = (*arguments, *named.values())
    kind = _halves_among(values, mixed)
    if kind is None:
        return function(*arguments, **named)
    return _rounded(function(*map(widened, arguments), **{name: widened(x) for name, x in named.items()}), kind, values)


def _halves_among(values: tuple[Any, ...], mixed: bool) -> Any:
    """The dtype of the halves among the values, and in sequences of them. None if there are no halves, or if there are
    floats of several dtypes; with mixed, then the dtype of the first half.
    """
    kind: Any = None
    for x in values:
        for item in x if type(x) in (list, tuple) else (x,):
            if not isinstance(item, Handle) or not (item.dtype.is_floating_point or item.dtype.is_complex):
                continue
            if kind is None:
                kind = item.dtype
            elif item.dtype is not kind and not mixed:
                return None
    return kind if kind is not None and kind.code in HALVES else None


def _rounded(out: Any, kind: Any, values: tuple[Any, ...]) -> Any:
    """The results of float32 in the dtype of the halves. They are unchanged where the call names a dtype."""
    if any(type(x) is type(kind) for x in values):
        return out
    if isinstance(out, Handle):
        return out.to(kind) if out._dtype == WIDE[0] else out  # type: ignore[attr-defined]
    if isinstance(out, tuple):
        parts = [_rounded(x, kind, ()) for x in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    return [_rounded(x, kind, ()) for x in out] if isinstance(out, list) else out
