"""``norch.autograd.graph``: the class Node, version counters and hooks on saved tensors, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.exports import publish
from .._tensor.handle import Handle
from .node import Node
from .saved_hooks import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from .saved_hooks import save_on_cpu as save_on_cpu
from .saved_hooks import saved_tensors_hooks as saved_tensors_hooks

__all__ = [
    "Node", "disable_saved_tensors_hooks", "increment_version", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


def increment_version(tensor: Any | Iterable[Any]) -> None:
    """Tells autograd that code which it does not see wrote to the elements of a tensor, or of an iterable of tensors. A
    node that saved one of them then raises Error in backward().

    >>> x = norch.ones(2)
    >>> norch.autograd.graph.increment_version(x)
    """
    for x in [tensor] if isinstance(tensor, Handle) else tensor:
        x._bump()


publish(globals())
