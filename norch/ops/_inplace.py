"""Shim, until all pages declare their methods."""

from typing import Any

from ._operand import kernel_operand
from .op import inplace_form, inplace_view

turned_ = inplace_view


def in_place(*functions: Any, accept: Any = kernel_operand) -> Any:
    """The in-place forms."""
    return [inplace_form(f, accept) for f in functions]
