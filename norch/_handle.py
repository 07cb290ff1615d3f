"""The bare tensor: what C and autograd know about it.

``Tensor`` (tensor.py) is this class with the operations mixed in. The calls of the library make its instances without
this package knowing that class, so that imports run one way only.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._lib import TensorBase, lib

if TYPE_CHECKING:
    from .autograd.node import Node
    from .tensor import Tensor


class Handle(TensorBase):
    """A tensor of C, and what autograd knows about it.

    _node   where gradients go: the node that made this tensor, a Leaf for one that collects a gradient, or None
    _grad   the gradient collected so far (leaves, and others after retain_grad())
    _cell   [time of the last in-place write], shared by all tensors over one storage; None until needed
    _view   for a view, its base and how it was taken (autograd/inplace.py)
    """

    __slots__ = ("__weakref__",)

    _node: Node | None

    def _bump(self) -> None:
        """Notes an in-place write done behind autograd's back, by a C call or through shared memory."""
        cell = self._cell
        if cell is None:
            self._cell = [tick()]
        else:
            cell[0] = tick()


# Counts nodes and in-place writes on one scale: "written after this node was made" is then a comparison.
tick = itertools.count(1).__next__


def bump_all(tensors: Iterable[Any]) -> None:
    """Notes that a C call wrote to all of these at once."""
    time = tick()
    for x in tensors:
        cell = x._cell
        if cell is None:
            x._cell = [time]
        else:
            cell[0] = time


# The class of results; tensor.py puts Tensor here and tells the library.
result_class: Any = Handle

weakly = weakref.ref


def cell_of(x: Any) -> list[int]:
    """The cell that all tensors over the storage of x share, made when first asked for."""
    cell = x._cell
    if cell is None:
        cell = x._cell = [0]
    return cell


def alias(x: Any) -> Tensor:
    """Another Tensor over the elements of x, outside any graph but sharing its time of writing.

    It is what a node saves of its own result: the result itself, with its place in the graph, would be a cycle.
    """
    out = lib.norch_alias(x)
    out._cell = cell_of(x)
    return out
