"""record(): adds the node of a computed operation to the graph. Its class comes from derivative() (derivative.py).

differentiable.py declares whole operations with it. Frequent operations use specialized copies instead: record_one()
and record_view() below, recorders.py, and ops/_rows.py for rows of csrc/ops.def.
"""

from __future__ import annotations

from .._package.typing import Any
from .._tensor.handle import alias, meta_of, next_seq
from .derivative import OpNode
from .grad_mode import mode
from .node import Node
from .view_history import SEVERED, UNRECORDED, refresh, view_of

_new = object.__new__


def record(
    node_class: type[OpNode], out: Any, inputs: tuple[Any, ...], others: tuple[Any, ...] = (), broadcast: bool = False
) -> Any:
    """Returns out, computed from inputs (tensors, or None), with a node if a gradient is wanted.

    others: the values of the gradient functions' other parameters, in the order of node_class.save_plan.others.
    broadcast: the inputs were broadcast or promoted, so the engine sums and casts their gradients back.
    """
    if mode.enabled:
        edges, wanted = edges_of(inputs)
        if wanted:
            out._node = make_node(node_class, inputs, edges, wanted, broadcast, others, out)
    return out


def gradient_edge(x: Any) -> Node | None:
    """The node that the gradient of x goes to, or None. A view whose base was written to is first taken again. Hot
    paths read x._node directly if x is no view."""
    view = x._view
    if view is not None and view.base._node is not view.node:
        refresh(x)
    return x._node


def edges_of(inputs: tuple[Any, ...]) -> tuple[list[Any], int]:
    """The gradient edges of inputs, and a bit mask of those that are not None; the first input has the highest bit."""
    for x in inputs:
        if x is not None and (x._node if x._view is None else gradient_edge(x)) is not None:
            break
    else:
        return [], 0
    edges = []
    wanted = 0
    for x in inputs:
        to = None if x is None else x._node if x._view is None else gradient_edge(x)
        edges.append(to)
        wanted += wanted + (to is not None)
    return edges, wanted


def make_node(
    node_class: type[OpNode],
    inputs: tuple[Any, ...],
    edges: list[Any],
    wanted: int,
    broadcast: bool,
    others: tuple[Any, ...],
    out: Any = None,
) -> OpNode:
    """A node that saves what the wanted gradients need. others: the values of save_plan.others."""
    node = _new(node_class)
    node.edges = tuple(edges)
    node.seq = next_seq()
    node.hooks = None
    node.metas = tuple([None if x is None else meta_of(x) for x in inputs]) if broadcast else None
    plan = node_class.save_plan
    pick, of_out, of_metas = plan.selections.get(wanted) or plan.select(wanted)
    if pick is None:
        node._saved = inputs + others
        return node
    values = [None, *inputs, *others]
    if of_out:
        values.append(alias(out))
    for i in of_metas:
        values.append(None if inputs[i] is None else meta_of(inputs[i]))
    node._saved = pick(values)
    return node


# ---- one input, and views --------------------------------------------------------------------------------------------


def record_one(node_class: type[OpNode], out: Any, x: Any, *saved: Any, casts: bool = False) -> Any:
    """record() for frequent operations in which x alone has a gradient. saved: the values of the layout after x_meta
    and out. casts: the gradient is cast back to the dtype and the device of x."""
    if mode.enabled:
        to_x = x._node if x._view is None else gradient_edge(x)
        if to_x is not None:
            node = _new(node_class)
            node.edges = (to_x,)
            node.seq = next_seq()
            node.hooks = None
            node.metas = (meta_of(x),) if casts else None
            plan = node_class.save_plan
            if plan.out:
                saved = (alias(out), *saved)
            node._saved = (meta_of(x), *saved) if plan.x_meta else saved
            out._node = node
    return out


def record_view(
    node_class: type[OpNode], out: Any, x: Any, step: Any, arguments: tuple[Any, ...], is_view: bool = True
) -> Any:
    """Returns out, the view step(x, *arguments), with its node, which saves x_meta, step and arguments. is_view:
    whether out shares the elements of x."""
    if is_view:
        version = x._version_counter
        if version is None:
            version = x._version_counter = [0]
        out._version_counter = version
    if mode.enabled:
        to_x = x._node if x._view is None else gradient_edge(x)
        if to_x is not None:
            node = _new(node_class)
            node.edges = (to_x,)
            node.seq = next_seq()
            node.hooks = node.metas = None
            node._saved = (meta_of(x), step, arguments)
            out._node = node
        if is_view:
            out._view = view_of(x, step, arguments)
    elif is_view:
        through = x._view
        severed = through is SEVERED or (x._node if through is None else gradient_edge(x)) is not None
        out._view = SEVERED if severed else UNRECORDED
    return out
