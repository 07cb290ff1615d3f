"""Hooks on the gradients of nodes, on modules and on optimizers; and the handles that remove them."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from .._handle import Handle
from .._typing import Any
from ..errors import DeviceError, ShapeError
from .node import Leaf, Node, reachable


class RemovableHandle:
    """Returned by register_..._hook(). remove(), or leaving a `with` block, removes the hook."""

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[], None]):
        self._take: Callable[[], None] | None = take

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        take, self._take = self._take, None
        if take is not None:
            take()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def add_hook(hooks: dict[int, Any], hook: Any, first: bool = False) -> RemovableHandle:
    """Adds a hook to those of a module or an optimizer, which are called in order; first: in front of the others."""
    key = max(hooks, default=-1) + 1
    others = dict(hooks) if first else {}
    for one in others:
        del hooks[one]
    hooks[key] = hook
    hooks.update(others)
    return RemovableHandle(lambda: hooks.pop(key, None))


def add_node_hook(node: Node, hook: Any) -> RemovableHandle:
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


class PostAccumulateHook:
    """A hook of a Leaf that is called with the tensor after its .grad was updated, not with the gradient."""

    def __init__(self, hook: Callable[[Any], None]):
        self.hook = hook

    def __call__(self, g: Any) -> None:
        pass


class RetainGradHook:
    """The hook of retain_grad(): adds the gradient to .grad of a tensor that is no leaf."""

    def __init__(self, tensor: Any):
        self.tensor = weakref.ref(tensor)

    def __call__(self, g: Any) -> None:
        tensor = self.tensor()
        if tensor is not None:
            add_to_grad(tensor, g)


def retaining(hooks: list[Any] | None, tensor: Any) -> list[Any]:
    """Those of the hooks that retain_grad() of this tensor added."""
    return [hook for hook in hooks or () if isinstance(hook, RetainGradHook) and hook.tensor() is tensor]


def add_to_grad(tensor: Any, g: Any) -> None:
    """Adds g to .grad of a tensor that is no leaf; the memory of g, which others may see, stays apart."""
    tensor._grad = g.clone() if tensor._grad is None else tensor._grad + g


# ---- for the engine ----------------------------------------------------------------------------------------------


def call_hooks(hooks: list[Any], g: Any) -> Any:
    """g after all hooks; each gets the result of the one before."""
    for hook in tuple(hooks):
        changed = hook(g)
        if changed is not None and changed is not g:
            check_gradient(changed, g, "hook")
            g = changed.to(g)
    return g


def count_dependencies(starts: list[Any], gradients: dict[Node, Any]) -> dict[Leaf, int]:
    """How many gradients each leaf with hooks waits for: the edges to it from the nodes still to be visited, which
    starts lead to. Leaves that have a waiting gradient are left out."""
    counts: dict[Leaf, int] = {}
    for node in reachable(starts):
        for edge in node.edges:
            if type(edge) is Leaf and edge.hooks is not None and edge not in gradients:
                counts[edge] = counts.get(edge, 0) + 1
    return counts


def call_post_accumulate_hooks(leaf: Leaf) -> None:
    """Calls the hooks of a leaf that follow the update of its .grad."""
    tensor = leaf.tensor()
    for hook in tuple(leaf.hooks or ()):
        if type(hook) is PostAccumulateHook and tensor is not None:
            hook.hook(tensor)


def check_gradient(gradient: Any, of: Any, name: str) -> None:
    """Raises an exception unless gradient is a tensor of the shape and on the device of `of`."""
    if not isinstance(gradient, Handle):
        raise TypeError(f"{name}: a gradient is a tensor, not {type(gradient).__name__}")
    shape, wanted = tuple(gradient.shape), tuple(of.shape)
    if shape != wanted:
        raise ShapeError(f"{name}: a gradient of shape {shape} for a tensor of shape {wanted}")
    elsewhere = gradient._device_type != of._device_type or gradient._device_index != of._device_index
    if elsewhere and shape:  # a single number is moved
        raise DeviceError(f"{name}: a gradient on {gradient.device} for a tensor on {of.device}")
