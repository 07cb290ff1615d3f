"""The bare tensor: one C tensor, and what autograd knows about it.

``Tensor`` (tensor.py) is this class with the operations mixed in. The operations make results through
``wrap`` without knowing that class, so that imports run one way only.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .autograd.node import Node
    from .tensor import Tensor


class Handle:
    """A tensor of C, and what autograd knows about it.

    _h      the C tensor, a Python object that frees itself (csrc/core/python.h)
    _node   where gradients go: the node that made this tensor, a Leaf for one that collects a gradient, or None
    grad    the gradient collected so far (leaves, and others after retain_grad())
    _cell   [time of the last in-place write], shared by all tensors over one storage; None until needed
    _view   for a view, its base and how it was taken (autograd/inplace.py)
    """

    __slots__ = ("__weakref__", "_cell", "_h", "_node", "_view", "grad")

    _h: Any
    _node: Node | None
    grad: Any
    _cell: list[int] | None
    _view: Any

    def _bump(self) -> None:
        """Notes an in-place write done behind autograd's back, by a C call or through shared memory."""
        cell = self._cell
        if cell is None:
            self._cell = [tick()]
        else:
            cell[0] = tick()


# Counts nodes and in-place writes on one scale: "written after this node was made" is then a comparison.
tick = itertools.count(1).__next__

# The class of results; tensor.py puts Tensor here.
result_class: Any = Handle
_new = object.__new__


def wrap(h: Any) -> Tensor:
    """A Tensor over the C tensor h, outside any graph."""
    out = _new(result_class)
    out._h = h
    out._node = out.grad = out._cell = out._view = None
    return out


weakly = weakref.ref


def cell_of(x: Any) -> list[int]:
    """The cell that all tensors over the storage of x share, made when first asked for."""
    cell = x._cell
    if cell is None:
        cell = x._cell = [0]
    return cell


def alias(x: Any) -> Tensor:
    """Another Tensor over the very C tensor of x, outside any graph but sharing its time of writing.

    It is what a node saves of its own result: the result itself, with its place in the graph, would be a cycle.
    """
    out = _new(result_class)
    out._h = x._h
    out._node = out.grad = out._view = None
    out._cell = cell_of(x)
    return out
