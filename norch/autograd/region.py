"""A part of the graph that one node represents: its nodes, and a walk through it alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._typing import Any
from . import engine
from .node import Leaf, Node
from .targets import Boundary, without_hooks


def region(outs: Iterable[Node], start: int) -> tuple[set[Node], list[Node]]:
    """(the nodes behind outs that were recorded after start, the earlier nodes that their edges lead to)."""
    inside: set[Node] = set()
    frontier: dict[Node, None] = {}
    todo = list(outs)
    while todo:
        node = todo.pop()
        if node.seq < start:
            frontier[node] = None
        elif node not in inside:
            inside.add(node)
            todo.extend(one for one in node.edges if one is not None)
    return inside, list(frontier)


def walk_to(
    frontier: Sequence[Node | None], roots: Iterable[tuple[Node | None, Any]], retain_graph: bool, create_graph: bool
) -> tuple[Any, ...]:
    """The gradients that arrive at the nodes of frontier. Their hooks are left to the enclosing walk."""
    found = _walk(Boundary(node for node in frontier if node is not None), roots, retain_graph, create_graph).found
    return tuple([None if node is None else found[node] for node in frontier])


def walk_apart(
    frontier: Sequence[Node], roots: Iterable[tuple[Node | None, Any]], retain_graph: bool, create_graph: bool
) -> tuple[list[int], list[Any]]:
    """As walk_to(), but a leaf gets its gradients one by one, so that they are added up in the same order as in a
    single walk. Returns (positions in frontier, the gradients that go there)."""
    leaves = [node for node in frontier if type(node) is Leaf and node.hooks is None]
    boundary = _walk(Boundary(frontier, leaves), roots, retain_graph, create_graph)
    places: list[int] = []
    gradients: list[Any] = []
    for i, node in enumerate(frontier):
        arrived = boundary.one_by_one.get(node) or [boundary.found[node]]
        places += [i] * len(arrived)
        gradients += arrived
    return places, gradients


def _walk(boundary: Boundary, roots: Iterable[tuple[Node | None, Any]], retain: bool, create_graph: bool) -> Boundary:
    with without_hooks(boundary.found):
        engine.walk([(node, g) for node, g in roots if node is not None], retain, create_graph, boundary)
    return boundary
