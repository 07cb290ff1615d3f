"""Lays out a graph in layers, from the inputs at the top to the result (Sugiyama, Tagawa and Toda, Methods for Visual
Understanding of Hierarchical System Structures, 1981). Each box is laid out alone, then as one item of the box around
it. Alternatively calls Graphviz's dot."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from graphlib import TopologicalSorter
from typing import Any

from ._graph import Box, Item, Picture, Vertex, circle

_GAP_X, _GAP_Y, _MARGIN, _LABEL = 18.0, 30.0, 14.0, 16.0


class _Point:
    """A point on an edge: between layers, or at the border of a box."""

    def __init__(self) -> None:
        self.x = self.y = 0.0
        self.width, self.height = 10.0, 0.0


Place = Any  # a Vertex, Box or _Point
Segment = tuple[Place, Place]


class _Layout:
    def __init__(self, picture: Picture):
        self.picture = picture
        self.above: dict[Item, list[Box]] = {}  # the boxes around each item, outermost first
        self._climb(picture.root, [])
        self.entries: dict[tuple[Box, Vertex], _Point] = {}
        self.exits: dict[tuple[Box, Vertex], _Point] = {}
        self.segments: dict[Box, dict[Segment, None]] = defaultdict(dict)
        self.routes: dict[Segment, list[_Point]] = {}  # the points on a segment

    def _climb(self, box: Box, above: list[Box]) -> None:
        self.above[box] = above
        for item in box.items:
            if isinstance(item, Box):
                self._climb(item, [*above, box])
            else:
                self.above[item] = [*above, box]

    def run(self) -> None:
        self._dissolve()
        links = [self._link(a, b) for a, b in _in_order(self.picture)]
        self._place(self.picture.root)
        self._shift(self.picture.root, 0.0, 0.0)
        self.picture.width, self.picture.height = self.picture.root.width, self.picture.root.height
        self.picture.paths = [self._path(link) for link in links]

    def _dissolve(self) -> None:
        """Removes boxes that a path leaves and enters again: no order of layers keeps these in one piece."""
        while True:
            between: dict[Box, list[tuple[object, object]]] = defaultdict(list)
            for a, b in _in_order(self.picture):
                box, from_item, to_item = self._meet(a, b)
                between[box].append((from_item, to_item))
            wrong = next(((box, found) for box, pairs in between.items() if (found := circle(pairs))), None)
            if wrong is None:
                return
            box, found = wrong
            for item in [item for item in box.items if item in found and isinstance(item, Box)]:
                box.items.remove(item)
                box.items += item.items
            self._climb(self.picture.root, [])

    def _meet(self, a: Vertex, b: Vertex) -> tuple[Box, Item, Item]:
        """The innermost box around two vertices, and the items of that box that contain them."""
        ways: tuple[list[Item], list[Item]] = [*self.above[a], a], [*self.above[b], b]
        depth = next(i for i, (way, other) in enumerate(zip(*ways)) if way is not other)
        return self.above[a][depth - 1], ways[0][depth], ways[1][depth]

    def _link(self, a: Vertex, b: Vertex) -> list[tuple[Box, Segment]]:
        """The segments of an edge, through the borders of boxes that it leaves and enters."""
        box, _, _ = self._meet(a, b)
        link: list[tuple[Box, Segment]] = []
        at: Place = a
        for inner in reversed(self.above[a][len(self.above[box]) + 1 :]):
            port = self.exits.setdefault((inner, a), _Point())
            link.append((inner, (at, port)))
            at = port
        inward = self.above[b][len(self.above[box]) + 1 :]
        ends = [*(self.entries.setdefault((inner, a), _Point()) for inner in inward), b]
        for inner, end in zip([box, *inward], ends):
            link.append((inner, (at, end)))
            at = end
        for inner, segment in link:
            self.segments[inner][segment] = None
        return link

    # ---- one box ---------------------------------------------------------------------------------------------------

    def _place(self, box: Box) -> None:
        """Places everything in a box relative to its corner, inner boxes first."""
        for item in box.items:
            if isinstance(item, Box):
                self._place(item)
        entries = [port for (inside, _), port in self.entries.items() if inside is box]
        exits = [port for (inside, _), port in self.exits.items() if inside is box]
        owner: dict[Place, Place] = {item: item for item in box.items}  # ports of inner boxes belong to these
        for ports in (self.entries, self.exits):
            for (inside, _), port in ports.items():
                if inside in owner:
                    owner[port] = inside
        owner |= {port: port for port in [*entries, *exits]}
        pairs = [(owner[a], owner[b], (a, b)) for a, b in self.segments[box]]
        layers = self._layers([*box.items, *entries, *exits], pairs, entries, exits)
        links: list[tuple[Place, Place, float, float]] = []  # items of neighbouring layers, and the offsets of the ends
        level = {item: i for i, layer in enumerate(layers) for item in layer}
        for a, b, segment in pairs:
            between = [_Point() for _ in range(level[a] + 1, level[b])]
            for i, point in enumerate(between, level[a] + 1):
                layers[i].append(point)
            self.routes[segment] = between
            chain = [a, *between, b]
            offsets = [self._offset(segment[0], a), *(0.0 for _ in between), self._offset(segment[1], b)]
            links += [(chain[i], chain[i + 1], offsets[i], offsets[i + 1]) for i in range(len(chain) - 1)]
        _order(layers, links)
        width = _spread(layers, links)
        label = _LABEL if self.above[box] else 0.0
        y = _MARGIN + label
        for layer in layers:
            height = max(item.height for item in layer)
            for item in layer:
                if isinstance(item, _Point):  # an edge passes a tall item in a straight line
                    item.height = height
                item.y = y + (height - item.height) / 2
            y += height + _GAP_Y
        for port in entries:
            port.y = port.height = 0.0
        box.width = max(width, len(box.title) * 6.4 if self.above[box] else 0.0) + 2 * _MARGIN
        box.height = y - _GAP_Y + _MARGIN
        for port in exits:
            port.y, port.height = box.height, 0.0
        for layer in layers:
            for item in layer:
                item.x += _MARGIN

    def _offset(self, end: Place, item: Place) -> float:
        """The distance of an edge's end from the middle of its item."""
        return 0.0 if end is item else end.x + end.width / 2 - item.width / 2

    def _layers(
        self, items: list[Place], pairs: list[tuple[Place, Place, Segment]], entries: list[Any], exits: list[Any]
    ) -> list[list[Place]]:
        """Items by their distance from the last; the box's ports first and last."""
        after: dict[Place, list[Place]] = defaultdict(list)
        for a, b, _ in pairs:
            after[a].append(b)
        depth: dict[Place, int] = {}
        lowest = 1 if exits else 0  # the lowest layer of other items
        for item in TopologicalSorter({item: after[item] for item in items}).static_order():
            depth[item] = max((depth[user] + 1 for user in after[item]), default=0 if item in exits else lowest)
        ports = {*entries, *exits}
        first = 1 if entries else 0
        deepest = max([lowest, *(depth[item] for item in items if item not in ports)])
        layers: list[list[Place]] = [[] for _ in range(first + deepest + 1)]
        for item in items:
            at = first + deepest - depth[item]
            layers[0 if item in entries else -1 if item in exits else at].append(item)
        return [layer for layer in layers if layer]

    # ---- the picture -----------------------------------------------------------------------------------------------

    def _shift(self, box: Box, x: float, y: float) -> None:
        """Converts coordinates relative to boxes to those of the picture."""
        box.x, box.y = box.x + x, box.y + y
        points = {point for segment in self.segments[box] for point in self.routes[segment]}
        ports = [port for ports in (self.entries, self.exits) for (inside, _), port in ports.items() if inside is box]
        for point in [*points, *ports]:
            point.x, point.y = point.x + box.x, point.y + box.y
        for item in box.items:
            if isinstance(item, Box):
                self._shift(item, box.x, box.y)
            else:
                item.x, item.y = item.x + box.x, item.y + box.y

    def _path(self, link: list[tuple[Box, Segment]]) -> str:
        (first, _), last = link[0][1], link[-1][1][1]
        x, y = first.x + first.width / 2, first.y + first.height
        text = f"M{x:.1f},{y:.1f}"
        for _, segment in link:
            for point in [*self.routes[segment], segment[1]]:
                to_x, to_y = point.x + point.width / 2, point.y - (2 if point is last else 0)
                middle = (y + to_y) / 2
                text += f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
                x, y = to_x, to_y
                if point is not last and point.height:
                    y += point.height
                    text += f"V{y:.1f}"
        return text


def _in_order(picture: Picture) -> list[tuple[Vertex, Vertex]]:
    """The edges in recording order."""
    return sorted(picture.edges, key=lambda edge: (edge[0].order, edge[1].order))


def _order(layers: list[list[Place]], links: list[tuple[Place, Place, float, float]]) -> None:
    """Orders each layer by the mean position of the neighbours, above and below in turns, so that few edges cross
    (Sugiyama's barycentre method)."""
    above: dict[Place, list[Place]] = defaultdict(list)
    below: dict[Place, list[Place]] = defaultdict(list)
    for a, b, _, _ in links:
        above[b].append(a)
        below[a].append(b)
    for turn in range(8):
        near, sweep = (above, layers[1:]) if turn % 2 == 0 else (below, layers[-2::-1])
        place = {item: i / max(len(layer) - 1, 1) for layer in layers for i, item in enumerate(layer)}
        for layer in sweep:
            mean = {
                item: sum(place[neighbour] for neighbour in near[item]) / len(near[item]) if near[item] else place[item]
                for item in layer
            }
            layer.sort(key=lambda item: mean[item])
            place.update({item: i / max(len(layer) - 1, 1) for i, item in enumerate(layer)})


def _spread(layers: list[list[Place]], links: list[tuple[Place, Place, float, float]]) -> float:
    """Gives each item an x near its neighbours' without overlap; returns the width of all."""
    wanted: dict[Place, list[tuple[Place, float]]] = defaultdict(list)
    for a, b, at_a, at_b in links:
        wanted[b].append((a, at_a - at_b))
        wanted[a].append((b, at_b - at_a))
    for layer in layers:
        x = 0.0
        for item in layer:
            item.x = x
            x += item.width + _GAP_X
    for turn in range(24):
        for layer in layers if turn % 2 == 0 else reversed(layers):
            aims = []
            for item in layer:
                near = wanted[item]
                middle = (
                    sum(neighbour.x + neighbour.width / 2 + by for neighbour, by in near) / len(near) if near else None
                )
                aims.append(item.x if middle is None else middle - item.width / 2)
            _settle(layer, aims)
    left = min(item.x for layer in layers for item in layer)
    for layer in layers:
        for item in layer:
            item.x -= left
    return max(item.x + item.width for layer in layers for item in layer)


def _settle(layer: list[Place], aims: list[float]) -> None:
    """Positions in this order, as close to the desired ones as the widths allow: neighbours that would overlap form a
    block at the mean of their desired positions."""
    blocks: list[tuple[float, list[int], float]] = []  # x, members, width
    for i, aim in enumerate(aims):
        x, members, width = aim, [i], layer[i].width + _GAP_X
        while blocks and blocks[-1][0] + blocks[-1][2] > x:
            before_x, before, before_width = blocks.pop()
            count, others = len(before), len(members)
            x = (before_x * count + (x - before_width) * others) / (count + others)
            members, width = [*before, *members], before_width + width
        blocks.append((x, members, width))
    for x, members, _ in blocks:
        for i in members:
            layer[i].x = x
            x += layer[i].width + _GAP_X


def place(picture: Picture) -> None:
    """Sets the coordinates of all items and edges of a picture."""
    _Layout(picture).run()


# ---- Graphviz --------------------------------------------------------------------------------------------------------


def place_by_dot(picture: Picture, dot: str) -> None:
    """place() with the program dot. OSError or ValueError if it fails."""
    names = {vertex: f"v{i}" for i, vertex in enumerate(picture.root.vertices())}
    boxes = {f"cluster{i}": box for i, box in enumerate(picture.root.boxes())}
    clusters = {box: name for name, box in boxes.items()}

    def inside(box: Box) -> str:
        text = ""
        for item in box.items:
            if isinstance(item, Vertex):
                text += f"{names[item]} [width={item.width / 72:.4f} height={item.height / 72:.4f}];\n"
            else:
                text += f'subgraph {clusters[item]} {{ label="{"x" * len(item.title)}";\n{inside(item)}}}\n'
        return text

    arrows = "".join(f"{names[a]} -> {names[b]};\n" for a, b in _in_order(picture))
    head = 'digraph { node [shape=box fixedsize=true label=""]; graph [fontsize=11 margin=14 ranksep=0.4];\n'
    text = head + inside(picture.root) + arrows + "}"
    run = subprocess.run([dot, "-Tjson0"], input=text, capture_output=True, text=True)
    if run.returncode:
        raise OSError(f"dot failed: {run.stderr.strip()}")
    drawing = json.loads(run.stdout)
    _, _, picture.width, picture.height = map(float, drawing["bb"].split(","))
    vertices = {name: vertex for vertex, name in names.items()}
    for node in drawing.get("objects", ()):
        if node["name"] in vertices:
            vertex = vertices[node["name"]]
            x, y = map(float, node["pos"].split(","))
            vertex.x, vertex.y = x - vertex.width / 2, picture.height - y - vertex.height / 2
        elif node["name"] in boxes:
            left, bottom, right, top = map(float, node["bb"].split(","))
            box = boxes[node["name"]]
            box.x, box.y, box.width, box.height = left, picture.height - top, right - left, top - bottom
    picture.paths = [_dot_path(edge["pos"], picture.height) for edge in drawing.get("edges", ())]


def _dot_path(pos: str, height: float) -> str:
    end = re.match(r"e,([-\d.e+]+),([-\d.e+]+) ", pos)
    points = [tuple(map(float, point.split(","))) for point in pos.split() if point[0] not in "es"]
    shown = [f"{x:.1f},{height - y:.1f}" for x, y in points]
    path = f"M{shown[0]}C{' '.join(shown[1:])}"
    return path + (f"L{float(end[1]):.1f},{height - float(end[2]):.1f}" if end else "")
