"""The rule for float16 and bfloat16: what is composed of several operations is computed in float32 and rounded once.

A function of operations is declared with @composed, and @method(composed=True) for methods: whatever it calls sees
float32. The kernels of single operations widen inside, and need no declaration. Gradients follow the same rule:
autograd/derivative.py applies it to gradient functions of more than one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .._binding.library import constants
from .._package.typing import Any, TypeVar, overload
from .._tensor.handle import Handle
from ..autograd.grad_mode import mode
from ..autograd.halves import HALVES, widened
from ._autocast import in_autocast, policy
from ._instead import instead, wraps
from ._operand import RENAMED_ERRORS, renamed_error

F = TypeVar("F", bound=Callable[..., Any])

_WIDE = tuple(constants[name] for name in ("FLOAT32", "FLOAT64"))


@overload
def composed(function: F) -> F: ...
@overload
def composed(function: None = ..., *, mixed: bool = ..., autocast: str = ...) -> Callable[[F], F]: ...
def composed(function: Any = None, *, mixed: bool = False, autocast: str = "") -> Any:
    """rename_errors() of a function that computes: of halves in float32, rounded once. mixed: also beside other
    floats, by which halves are otherwise promoted, or refused."""
    if function is None:
        return partial(composed, mixed=mixed, autocast=autocast)

    @wraps(function)
    def once(*arguments: Any, **named: Any) -> Any:
        if mode.casting and autocast and (out := in_autocast(once, *arguments, **named)) is not None:
            return out
        try:
            if (arguments and getattr(arguments[0], "_dtype", -1) in _WIDE) or (
                kind := _halves_among((*arguments, *named.values()), mixed)
            ) is None:
                return function(*arguments, **named)
            out = function(*map(widened, arguments), **{name: widened(x) for name, x in named.items()})
            return _rounded(out, kind, (*arguments, *named.values()))
        except RENAMED_ERRORS as error:
            return instead(
                once, arguments, named, renamed_error(error, function.__name__, (*arguments, *named.values()))
            )

    return policy(autocast)(once)


def _halves_among(values: tuple[Any, ...], mixed: bool) -> Any:
    """The dtype of the halves among the values, and in sequences of them; None if there are none, or if there are
    floats of several dtypes (mixed: the first one's)."""
    kind: Any = None
    for x in values:
        for one in x if type(x) in (list, tuple) else (x,):
            if not isinstance(one, Handle) or not (one.dtype.is_floating_point or one.dtype.is_complex):
                continue
            if kind is None:
                kind = one.dtype
            elif one.dtype is not kind and not mixed:
                return None
    return kind if kind is not None and kind.code in HALVES else None


def _rounded(out: Any, kind: Any, given: tuple[Any, ...]) -> Any:
    """The results of float32 in the dtype of the halves; all as they are where the call names a dtype."""
    if any(type(x) is type(kind) for x in given):
        return out
    if isinstance(out, Handle):
        return out.to(kind) if out._dtype == _WIDE[0] else out  # type: ignore[attr-defined]
    if isinstance(out, tuple):
        parts = [_rounded(x, kind, ()) for x in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    return [_rounded(x, kind, ()) for x in out] if isinstance(out, list) else out
