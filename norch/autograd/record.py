"""record(): adds the node of a computed operation to the graph. Its class comes from derivative() (derivative.py).

csrc/python/node.c makes the nodes. differentiable.py declares whole operations with record(); functions of rows of
csrc/ops.def record in the call itself (ops/_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._binding.library import lib
from .._package.typing import Any
from .._tensor.handle import meta_of
from .derivative import OpNode
from .grad_mode import mode
from .node import Node
from .saved import history_of_result
from .view_history import SEVERED, UNRECORDED, refresh, view_of

# gradient_edge(x): the node that receives the gradient of x, or None. It first renews a view whose base was written to.
# Hot paths read x._node directly if x is no view.
lib.norch_bind_views(refresh, view_of, SEVERED, UNRECORDED, history_of_result)
gradient_edge: Callable[[Any], Node | None] = lib.norch_gradient_edge

# record(node_class, out, inputs, others=(), broadcast=False): out, computed from inputs (a tuple of tensors or None),
# with a node if a gradient is wanted.
#   others     the values of the gradient functions' other parameters, in the order of node_class.save_plan.others
#   broadcast  the inputs were broadcast or promoted, so the engine sums and casts their gradients back
record: Callable[..., Any] = lib.norch_record

# is_recorded(inputs): whether this thread records, and one of inputs (tensors or None) has a gradient edge.
is_recorded: Callable[[tuple[Any, ...]], bool] = lib.norch_is_recorded

# record_view(node_class, out, x, view_fn, arguments, is_view=True): out, the view view_fn(x, *arguments), with
# its node, whose others are view_fn and arguments. is_view: whether out shares the elements of x.
record_view: Callable[..., Any] = lib.norch_record_view


def record_sequence(node_class: type[OpNode], out: Any, tensors: Sequence[Any], dim: int) -> Any:
    """record() for a function of a sequence of tensors. Saves their meta tensors and dim; the gradients are cast
    back."""
    if not mode.enabled:
        return out
    for x in tensors:
        if x._view is not None or x._node is not None:
            break
    else:  # no history
        return out
    edges = tuple([x._node if x._view is None else gradient_edge(x) for x in tensors])
    if edges.count(None) < len(edges):
        metas = tuple(map(meta_of, tensors))
        out._node = lib.norch_node_of(node_class, edges, metas, (metas, dim))
    return out


def record_write(node_class: type[OpNode], x: Any, values: Any, *others: Any) -> OpNode | None:
    """The node of a write of values, broadcast, to x or a copy of it; None if no gradient is wanted. It is made before
    the write; finish_write() follows. others: as in record().

    x is None for a view: the ViewWrite node of its base handles the former elements.
    """
    if not is_recorded((x, values)):
        return None
    return record(node_class, lib.norch_meta(values), (x, values), others, True)._node
