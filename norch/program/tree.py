"""Nested lists, tuples and dicts as their leaves, in order, and a description of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

LEAF = object()  # in a description: the next leaf
_VALUE = object()  # and: what follows, itself


def flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The description of tree, whose leaves are appended to leaves. What is no leaf is part of the description."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return (kind, tuple([flatten(part, leaves, is_leaf) for part in tree]))
    if kind is dict:
        return (kind, tuple(tree), tuple([flatten(part, leaves, is_leaf) for part in tree.values()]))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):  # a named tuple
        return (kind, tuple([flatten(part, leaves, is_leaf) for part in tree]))
    if is_leaf is not None and not is_leaf(tree):
        return (_VALUE, tree)
    leaves.append(tree)
    return LEAF


def rebuild(description: Any, leaves: Iterator[Any]) -> Any:
    """The tree of a description and its leaves."""
    if description is LEAF:
        return next(leaves)
    kind, *rest = description
    if kind is _VALUE:
        return rest[0]
    if kind is dict:
        keys, parts = rest
        return dict(zip(keys, [rebuild(part, leaves) for part in parts], strict=True))
    parts = [rebuild(part, leaves) for part in rest[0]]
    return kind(parts) if kind in (tuple, list) else kind(*parts)
