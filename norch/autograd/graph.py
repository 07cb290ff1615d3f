"""What PyTorch's ``autograd.graph`` has of the graph itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._handle import Handle
from .._left_out import nothing_more
from .node import Node

__all__ = ["Node", "increment_version"]
__dir__ = __all__.copy  # completion shows the public names only


def increment_version(tensor: Any | Iterable[Any]) -> None:
    """Notes that the elements of a tensor, or of several, were written to by somebody whom autograd does not see.

    >>> x = norch.ones(2)
    >>> norch.autograd.graph.increment_version(x)
    """
    for x in [tensor] if isinstance(tensor, Handle) else tensor:
        x._bump()


__getattr__ = nothing_more(__name__)
