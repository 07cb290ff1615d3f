"""Helpers of composed operations: sequences of tensors, errors that name the operation, names of
functions made at run time. _operand.py has the helpers of all operations."""

from __future__ import annotations

from collections.abc import Callable

from .._package.typing import Any, Tensor, TypeVar
from .._tensor.handle import Handle
from ._operand import tensor_of

F = TypeVar("F", bound=Callable[..., Any])


def tensors_of(values: Any, name: str) -> list[Tensor]:
    """A list of the tensors in a sequence; TypeError for other elements."""
    if isinstance(values, Handle) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name}: expected a sequence of tensors, not {type(values).__name__}")
    return [tensor_of(x, name) for x in values]


def named_function(function: F, name: str, about: str) -> F:
    """Makes a function that another function returns look written out: it gets this name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = about
    return function


def optional_results(*flags: str) -> Callable[[F], F]:
    """Decorates a function that returns a further tensor for each of these parameters, bools, that is True.
    release/stubs.py writes an overload of each case for type checkers.
    """

    def decorate(function: F) -> F:
        function.optional_results = flags  # type: ignore[attr-defined]
        return function

    return decorate


def public(names: dict[str, Any], *but: str) -> list[str]:
    """The __all__ of a module of operations: its functions, except private and in-place ones."""
    module = names["__name__"]
    shown = [name for name, value in names.items() if getattr(value, "__module__", "") == module and name[0] != "_"]
    return [name for name in shown if name[-1] != "_" and name not in but and not isinstance(names[name], type)]
