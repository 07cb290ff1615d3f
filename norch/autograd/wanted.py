"""For walks to some tensors only: their nodes, and the nodes that lead to them."""

from __future__ import annotations

from .._typing import Any
from ..errors import Error
from .node import Node
from .record import gradient_edge


def nodes_of(inputs: list[Any]) -> dict[Node, int]:
    wanted: dict[Node, int] = {}
    for x in inputs:
        node = gradient_edge(x)
        if node is None:
            raise Error("grad: one of the inputs does not require grad")
        wanted.setdefault(node, len(wanted))
    return wanted


def leading_to(wanted: dict[Node, int], roots: list[Node], past: bool) -> set[Node]:
    """The nodes from which a wanted node can be reached, the wanted ones included. past: whether to search behind
    wanted nodes too."""
    seen = set(roots)
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node in wanted and not past:
            continue
        for edge in node.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                todo.append(edge)
    found: set[Node] = set()
    for node in sorted(seen, key=lambda node: node.seq):  # inputs first: they are older than their users
        if node in wanted or any(edge in found for edge in node.edges):
            found.add(node)
    return found
