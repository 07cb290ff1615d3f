"""Splits nested lists, tuples and dicts into their leaves, in order, and a description of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._tensor.handle import Device, DType, Handle, Size
from .fields import is_a

LEAF = object()  # in a description: the next leaf
_VALUE = object()  # in a description: the value that follows


def flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The description of tree: its structure and all values except the leaves, which are appended to leaves."""
    kind = type(tree)
    if kind is dict:
        types = () if all(type(key) is str for key in tree) else tuple(map(type, tree))  # 1, 1.0 and True are equal
        return (kind, tuple(tree), types, tuple([flatten(part, leaves, is_leaf) for part in tree.values()]))
    if kind is tuple or kind is list or (is_a(tree, tuple) and hasattr(tree, "_fields")):  # a named tuple
        return (kind, tuple([flatten(part, leaves, is_leaf) for part in tree]))
    if is_leaf is not None and not is_leaf(tree):
        return (_VALUE, tree)
    leaves.append(tree)
    return LEAF


def constant(value: Any) -> Any:
    """The description of a value without leaves."""
    return (_VALUE, value)


def is_tensor(x: Any) -> bool:
    """Whether a value is a leaf of a result."""
    return is_a(x, Handle)


_PLAIN = (type(None), bool, int, float, str, bytes, Size, Device, DType)


def has_objects(description: Any) -> bool:
    """Whether a description has values other than numbers and strings, which may change like leaves."""
    if description is LEAF:
        return False
    kind, *rest = description
    if kind is _VALUE:
        return not is_a(rest[0], _PLAIN)
    return any(map(has_objects, rest[-1]))


def rebuild(description: Any, leaves: Iterator[Any]) -> Any:
    """The tree for a description and its leaves."""
    if description is LEAF:
        return next(leaves)
    kind, *rest = description
    if kind is _VALUE:
        return rest[0]
    if kind is dict:
        keys, _, parts = rest
        return dict(zip(keys, [rebuild(part, leaves) for part in parts], strict=True))
    parts = [rebuild(part, leaves) for part in rest[0]]
    return kind(parts) if kind in (tuple, list) else kind(*parts)
