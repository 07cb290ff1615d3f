"""What PyTorch's ``autograd.graph`` has of the graph itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._exports import publish
from .._handle import Handle
from .node import Node

__all__ = ["Node", "increment_version"]


def increment_version(tensor: Any | Iterable[Any]) -> None:
    """Notes that the elements of a tensor, or of several, were written to by code that autograd does not see.

    >>> x = norch.ones(2)
    >>> norch.autograd.graph.increment_version(x)
    """
    for x in [tensor] if isinstance(tensor, Handle) else tensor:
        x._bump()


publish(globals())
