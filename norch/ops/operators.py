"""Tensor's operators (`a + b`, `2 * a`, `a -= b`), made from the functions of rows."""

from __future__ import annotations

from collections.abc import Callable

from .._package.typing import Any, Tensor
from ._arguments import named_function
from ._inplace_methods import inplace_form
from ._operand import operand
from ._rows import binary
from .op import METHODS

Function = Callable[..., Any]


def operators(**functions: Function) -> None:
    """Declares Tensor's operators: add=function gives __add__, __radd__ and __iadd__ (keywords: and_=)."""
    for key, function in functions.items():
        name = key.rstrip("_")
        METHODS[f"__{name}__"] = operator(function)
        METHODS[f"__r{name}__"] = _reflected(function)
        METHODS[f"__i{name}__"] = inplace_form(function, is_operator=True)


def operator(function: Function) -> Function:
    """A binary row as an operator, which returns NotImplemented for other operands than tensors, numbers and arrays."""
    _, row, node_class = function.row  # type: ignore[attr-defined]
    as_operator = binary(row, node_class, is_operator=True)
    as_operator.__annotations__["return"] = "Tensor"
    return named_function(as_operator, function.__name__, function.__doc__ or "")


def _reflected(function: Function) -> Function:
    def swapped(self: Tensor, other: Any) -> Tensor:
        other = operand(other, function.__name__)
        return NotImplemented if other is NotImplemented else function(other, self)

    return swapped
