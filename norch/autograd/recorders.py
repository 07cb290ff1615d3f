"""Copies of record() specialized for frequent operations: products, sequences of tensors, writes (record.py)."""

from __future__ import annotations

from collections.abc import Sequence

from .._package.typing import Any
from .._tensor.handle import meta_of, next_seq
from .derivative import OpNode
from .grad_mode import mode
from .record import gradient_edge

_new = object.__new__


def record_product(node_class: type[OpNode], out: Any, a: Any, b: Any, broadcast: bool = False) -> Any:
    """record() for a product: the gradient of each factor needs the other one."""
    if mode.enabled:
        to_a = a._node if a._view is None else gradient_edge(a)
        to_b = b._node if b._view is None else gradient_edge(b)
        if to_a is not None or to_b is not None:
            node = _new(node_class)
            node.edges = (to_a, to_b)
            node.seq = next_seq()
            node.hooks = None
            node.metas = (meta_of(a), meta_of(b)) if broadcast else None
            node._saved = (a if to_b is not None else None, b if to_a is not None else None)
            out._node = node
    return out


def record_affine(
    node_class: type[OpNode], out: Any, x: Any, weight: Any, bias: Any, others: tuple[Any, ...] = ()
) -> Any:
    """record() for a product of x and weight plus bias (or None). others: saved after x and weight."""
    if mode.enabled:
        to_x = x._node if x._view is None else gradient_edge(x)
        to_weight = weight._node if weight._view is None else gradient_edge(weight)
        to_bias = None if bias is None else gradient_edge(bias)
        if to_x is not None or to_weight is not None or to_bias is not None:
            node = _new(node_class)
            node.edges = (to_x, to_weight, to_bias)
            node.seq = next_seq()
            node.hooks = node.metas = None
            node._saved = (x if to_weight is not None else None, weight if to_x is not None else None) + others
            out._node = node
    return out


def record_sequence(node_class: type[OpNode], out: Any, tensors: Sequence[Any], dim: int) -> Any:
    """record() for a function of a sequence of tensors. Saves their meta tensors and dim; gradients are cast back."""
    if mode.enabled:
        edges = tuple([x._node if x._view is None else gradient_edge(x) for x in tensors])
        if edges.count(None) < len(edges):
            node = _new(node_class)
            node.edges = edges
            node.seq = next_seq()
            node.hooks = None
            node.metas = tuple([meta_of(x) for x in tensors])
            node._saved = (node.metas, dim)
            out._node = node
    return out


def record_write(node_class: type[OpNode], x: Any, values: Any, *saved: Any) -> OpNode | None:
    """The node of a write of values, broadcast, into x or a copy of it; None if no gradient is wanted. It is made
    before the write; finish_write() follows. saved: the values of the layout after values_meta.

    x is None for a view: the ViewWrite node of its base handles the former elements.
    """
    if not mode.enabled:
        return None
    to_x = None if x is None else gradient_edge(x)
    to_values = gradient_edge(values)
    if to_x is None and to_values is None:
        return None
    node = _new(node_class)
    node.edges = (to_x, to_values)
    node.seq = next_seq()
    node.hooks = None
    meta = meta_of(values)
    node.metas = (None, meta)
    node._saved = (meta, *saved)
    return node
