"""The graph of a picture before its layout: vertices, modules as boxes, edges; folds repeated parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import groupby


class Vertex:
    """A card. lines: the text under its title; params: below that, a line for each parameter; hint: the tooltip; order:
    its position in recording order."""

    def __init__(self, kind: str, title: str, lines: list[str], hint: str, order: int):
        self.kind, self.title, self.lines, self.hint, self.order = kind, title, lines, hint, order
        self.params: list[str] = []
        self.form: object = (kind, title)  # equal for vertices that repeat each other
        self.x = self.y = self.width = self.height = 0.0

    def vertices(self) -> Iterator[Vertex]:
        """Itself."""
        yield self


class Box:
    """A module: a frame around its vertices and those of its submodules."""

    def __init__(self, path: str, title: str):
        self.path, self.title = path, title
        self.items: list[Vertex | Box] = []
        self.x = self.y = self.width = self.height = 0.0

    def vertices(self) -> Iterator[Vertex]:
        """All vertices in it."""
        for item in self.items:
            yield from item.vertices()

    def boxes(self) -> Iterator[Box]:
        """The boxes in it, outer ones first."""
        for item in self.items:
            if isinstance(item, Box):
                yield item
                yield from item.boxes()

    @property
    def order(self) -> int:
        """The order of its first vertex."""
        return min(vertex.order for vertex in self.vertices())

    @property
    def form(self) -> object:
        """Equal for boxes that repeat each other."""
        kind = self.title.rpartition(" ")[2] if self.title.endswith(")") else ""
        return (kind, *(item.form for item in self.items))


Item = Vertex | Box
Edges = set[tuple[Vertex, Vertex]]  # from a producer to its user


class Picture:
    """A tree of boxes, and the edges between its vertices. paths: the SVG path of each edge (_graph_layout.py)."""

    def __init__(self, root: Box, edges: Edges):
        self.root, self.edges = root, edges
        self.paths: list[str] = []
        self.width = self.height = 0.0

    # ---- repetitions -----------------------------------------------------------------------------------------------

    def fold(self) -> None:
        """Replaces boxes that repeat the one before, and equal operations in a row, by one card each."""
        for box in [self.root, *self.root.boxes()]:
            self._fold_boxes(box)
        for box in [self.root, *self.root.boxes()]:
            self._fold_chains(box)

    def _fold_boxes(self, box: Box) -> None:
        boxes = sorted((item for item in box.items if isinstance(item, Box)), key=lambda item: item.order)
        for _, (first, *others) in groupby(boxes, key=lambda item: item.form):
            if not others:
                continue
            names = others[0].path if len(others) == 1 else f"{others[0].path} to {others[-1].path}"
            line = f"as {first.path}" if len(others) == 1 else f"{len(others)} modules, each as {first.path}"
            count = sum(1 for other in others for _ in other.vertices())
            vertex = Vertex("folded", names, [line], f"{count} operations", others[0].order)
            self._replace(box, list(others), vertex)

    def _fold_chains(self, box: Box) -> None:
        """Folds three or more operations in a row that have one title and shape, each the only user of the one
        before."""
        users, producers = neighbours(self.edges)
        done: set[Vertex] = set()
        for start in sorted((item for item in box.items if isinstance(item, Vertex)), key=lambda item: item.order):
            chain = [start]
            while True:
                after = users.get(chain[-1], [])
                if len(after) != 1 or len(producers[after[0]]) != 1 or after[0] not in box.items:
                    break
                if after[0].form != start.form or after[0] in done:
                    break
                chain.append(after[0])
            if start.kind != "operation" or start in done or len(chain) < 3:
                continue
            done.update(chain)
            vertex = Vertex("folded", f"{start.title} × {len(chain)}", start.lines[:1], start.hint, start.order)
            self._replace(box, list(chain), vertex)
            users, producers = neighbours(self.edges)

    def _replace(self, box: Box, items: list[Item], vertex: Vertex) -> None:
        """Replaces items of a box by a vertex, unless that would close a cycle."""
        inside = {old for item in items for old in item.vertices()}
        edges = {(vertex if a in inside else a, vertex if b in inside else b) for a, b in self.edges}
        edges = {(a, b) for a, b in edges if a is not b}
        if circle(edges) is None:
            self.edges = edges
            box.items = sorted(
                [vertex, *(item for item in box.items if item not in items)], key=lambda item: item.order
            )


def neighbours(edges: Iterable[tuple[Vertex, Vertex]]) -> tuple[dict[Vertex, list[Vertex]], dict[Vertex, list[Vertex]]]:
    """(users of each vertex, producers of each)."""
    users: dict[Vertex, list[Vertex]] = {}
    producers: dict[Vertex, list[Vertex]] = {}
    for a, b in edges:
        users.setdefault(a, []).append(b)
        producers.setdefault(b, []).append(a)
    return users, producers


def circle(edges: Iterable[tuple[object, object]]) -> set[object] | None:
    """The vertices of a cycle; None if there is none."""
    sorter: TopologicalSorter[object] = TopologicalSorter()
    for a, b in edges:
        sorter.add(b, a)
    try:
        sorter.prepare()
    except CycleError as error:
        return set(error.args[1])
    return None
