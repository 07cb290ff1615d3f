"""draw_graph(): draws the graph that backward() walks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from .._tensor.handle import next_seq
from ..autograd.engine import walk
from ..autograd.function import Output, Outputs
from ..autograd.hooks import check_gradient
from ..autograd.node import Leaf, Node
from ..autograd.record import gradient_edge
from ..autograd.targets import Targets
from ..errors import ArgumentError, Error
from ..nn._watch import watching
from ..nn.container import ModuleDict, ModuleList
from ..nn.module import Module
from ..ops.create import ones_like
from ..tensor import Tensor
from ._graph import Box, Picture, Vertex
from ._graph_layout import place, place_by_dot
from ._graph_svg import size, svg_of

Path = tuple[str, ...]
_FEW = 4  # values are shown up to this many elements


class GraphPicture:
    """The result of draw_graph(). Notebooks show it; svg is its text, save(file) writes it."""

    def __init__(self, svg: str):
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the picture. OSError if that fails."""
        with open(file, "w", encoding="utf-8") as out:
            out.write(self.svg)


_OTHER_FORMATS = frozenset((".gif", ".jpeg", ".jpg", ".pdf", ".png", ".webp"))


def draw_graph(
    loss: Any,
    params: Module | Mapping[str, Tensor] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    gradient: Tensor | None = None,
    fold: bool = True,
    engine: str | None = None,
) -> GraphPicture:
    """Draws the graph behind a tensor as SVG. Each operation is a card with the shape of its result and the gradient
    that arrives there (for more than four elements |grad|, the mean absolute value). Parameters have names, modules are
    frames. file: where to write it.

    loss: a tensor, or a function without arguments that computes one. params: a module, or a dict of names and tensors.
    Given a function, frames are the calls of modules. Given a tensor, an operation is in a module if it uses the
    module's parameters or lies between operations that do. fold: draws modules that repeat the one before, and three or
    more similar operations in a row, as one card. gradient: of loss, by default ones. engine: "dot", Graphviz's
    program, or "own"; None: dot if it is installed.

    The gradients are computed for the picture: no .grad is written, no hook is called, and the graph stays. After a
    backward() that freed the graph the picture shows no gradients. Error for a tensor without a graph; TypeError for
    other objects; ArgumentError for another engine, a file name for another format (.png), and "dot" if it is not
    installed.

    >>> w = norch.ones(2, requires_grad=True)
    >>> picture = norch.utils.draw_graph((w * 3).sum(), {"w": w})
    >>> "Mul" in picture.svg, picture.svg.startswith("<svg")
    (True, True)
    """
    if engine not in (None, "dot", "own"):
        raise ArgumentError(f"draw_graph: engine must be 'dot', 'own' or None, not {engine!r}")
    if file is not None and os.path.splitext(file)[1].lower() in _OTHER_FORMATS:
        raise ArgumentError(f"draw_graph: the picture is SVG text, name it .svg and not as {os.fspath(file)!r}")
    names = _names(params)
    calls: list[tuple[int, int, Path]] = []
    if callable(loss) and not isinstance(loss, Tensor):
        loss = _watched(loss, params, calls)
    if not isinstance(loss, Tensor):
        raise TypeError(f"draw_graph: expected a tensor, or a function of one, not {type(loss).__name__}")
    root = gradient_edge(loss)
    if root is None:
        raise Error("draw_graph: this tensor does not require grad and has no history; was it made under no_grad()?")
    picture = _picture(loss, root, gradient, names, params, calls)
    if fold:
        picture.fold()
    for vertex in picture.root.vertices():
        size(vertex)
    dot = shutil.which("dot") if engine != "own" else None
    if engine == "dot" and dot is None:
        raise ArgumentError("draw_graph: Graphviz's dot is not installed; engine='own' needs nothing")
    if dot is None:
        place(picture)
    else:
        place_by_dot(picture, dot)
    drawn = GraphPicture(svg_of(picture, f"graph of {_operation(root)}"))
    if file is not None:
        drawn.save(file)
    return drawn


# ---- names and modules -----------------------------------------------------------------------------------------------


def _names(params: Any) -> dict[int, str]:
    if params is None:
        return {}
    if isinstance(params, Module):
        return {id(p): name for name, p in params.named_parameters()}
    if not isinstance(params, Mapping) or not all(isinstance(p, Tensor) for p in params.values()):
        raise TypeError(f"draw_graph: params must be a module or a dict of tensors, not {type(params).__name__}")
    return {id(p): str(name) for name, p in params.items()}


def _path(name: str, params: Any) -> Path:
    """The modules around a name, outermost first. A list of modules is not called, so it is joined with its entry."""
    parts: list[str] = []
    at = params if isinstance(params, Module) else None
    joined = False
    for part in name.split(".") if name else ():
        if joined or (at is None and part.isdigit() and parts):
            parts[-1] += f".{part}"
        else:
            parts.append(part)
        at = at._modules.get(part) if at is not None else None
        joined = isinstance(at, (ModuleList, ModuleDict))
    return tuple(parts)


def _watched(function: Callable[[], Any], params: Any, calls: list[tuple[int, int, Path]]) -> Any:
    """function(), and the intervals of sequence numbers in which the modules of params were called."""
    inside = {id(m): name for name, m in params.named_modules()} if isinstance(params, Module) else {}

    def enter(module: Module) -> Callable[[Any, bool], None] | None:
        name = inside.get(id(module))
        begin = next_seq()
        return None if not name else lambda *_: calls.append((begin, next_seq(), _path(name, params)))

    with watching(enter):
        return function()


def _common(paths: list[Path]) -> Path:
    """The longest common prefix of the paths; empty for no paths."""
    return tuple(os.path.commonprefix(paths))  # works for any sequences


def _modules_of(nodes: list[Node], path_of: dict[Node, Path], calls: list[tuple[int, int, Path]]) -> dict[Node, Path]:
    """The path of the module that each node belongs to. nodes: users first; path_of: by the parameters that it uses."""
    if calls:
        calls = sorted(calls, key=lambda call: call[1] - call[0])
        return {n: next((path for begin, end, path in calls if begin < n.seq < end), ()) for n in nodes}
    users: dict[Node, list[Path]] = {}
    for node in nodes:  # the common path of all its users, from the last node to the first
        seen = path_of.get(node) or _common(users.get(node, []))
        for edge in _edges(node):
            users.setdefault(edge, []).append(seen)
    producers: dict[Node, set[Path]] = {}
    paths: dict[Node, Path] = {}
    for node in reversed(nodes):
        behind = {path for edge in _edges(node) for path in producers.get(edge, ())}
        if node in path_of:
            paths[node] = path_of[node]
        else:
            path = _common(users.get(node, []))
            while path and not any(path_behind[: len(path)] == path for path_behind in behind):
                path = path[:-1]
            paths[node] = path
        producers[node] = {path_of[node]} if node in path_of else behind
    return paths


# ---- the graph -------------------------------------------------------------------------------------------------------


def _edges(node: Node) -> list[Node]:
    """The predecessors of a node; nodes that only select one of several results are skipped."""
    return [edge.edges[0] if type(edge) is Output else edge for edge in node.edges if edge is not None]  # type: ignore[misc]


def _operation(node: Node) -> str:
    return "gradient" if type(node) is Leaf else node.name().removesuffix("Backward")


def _picture(
    loss: Tensor, root: Node, gradient: Any, names: dict[int, str], params: Any, calls: list[tuple[int, int, Path]]
) -> Picture:
    start = root.edges[0] if type(root) is Output else root
    assert start is not None
    seen, waiting = {start}, [start]
    while waiting:
        fresh = [edge for edge in _edges(waiting.pop()) if edge not in seen]
        seen.update(fresh)
        waiting += fresh
    nodes = sorted(seen, key=lambda node: -node.seq)  # users before what they use
    arriving = _gradients(loss, root, nodes, gradient)
    leaves: dict[Node, Any] = {node: node.variable for node in nodes if type(node) is Leaf}
    users = {leaf: [node for node in nodes if leaf in _edges(node)] for leaf in leaves}
    titles: dict[Node, str] = {leaf: names.get(id(x), "") for leaf, x in leaves.items()}
    within = {leaf: leaf_users[0] for leaf, leaf_users in users.items() if len(leaf_users) == 1 and titles[leaf]}
    path_of: dict[Node, Path] = {}
    for node in nodes:
        paths = [_path(titles[edge].rpartition(".")[0], params) for edge in _edges(node) if titles.get(edge)]
        if paths:
            path_of[node] = _common(paths)
    operations = [node for node in nodes if node not in leaves]
    module_of = _modules_of(operations, path_of, calls)
    vertices: dict[Node, Vertex] = {}
    for node in nodes:
        if node not in within:
            mine = [leaf for leaf, user in within.items() if user is node]
            vertices[node] = _vertex(node, loss if node is start else leaves.get(node), titles, arriving)
            for leaf in reversed(mine):
                name = titles[leaf].rpartition(".")[2]
                vertices[node].params.append(_line(name, leaves[leaf], arriving.get(leaf)))
                vertices[node].form = (vertices[node].form, name, tuple(leaves[leaf].shape))
    edges = {(vertices[b], vertices[a]) for a in vertices for b in _edges(a) if b in vertices}
    for leaf in leaves:  # leaves used more than once or without a name: beside their users
        if leaf in vertices:
            module_of[leaf] = _common([module_of[user] for user in users[leaf]])
    return Picture(_tree(vertices, module_of, params), {(a, b) for a, b in edges if a is not b})


def _gradients(loss: Tensor, root: Node, nodes: list[Node], gradient: Any) -> dict[Node, Any]:
    """The gradient of each node; none if the graph was freed. Calls no node hooks."""
    if gradient is None:
        gradient = ones_like(loss.detach())
    check_gradient(gradient, loss, "draw_graph")
    targets = Targets(nodes, has_hooks=False)
    try:
        walk([(root, gradient)], True, False, targets)
    except Error as error:
        if "a second time" not in str(error):
            raise
        return {}
    return targets.found


def _line(name: str, x: Any, g: Any) -> str:
    """The line of a parameter: its name, shape and gradient."""
    g = x._grad if g is None else g
    return f"{name} {_shape(x)}" + ("" if g is None else f"  {_gradient(g)}")


def _vertex(node: Node, tensor: Any, titles: dict[Node, str], arriving: dict[Node, Any]) -> Vertex:
    g = arriving.get(node)
    if type(node) is Leaf:
        name = titles[node] or "leaf"
        lines = [_line("", tensor, g).strip() if tensor is not None else "gone"]
        return Vertex("parameter", name, lines, f"{name}: a tensor that requires grad", node.seq)
    parts = list(g.values()) if isinstance(g, Outputs) else [] if g is None else [g]
    lines = [", ".join(_shape(part) for part in parts)] if parts else [_shape(tensor)] if tensor is not None else []
    shapes = tuple(lines)
    if tensor is not None and tensor.numel() <= _FEW:
        lines.append(f"value {_few(tensor)}")
    lines += [_gradient(part) for part in parts]
    vertex = Vertex("operation", _operation(node), lines, f"{node.name()}, recorded as number {node.seq}", node.seq)
    vertex.form = (vertex.title, shapes)
    return vertex


def _shape(x: Any) -> str:
    text = str(tuple(x.shape)).replace(",)", ")")
    return text if x.dtype.name == "float32" else f"{text} {x.dtype.name}"


def _few(x: Any) -> str:
    return ", ".join(f"{value:.3g}" for value in x.detach().flatten().tolist()) or "of no elements"


def _gradient(g: Any) -> str:
    """Up to _FEW values, or the mean absolute value."""
    return f"grad {_few(g)}" if g.numel() <= _FEW else f"|grad| {g.detach().double().abs().mean().item():.2g}"


def _tree(vertices: dict[Node, Vertex], module_of: dict[Node, Path], params: Any) -> Box:
    root = Box("", "")
    boxes: dict[Path, Box] = {(): root}

    def box_of(path: Path) -> Box:
        if path not in boxes:
            name = ".".join(path)
            module = params.get_submodule(name) if isinstance(params, Module) else None
            title = path[-1] if module is None else f"{path[-1]} ({type(module).__name__})"
            boxes[path] = Box(name, title)
            box_of(path[:-1]).items.append(boxes[path])
        return boxes[path]

    for node in sorted(vertices, key=lambda node: node.seq):
        box_of(module_of.get(node, ())).items.append(vertices[node])
    _flatten(root)
    return root


def _flatten(box: Box) -> None:
    """Merges a frame around a single card into the card's title."""
    for i, item in enumerate(box.items):
        if isinstance(item, Box):
            _flatten(item)
            only = item.items[0]
            if len(item.items) == 1 and isinstance(only, Vertex):
                only.title = f"{item.path.rpartition('.')[2]}: {only.title}"
                box.items[i] = only
