"""Hooks: functions that are called on the way, with a gradient that arrives at a node, or around a module or an
optimizer; and the handles that take them away again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from .._typing import Any
from .node import Node


class RemovableHandle:
    """Given by register_..._hook: remove(), or leaving a `with` block, takes the hook away."""

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[], None]):
        self._take: Callable[[], None] | None = take

    def remove(self) -> None:
        """Takes the hook away; a second time does nothing."""
        take, self._take = self._take, None
        if take is not None:
            take()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def hook_into(hooks: dict[int, Any], hook: Any, first: bool = False) -> RemovableHandle:
    """Adds a hook to those of a module or an optimizer, which are called in their order; first: in front."""
    key = max(hooks, default=-1) + 1
    others = dict(hooks) if first else {}
    for one in others:
        del hooks[one]
    hooks[key] = hook
    hooks.update(others)
    return RemovableHandle(lambda: hooks.pop(key, None))


def hook_onto(node: Node, hook: Any) -> RemovableHandle:
    """Adds a hook to those of node. The handle keeps no graph alive."""
    node.hooks = [*(node.hooks or ()), hook]
    known = weakref.ref(node)

    def take() -> None:
        node = known()
        hooks = [] if node is None else list(node.hooks or ())
        at = next((i for i, one in enumerate(hooks) if one is hook), None)
        if node is not None and at is not None:
            node.hooks = [*hooks[:at], *hooks[at + 1 :]] or None

    return RemovableHandle(take)


class Accumulated:
    """Among the hooks of a Leaf, one that is to see not the gradient that arrives but the tensor whose .grad has it."""

    def __init__(self, hook: Callable[[Any], None]):
        self.hook = hook

    def __call__(self, g: Any) -> None:
        pass


class Keep:
    """Among the hooks of a node, that of retain_grad(): leaves the gradient in .grad of a tensor."""

    def __init__(self, tensor: Any):
        self.tensor = weakref.ref(tensor)

    def __call__(self, g: Any) -> None:
        tensor = self.tensor()
        if tensor is not None:
            tensor._grad = g if tensor._grad is None else tensor._grad + g
