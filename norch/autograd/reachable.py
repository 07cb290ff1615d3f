"""Which nodes of the graph a walk would visit, without gradients."""

from __future__ import annotations

from collections.abc import Container, Iterable

from .._package.typing import Any
from .node import Leaf, Node


def reachable(roots: Iterable[Node], ends: Container[Node] = ()) -> set[Node]:
    """The nodes that edges lead to from roots, and roots themselves. The edges of ends are not followed."""
    seen = set(roots)
    todo = list(seen)
    while todo:
        node = todo.pop()
        if node not in ends:
            for edge in node.edges:
                if edge is not None and edge not in seen:
                    seen.add(edge)
                    todo.append(edge)
    return seen


def open_all(roots: Iterable[Node]) -> None:
    """Opens the nodes behind roots that stand for others (Node.is_whole)."""
    seen = set(roots)
    todo = list(seen)
    while todo:
        node = todo.pop()
        if node.is_whole:
            node.open()
        for edge in node.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                todo.append(edge)


def count_dependencies(starts: list[Any], gradients: dict[Node, Any]) -> dict[Leaf, int]:
    """How many gradients each leaf with hooks waits for: the edges to it from the nodes still to be visited, which
    starts lead to. Leaves that have a waiting gradient are left out."""
    counts: dict[Leaf, int] = {}
    for node in reachable(starts):
        for edge in node.edges:
            if type(edge) is Leaf and edge.hooks is not None and edge not in gradients:
                counts[edge] = counts.get(edge, 0) + 1
    return counts
