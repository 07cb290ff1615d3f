"""record(): adds the node of a computed operation to the graph. Its class comes from derivative() (derivative.py).

differentiable.py declares whole operations with it. Frequent operations use specialized copies instead: record_one()
and record_view() below, recorders.py, and ops/_rows.py for rows of csrc/ops.def.
"""

from __future__ import annotations

from operator import itemgetter

from .._handle import alias, meta_of, next_seq
from .._typing import Any
from .derivative import OpNode
from .grad_mode import mode
from .node import Node
from .view_history import SEVERED, refresh, view_of

_new = object.__new__


def record(
    node_class: type[OpNode],
    out: Any,
    inputs: tuple[Any, ...],
    others: tuple[Any, ...] = (),
    broadcast: bool = False,
) -> Any:
    """Returns out, computed from inputs (tensors, or None), with a node if a gradient is wanted.

    others: the values of the gradient functions' other parameters, in the order of node_class.other_names.
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
    """A node that saves what the wanted gradients need. others: the values of node_class.other_names."""
    node = _new(node_class)
    node.edges = tuple(edges)
    node.seq = next_seq()
    node.hooks = None
    node.metas = tuple([None if x is None else meta_of(x) for x in inputs]) if broadcast else None
    plan = node_class.plans.get(wanted)
    if plan is None:
        plan = node_class.plans[wanted] = _plan(node_class, [to is not None for to in edges])
    pick, of_out, of_metas = plan
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


def _plan(node_class: type[OpNode], wanted: list[bool]) -> tuple[Any, bool, list[int]]:
    """How make_node() fills _saved when these gradients are wanted: (pick, of_out, of_metas).

    pick selects from [None, *inputs, *others, the result if of_out, the meta tensors of the inputs of_metas]; None
    means: all inputs and others, as they are.
    """
    needed = {name for want, names in zip(wanted, node_class.saved_for, strict=True) if want for name in names}
    of_out, names = "out" in needed, [*node_class.inputs, *node_class.other_names]
    names += ["out"] if of_out else []
    of_metas = [i for i, name in enumerate(node_class.inputs) if f"{name}_meta" in needed]
    names += [f"{node_class.inputs[i]}_meta" for i in of_metas]
    indices = [names.index(name) + 1 if name in needed else 0 for name in node_class.saved_names]
    if indices == [*range(1, 1 + len(node_class.inputs) + len(node_class.other_names))]:
        return None, False, []
    indices += [0] * (2 - len(indices))  # of fewer, itemgetter gives no tuple
    return itemgetter(*indices), of_out, of_metas


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
            if node_class.saves_out:
                saved = (alias(out), *saved)
            node._saved = (meta_of(x), *saved) if node_class.saves_meta else saved
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
        if through is SEVERED or (x._node if through is None else gradient_edge(x)) is not None:
            out._view = SEVERED
    return out
