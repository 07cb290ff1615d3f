"""Helpers of composed operations: arguments read once, sequences of tensors, errors that name the operation, names of
functions made at run time. _operand.py has the helpers of all operations."""

from __future__ import annotations

from collections.abc import Callable

from .._binding.library import lib
from .._package.typing import Any, Tensor, TypeVar, cast
from .._tensor.handle import Handle
from ..autograd.record import gradient_edge
from ..errors import REFUSALS
from ._instead import instead, wraps
from ._operand import RENAMED_ERRORS, as_operand, renamed_error, tensor_of

F = TypeVar("F", bound=Callable[..., Any])


def as_fixed_operand(value: Any, name: str) -> Tensor:
    """as_operand(value) for operations of several calls: an alias at the same place of the graph, which stays as it is
    when another thread sets value.data meanwhile. What returns its argument, views it or writes to it takes
    as_operand()."""
    if not isinstance(value, Handle):
        return as_operand(value, name)
    fixed = lib.norch_alias(value)
    fixed._node = value._node if value._view is None else gradient_edge(value)
    if (version := value._version_counter) is None:
        version = value._version_counter = [0]
    fixed._version_counter = version
    return fixed


def tensors_of(values: Any, name: str) -> list[Tensor]:
    """A list of the tensors in a sequence; TypeError for other elements."""
    if isinstance(values, Handle) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name}: expected a sequence of tensors, not {type(values).__name__}")
    return [tensor_of(x, name) for x in values]


def as_fixed_tensor(value: Any, name: str) -> Any:
    """as_fixed_operand() of a tensor; TypeError for other arguments."""
    return as_fixed_operand(value if isinstance(value, Handle) else tensor_of(value, name), name)


def as_fixed_tensors(values: Any, name: str) -> list[Any]:
    """as_fixed_operand() of each tensor in a sequence; TypeError for other elements."""
    return [as_fixed_operand(x, name) for x in tensors_of(values, name)]


def rename_errors(function: F) -> F:
    """Makes the errors of a composed function name it."""

    @wraps(function)
    def composed(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except RENAMED_ERRORS as error:
            return instead(
                composed, arguments, named, renamed_error(error, function.__name__, (*arguments, *named.values()))
            )

    return cast(F, composed)


def checked_once(function: F) -> F:
    """rename_errors() of a function that reads each tensor in one call of the library, but its arguments before. What
    that refuses is computed again of tensors that stay as they are, for an error that is about one state of them."""

    @wraps(function)
    def composed(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except REFUSALS:
            try:
                return again(*[fixed(x) for x in arguments], **{key: fixed(x) for key, x in named.items()})
            except TypeError as error:
                return instead(composed, arguments, named, error)
        except RENAMED_ERRORS as error:  # no memory, or a failure of the device: computed again it might pass unseen
            return instead(
                composed, arguments, named, renamed_error(error, function.__name__, (*arguments, *named.values()))
            )

    def fixed(x: Any) -> Any:
        return as_fixed_operand(x, function.__name__) if isinstance(x, Handle) else x

    again = rename_errors(function)
    return cast(F, composed)


def named_function(function: F, name: str, about: str) -> F:
    """A function made by another, with the name and the docstring that it would have if written out."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = about
    return function


def optional_results(*flags: str) -> Callable[[F], F]:
    """Decorates a function whose result has a further tensor for each of these parameters, bools, that is True: type
    checkers read an overload for each case, which docs/stubs.py writes."""

    def decorate(function: F) -> F:
        function.optional_results = flags  # type: ignore[attr-defined]
        return function

    return decorate


def public(names: dict[str, Any], *but: str) -> list[str]:
    """The __all__ of a module of operations: functions made or defined there, but for private and in-place ones."""
    here = names["__name__"]
    shown = [name for name, thing in names.items() if getattr(thing, "__module__", "") == here and name[0] != "_"]
    return [name for name in shown if name[-1] != "_" and name not in but and not isinstance(names[name], type)]
