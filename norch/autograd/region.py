"""A part of the graph that one node stands for: which nodes it has, and a walk through it alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._typing import Any
from . import engine
from .node import Node


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
    """The gradients that arrive at the nodes of the frontier, for the walk around this one, which calls their hooks."""
    wanted = {node: i for i, node in enumerate(frontier) if node is not None}
    hooks = [(node, node.hooks) for node in wanted]
    try:
        for node in wanted:
            node.hooks = None
        live = [(node, one) for node, one in roots if node is not None]
        return tuple(engine.run(live, retain_graph, create_graph, wanted, accumulate=False, past=False))
    finally:
        for node, known in hooks:
            node.hooks = known
