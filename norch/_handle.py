"""The bare tensor: one pointer to a C struct, and what autograd knows about it.

``Tensor`` (tensor.py) is this class with the operations mixed in. The operations make results through
``wrap`` without knowing that class, so that imports run one way only.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

from ._lib import lib, raise_error

if TYPE_CHECKING:
    from .autograd.node import Node
    from .tensor import Tensor


class Handle:
    """Owns one reference to a C tensor and gives it back when it dies.

    _h      address of the C struct
    _node   where gradients go: the node that made this tensor, a Leaf for one that collects a gradient, or None
    grad    the gradient collected so far (leaves, and others after retain_grad())
    _cell   [time of the last in-place write], shared by all tensors over one storage; None until needed
    _view   for a view, its base and how it was taken (autograd/inplace.py)
    _owner  another Handle that owns _h, when this one does not
    """

    __slots__ = ("__weakref__", "_cell", "_h", "_node", "_owner", "_view", "grad")

    _h: int
    _node: Node | None
    grad: Any
    _cell: list[int] | None
    _view: Any
    _owner: Handle | None

    def __del__(self, release: Any = lib.norch_release) -> None:
        if self._owner is None:
            release(self._h)

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


def wrap(h: int | None) -> Tensor:
    """A Tensor that owns the C tensor h, outside any graph; raises the library's error when h is NULL."""
    if not h:
        raise_error()
    out = _new(result_class)
    out._h = h
    out._node = out.grad = out._cell = out._view = out._owner = None
    return out


weakly = weakref.ref


def cell_of(x: Any) -> list[int]:
    """The cell that all tensors over the storage of x share, made when first asked for."""
    cell = x._cell
    if cell is None:
        cell = x._cell = [0]
    return cell


def alias(x: Any) -> Tensor:
    """Another Tensor over the very C tensor of x, outside any graph but sharing its time of writing."""
    out = wrap(lib.norch_retain(x._h))
    out._cell = cell_of(x)
    return out


def bare_twin(x: Any) -> Tensor:
    """An alias that takes over the C tensor of x, which x then only borrows: what a node saves of its own result.

    The twin knows no graph, so a node that holds it is in no cycle; and no call into C is made.
    """
    if x._owner is not None:
        return alias(x)
    twin = _new(result_class)
    twin._h = x._h
    twin._node = twin.grad = twin._view = twin._owner = None
    twin._cell = cell_of(x)
    x._owner = twin
    return twin


def replace(x: Any, h: int) -> None:
    """Lets x see the C tensor h (a reference that it takes over) instead of its own."""
    old, owned = x._h, x._owner is None
    x._h, x._owner = h, None
    x._cell = x._view = None
    if owned:
        lib.norch_release(old)
