"""What each in-place write asks: whether the tensor may be written to, and what to note afterwards. view_history.py has
the histories of views, and those that a write changes."""

from __future__ import annotations

from .._handle import next_seq
from .._lib import lib
from .._typing import Any
from ..errors import Error
from .grad_mode import mode
from .node import Leaf, Node
from .record import gradient_edge
from .view_history import SEVERED, Constant, rebase_history


def check_writable(x: Any, name: str) -> None:
    """Raises when autograd forbids writing into x: gradients of leaves must belong to the values they were given."""
    try:
        node = x._node
    except AttributeError:
        raise TypeError(f"{name}: expected a tensor, not {type(x).__name__}") from None
    if not mode.enabled:
        return
    if type(node) is Leaf:
        raise Error(f"{name}: a leaf that requires grad cannot be written to; do it under no_grad(), or to a clone()")
    if x._view is SEVERED:
        raise Error(
            f"{name}: a view taken under no_grad(), or an input that a Function returned, cannot be written to where "
            "gradients are recorded; take it again, or detach() it"
        )
    if x._view is not None and type(x._view.base._node) is Leaf:
        raise Error(f"{name}: a view of a leaf that requires grad cannot be written to; do it under no_grad()")
    if x._view is not None and gradient_edge(x) is not None and lib.norch_overlaps_itself(x):
        raise Error(f"{name}: a write to a view with overlapping elements has no defined gradient; write to a clone()")


def finish_write(x: Any, node: Node | None, saves_result: bool = False) -> None:
    """Notes that x was written to, and that (when recording) its new value comes from node.

    saves_result: node keeps what was written, so it counts as made after the write.
    """
    x._bump()
    if saves_result and node is not None:
        node.seq = next_seq()
    if node is not None:
        rebase_history(x, node)
    elif mode.enabled and (former := gradient_edge(x)) is not None:
        rebase_history(x, Constant(former))
