"""In-place writes: the check before one, and its recording after it. view_history.py has the histories of views."""

from __future__ import annotations

from .._binding.library import lib
from .._package.typing import Any, cast
from .._tensor.handle import Handle, next_seq
from ..errors import Error
from .grad_mode import mode
from .node import Leaf, Node
from .outlive import copy_saved, outliving
from .record import gradient_edge
from .saved import note_view
from .view_history import SEVERED, UNRECORDED, Constant, is_moved, rebase_history, settle


def check_writable(x: Any, name: str, value: Any = None) -> None:
    """Raises Error if autograd forbids writing to x, for example to a leaf that requires grad. value: the tensor to be
    written, if it may require grad."""
    try:
        node, view = x._node, x._view
    except AttributeError:
        raise TypeError(f"{name}: expected a tensor, not {type(x).__name__}") from None
    if outliving and id(counter := x._version_counter) in outliving:
        copy_saved(counter)
    if not mode.enabled:
        return
    if type(node) is Leaf:
        raise Error(f"{name}: a leaf that requires grad cannot be written to; do it under no_grad(), or to a clone()")
    if view is None:
        return
    if view is SEVERED:
        raise Error(
            f"{name}: a view taken under no_grad(), or an input that a Function returned, cannot be written to where "
            "gradients are recorded; take it again, or detach() it"
        )
    of_value = isinstance(value, Handle) and gradient_edge(value) is not None
    if view is UNRECORDED and node is None and of_value:
        raise Error(
            f"{name}: a value that requires grad cannot be written to a view taken under no_grad(), as its base would "
            "not get the gradient; take the view again, or clone() it"
        )
    recorded = view is not UNRECORDED
    # A view whose base has no history can require grad through a view in between that later became a leaf.
    below = node is not None and recorded and view.base._node is None and gradient_edge(x) is not None
    if below or type(view.base._node) is Leaf:
        raise Error(f"{name}: a view of a leaf that requires grad cannot be written to; do it under no_grad()")
    if recorded and is_moved(x):
        settle(x)
    wanted = gradient_edge(x) is not None or of_value
    if wanted and (lib.norch_overlaps_itself(x) or (recorded and lib.norch_overlaps_itself(view.base))):
        raise Error(f"{name}: a write to a view with overlapping elements has no defined gradient; write to a clone()")


def finish_write(x: Any, node: Node | None, saves_result: bool = False) -> None:
    """Updates the version counter of x after a write and, while recording, makes node its history.

    saves_result: node saved the written value, so it is numbered after the write.
    """
    lib.norch_bump(x)
    if node is not None:
        if saves_result:
            node.seq = next_seq()
        rebase_history(x, node)
        if saves_result and x._node is not node:
            note_view(node, cast(Node, gradient_edge(x)))
    elif mode.enabled and (former := gradient_edge(x)) is not None:
        rebase_history(x, Constant(former))
