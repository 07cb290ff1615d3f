"""float16 and bfloat16 in functions composed of several steps: computed in float32, rounded once."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .._handle import Handle
from .._lib import constants
from .._typing import Any, TypeVar, cast
from ._operand import RENAMED_ERRORS, renamed_error

F = TypeVar("F", bound=Callable[..., Any])

HALVES = (constants["FLOAT16"], constants["BFLOAT16"])


def rounded_once(function: F, mixed: bool = False) -> F:
    """rename_errors() of a function that computes halves in float32, rounded once; mixed: also beside other floats."""

    @functools.wraps(function)
    def once(*arguments: Any, **named: Any) -> Any:
        first = arguments[0] if arguments else next(iter(named.values()), None)
        try:
            if not isinstance(first, Handle) or first._dtype not in HALVES:
                return function(*arguments, **named)
            kind: Any = first.dtype
            floats = [x for x in (*arguments, *named.values()) if _is_float(x)]
            if not mixed and any(x.dtype is not kind for x in floats):
                return function(*arguments, **named)  # which says what is wrong, or promotes
            out = function(*map(_wide, arguments), **{name: _wide(x) for name, x in named.items()})
        except RENAMED_ERRORS as error:
            raise renamed_error(error, function.__name__, (*arguments, *named.values())) from error.__cause__
        return (out[0].to(kind), *out[1:]) if isinstance(out, tuple) else out.to(kind)

    return cast(F, once)


def _is_float(x: Any) -> bool:
    return isinstance(x, Handle) and x.dtype.is_floating_point


def _wide(x: Any) -> Any:
    return x.float() if _is_float(x) else x
