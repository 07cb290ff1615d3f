"""A part of the graph that one node represents: its nodes, and a walk through it alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._typing import Any
from . import engine
from .node import Leaf, Node


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


def walk_apart(
    frontier: Sequence[Node], roots: Iterable[tuple[Node | None, Any]], retain_graph: bool, create_graph: bool
) -> tuple[list[int], list[Any]]:
    """As walk_to(), but a leaf gets its gradients one by one, so that they are added up in the same order as in a
    single walk. Returns (positions in frontier, the gradients that go there)."""
    parts: dict[Node, list[Any]] = {node: [] for node in frontier if type(node) is Leaf and node.hooks is None}
    sums = walk_to(frontier, roots, retain_graph, create_graph, parts)
    places: list[int] = []
    gradients: list[Any] = []
    for i, (node, g) in enumerate(zip(frontier, sums, strict=True)):
        found = parts.get(node) or [g]
        places += [i] * len(found)
        gradients += found
    return places, gradients


def walk_to(
    frontier: Sequence[Node | None],
    roots: Iterable[tuple[Node | None, Any]],
    retain_graph: bool,
    create_graph: bool,
    parts: dict[Node, list[Any]] | None = None,
) -> tuple[Any, ...]:
    """The gradients that arrive at the nodes of frontier. Their hooks are left to the enclosing walk."""
    wanted = {node: i for i, node in enumerate(frontier) if node is not None}
    hooks = [(node, node.hooks) for node in wanted]
    try:
        for node in wanted:
            node.hooks = None
        live = [(node, one) for node, one in roots if node is not None]
        return tuple(engine.run(live, retain_graph, create_graph, wanted, accumulate=False, past=False, parts=parts))
    finally:
        for node, known in hooks:
            node.hooks = known
