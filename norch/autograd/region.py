"""A part of the graph that one node represents: its nodes, and a walk through it alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._package.typing import Any
from .engine import walk
from .node import Node
from .targets import Boundary


def region(outs: Iterable[Node], start: int) -> tuple[set[Node], list[tuple[Node, Node]]]:
    """(the nodes behind outs that were recorded after start; the edges from them to earlier nodes, as pairs, in the
    order in which a walk follows them)."""
    inside: set[Node] = set()
    todo = [node for node in outs if node.seq >= start]
    while todo:
        node = todo.pop()
        if node not in inside:
            inside.add(node)
            todo.extend(input_node for input_node in node.edges if input_node is not None and input_node.seq >= start)
    visited = sorted(inside, key=lambda node: -node.seq)
    return inside, [(node, edge) for node in visited for edge in node.edges if edge is not None and edge.seq < start]


def walk_to(
    frontier: Sequence[Node | None], roots: Iterable[tuple[Node | None, Any]], retain_graph: bool, create_graph: bool
) -> tuple[Any, ...]:
    """The gradients that arrive at the nodes of frontier. Their hooks are left to the outer walk."""
    gradients = _walk(
        Boundary([node for node in frontier if node is not None], has_hooks=False), roots, retain_graph, create_graph
    ).found
    return tuple([None if node is None else gradients[node] for node in frontier])


def walk_apart(
    edges: Sequence[Node],
    roots: Iterable[tuple[Node | None, Any]],
    retain_graph: bool,
    create_graph: bool,
    sources: Sequence[Node | None] | None = None,
) -> tuple[Any, ...]:
    """Like walk_to(), but a node that occurs several times in edges gets its gradients separately, as they arrive, so
    that they are added up in the order of a single walk. If fewer arrive, the others are None; if more, the last is a
    sum. sources: the nodes that the edges come from, if the walk passes through them."""
    places: dict[Node, list[int]] = {}
    for i, node in enumerate(edges):
        places.setdefault(node, []).append(i)
    several = [node for node, at in places.items() if len(at) > 1]
    boundary = _walk(Boundary(places, several, has_hooks=False), roots, retain_graph, create_graph)
    gradients: list[Any] = [None] * len(edges)
    for node, at in places.items():
        free = list(at)
        for source, g in boundary.one_by_one.get(node) or [(None, boundary.found[node])]:
            matching = [i for i in free if sources is not None and sources[i] is source] or free
            if matching:
                gradients[matching[0]] = g
                free.remove(matching[0])
            else:
                gradients[at[-1]] = gradients[at[-1]] + g
    return tuple(gradients)


def _walk(boundary: Boundary, roots: Iterable[tuple[Node | None, Any]], retain: bool, create_graph: bool) -> Boundary:
    walk([(node, g) for node, g in roots if node is not None], retain, create_graph, boundary)
    return boundary
