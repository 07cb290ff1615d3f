"""A Linear and the activation right behind it, done by Sequential in one pass: who can, and when nobody would notice.

The marks are on the functions `forward` themselves: a forward of a subclass, or one put in the place of norch's, has
none, and is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .module import Module

F = TypeVar("F", bound=Callable[..., Any])
_CALL = Module.__call__


def can_end(forward: F) -> F:
    """Marks Linear.forward: its product can end in an activation (`ops.matmul.linear_with_epilogue`)."""
    forward.can_end = True  # type: ignore[attr-defined]
    return forward


def ending(function_of: Callable[[Any], Any]) -> Callable[[F], F]:
    """Marks the forward of an activation. function_of(module): the same function as a row of csrc/ops.def, or None."""

    def mark(forward: F) -> F:
        forward.ending = function_of  # type: ignore[attr-defined]
        return forward

    return mark


def ending_of(linear: Module, module: Module) -> Any:
    """The function that linear's product may end in instead of a call of module, or None."""
    function_of = getattr(type(module).forward, "ending", None)
    return function_of(module) if function_of and _is_plain(linear) and _is_plain(module) else None


def _is_plain(module: Module) -> bool:
    """Whether a call of module is its class's forward, and nothing besides."""
    own = module.__dict__
    return type(module).__call__ is _CALL and not (
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
        or "forward" in own
    )
