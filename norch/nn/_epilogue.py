"""The fused epilogue: Sequential computes a Linear and the activation after it in one pass over the product
(`ops.matmul`), if the difference cannot be observed.

`forward` functions carry the marks. A subclass that overrides forward, and a forward assigned from outside, have no
mark and are called as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..ops.matmul import linear
from . import _hooks
from . import functional as F
from .module import Module

T = TypeVar("T", bound=Callable[..., Any])
_CALL = Module.__call__
FUNCTIONS: dict[str, Any] = vars(F)  # see _layer.py


def takes_epilogue(forward: T) -> T:
    """Marks Linear.forward: an activation can be applied as the epilogue of its product."""
    forward.takes_epilogue = True  # type: ignore[attr-defined]
    return forward


def epilogue(operation_of: Callable[[Any], Any]) -> Callable[[T], T]:
    """Marks the forward of an activation. operation_of(module): its operation, a row of csrc/ops.def, or None."""

    def mark(forward: T) -> T:
        forward.epilogue = operation_of  # type: ignore[attr-defined]
        return forward

    return mark


def epilogue_of(before: Module, module: Module) -> Any:
    """The operation by which the product of `before`, a Linear, replaces a call of module. None if module must be
    called, for example because it is a subclass, has hooks, or a program has patched its function.
    """
    operation_of = getattr(type(module).forward, "epilogue", None)
    if operation_of and FUNCTIONS["linear"] is linear and _is_plain(before) and _is_plain(module):
        return operation_of(module)
    return None


def _is_plain(module: Module) -> bool:
    """Whether a call of module runs the forward of its class and nothing else."""
    state = module.__dict__
    return type(module).__call__ is _CALL and not (
        state["_forward_hooks"]
        or state["_forward_pre_hooks"]
        or state["_backward_hooks"]
        or state["_backward_pre_hooks"]
        or _hooks.has_global_hooks
        or "forward" in state
    )
