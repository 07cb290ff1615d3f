"""The nodes that a walk visits: all nodes that its roots lead to, or for grad() only the nodes between the roots and
targets. A walk for grad() collects the targets' gradients and does not change .grad."""

from __future__ import annotations

from collections.abc import Container, Iterable
from operator import attrgetter

from .._package.typing import Any
from ..errors import Error
from .node import GradientEdge, Leaf, Node
from .record import gradient_edge

_age = attrgetter("seq")


def reachable(roots: Iterable[Node], ends: Container[Node] = (), opens: bool = False) -> set[Node]:
    """The nodes reachable from roots, which are included. The edges of ends are not followed. opens: first opens nodes
    that represent others (Node.is_whole)."""
    visited = set(roots)
    todo = list(visited)
    while todo:
        node = todo.pop()
        if node in ends:
            continue
        if opens:
            node.open()
        for edge in node.edges:
            if edge is not None and edge not in visited:
                visited.add(edge)
                todo.append(edge)
    return visited


def count_dependencies(starts: list[Any], gradients: dict[Node, Any]) -> dict[Leaf, int]:
    """The number of gradients that each leaf with hooks waits for: the edges to it from nodes reachable from starts.
    Leaves that already have a gradient are left out."""
    counts: dict[Leaf, int] = {}
    for node in reachable(starts):
        for edge in node.edges:
            if type(edge) is Leaf and edge.hooks is not None and edge not in gradients:
                counts[edge] = counts.get(edge, 0) + 1
    return counts


class Targets:
    """The nodes whose gradients a walk collects. It visits only these and the nodes that lead to them.

    found      {target: its gradient, or None if none arrived}
    one_by_one {target: (source node, gradient) in order of arrival}: gradients of these are not added up, and not in
               found
    needed     the nodes to visit, without those of one_by_one
    visited    the nodes that gradients reach
    has_hooks  whether the walk calls the targets' hooks
    """

    __slots__ = ("found", "has_hooks", "needed", "one_by_one", "visited")

    is_boundary = False

    def __init__(self, nodes: Iterable[Node], one_by_one: Iterable[Node] = (), has_hooks: bool = True):
        self.found: dict[Node, Any] = dict.fromkeys(nodes)
        self.one_by_one: dict[Node, list[tuple[Node | None, Any]]] = {node: [] for node in one_by_one}
        self.needed: set[Node] = set()
        self.visited: set[Node] = set()
        self.has_hooks = has_hooks

    def start(self, roots: Iterable[Node]) -> None:
        """Finds the nodes that a walk from roots needs."""
        needed, visited = self.needed, reachable(roots, self.found if self.is_boundary else ())
        for node in sorted(visited, key=_age):  # inputs first: they are older than their users
            if node in self.found or not needed.isdisjoint(node.edges):
                needed.add(node)
        self.visited = needed
        if self.one_by_one:
            self.visited = needed.union(self.one_by_one)
            needed.difference_update(self.one_by_one)

    def ends_at(self, node: Node) -> bool:
        """Whether the walk ends at this target because it leads to no other."""
        return self.is_boundary or self.needed.isdisjoint(node.edges)


class Boundary(Targets):
    """Targets at which the walk ends, even if one of them leads to another."""

    __slots__ = ()

    is_boundary = True


def nodes_of(inputs: list[Any], name: str) -> list[Node]:
    """The node of each tensor or GradientEdge."""
    nodes = []
    for x in inputs:
        if type(x) is GradientEdge:
            nodes.append(x.node_to_walk())
            continue
        node = gradient_edge(x)
        if node is None:
            raise Error(f"{name}: one of the inputs does not require grad")
        nodes.append(node.apart(x))
    return nodes
