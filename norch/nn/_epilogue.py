"""The fused epilogue: Sequential computes a Linear and the activation after it in one pass over the product
(`ops.matmul`), if the difference cannot be observed.

`forward` functions carry the marks. A subclass that overrides forward, and a forward assigned from outside, have no
mark and are called as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .module import Module

F = TypeVar("F", bound=Callable[..., Any])
_CALL = Module.__call__


def takes_epilogue(forward: F) -> F:
    """Marks Linear.forward: an activation can be applied as the epilogue of its product."""
    forward.takes_epilogue = True  # type: ignore[attr-defined]
    return forward


def epilogue(operation_of: Callable[[Any], Any]) -> Callable[[F], F]:
    """Marks the forward of an activation. operation_of(module): its operation, a row of csrc/ops.def, or None."""

    def mark(forward: F) -> F:
        forward.epilogue = operation_of  # type: ignore[attr-defined]
        return forward

    return mark


def epilogue_of(linear: Module, module: Module) -> Any:
    """The operation by which the product of `linear` replaces a call of module, or None if module must be called."""
    operation_of = getattr(type(module).forward, "epilogue", None)
    return operation_of(module) if operation_of and _is_plain(linear) and _is_plain(module) else None


def _is_plain(module: Module) -> bool:
    """Whether a call of module runs the forward of its class and nothing else."""
    state = module.__dict__
    return type(module).__call__ is _CALL and not (
        state["_forward_hooks"]
        or state["_forward_pre_hooks"]
        or state["_backward_hooks"]
        or state["_backward_pre_hooks"]
        or "forward" in state
    )
