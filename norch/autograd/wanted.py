"""Walks to some tensors only: the nodes of those whose gradients were asked for, and which nodes lead to them."""

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
    """The nodes from which a wanted one can be reached; each is older than its users, so age is the order. past:
    whether to search behind wanted ones too."""
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
    useful: set[Node] = set()
    for node in sorted(seen, key=lambda node: node.seq):
        if node in wanted or any(edge in useful for edge in node.edges):
            useful.add(node)
    return useful
