"""The wrapper of a function that is composed of several operations, with the parts that its declaration asks for.

    @rename_errors                  its errors name the function
    @composed                       it also computes 16-bit floats in float32 and rounds once (_halves.py)
    @numpy_names                    it also takes NumPy's names of its arguments, and out=
    @composed(autocast="lower")     it has a policy of autocast (_autocast.py); so can the others

If the function refuses an object that has __torch_function__, the wrapper calls that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .._package.typing import Any, TypeVar, overload
from ..autograd.grad_mode import mode
from ._autocast import in_autocast, policy
from ._halves import WIDE, rounded_once
from ._instead import NUMPY_NAMES, instead, wraps
from ._operand import RENAMED_ERRORS, renamed_error
from ._out import written
from ._public import with_handler

F = TypeVar("F", bound=Callable[..., Any])
_NUMPY_NAMES = {**NUMPY_NAMES, "x": "input"}
_RENAMED = frozenset(("out", *_NUMPY_NAMES))


def entry(
    function: Any,
    *,
    composed: bool = False,
    mixed: bool = False,
    numpy: bool = False,
    autocast: str = "",
    out: bool | None = None,
    name: str = "",
    takes_out: bool = False,
) -> Any:
    """The function that users call.

    mixed      halves are computed in float32 even together with other floats, which otherwise promote or refuse them
    out        whether the public form takes out= (_public.py); by default if it takes NumPy's names
    name       the name in errors, if it is not the function's own
    takes_out  it takes out= itself, as with NumPy's names"""
    named_in_errors = name or function.__name__
    renames = numpy or takes_out

    def refused(entered: Any, arguments: tuple[Any, ...], named: dict[str, Any], error: Exception) -> Any:
        try:
            renamed = renamed_error(error, named_in_errors, (*arguments, *named.values()))
            return instead(entered, arguments, named, renamed)
        finally:
            del error, renamed  # as in instead()

    def with_checks(*arguments: Any, **named: Any) -> Any:
        if named and renames and not _RENAMED.isdisjoint(named):
            if "out" in named and (out := named.pop("out")) is not None:
                return _into(with_checks, arguments, named, out)
            for theirs, ours in _NUMPY_NAMES.items() if numpy else ():
                if theirs in named and ours not in named:
                    named[ours] = named.pop(theirs)
        if autocast and mode.casting and (cast := in_autocast(with_checks, *arguments, **named)) is not None:
            return cast
        try:
            if composed and not (arguments and getattr(arguments[0], "_dtype", -1) in WIDE):
                return rounded_once(function, arguments, named, mixed)
            return function(*arguments, **named)
        except RENAMED_ERRORS as error:
            return refused(with_checks, arguments, named, error)

    checks = composed or renames or autocast
    entered = wraps(function)(with_checks if checks else with_handler(function, RENAMED_ERRORS, refused))
    entered.out = numpy if out is None else out
    entered.remake = remake = partial(  # so that its public form is one call, too
        entry, function, composed=composed, mixed=mixed, numpy=numpy, autocast=autocast, name=name
    )
    remake.of = entered  # type: ignore[attr-defined]
    return policy(autocast)(entered)


def _into(function: Any, arguments: tuple[Any, ...], named: dict[str, Any], out: Any) -> Any:
    try:
        return written(function, arguments, named, out)
    except TypeError as error:
        return instead(function, arguments, {**named, "out": out}, error)


class _Decorator:
    """Makes the entry() of a function, which follows, or options of it and then the function."""

    def __init__(self, **asked: Any):
        self._asked = asked

    @overload
    def __call__(self, function: F) -> F: ...
    @overload
    def __call__(self, function: None = ..., **options: Any) -> Callable[[F], F]: ...
    def __call__(self, function: Any = None, **options: Any) -> Any:
        return partial(self, **options) if function is None else entry(function, **self._asked, **options)


rename_errors: _Decorator = _Decorator()
composed: _Decorator = _Decorator(composed=True)
numpy_names: _Decorator = _Decorator(numpy=True)
