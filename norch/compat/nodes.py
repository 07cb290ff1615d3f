"""grad_fn as PyTorch shows it, while the door is open (norch.as_torch()).

PyTorch's graph and norch's differ in names, in the order of inputs, and in operations that are one node in one and
several in the other. nodes.txt has the rules that translate. The nodes are made when a program reads them, and refer to
norch's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..autograd.function import Function, Output, Outputs
from ..autograd.hooks import check_gradient
from ..autograd.node import GradientEdge, Leaf
from ..autograd.node import Node as _Node
from .placeholders import HERE

# Some nodes of a graph, or a pattern of nodes in nodes.txt. One of
#   (name, text, inputs)  a node: its name, the text after a colon in nodes.txt or None, and a Tree for each input
#   None                  no gradient
#   a letter              in a pattern, any node; otherwise a node of norch
Tree = Any
_TOKEN = re.compile(r"\s*([A-Za-z_0-9,]+|\.)(?::(\w[\w,]*))?(\()?")


class _Nodes(type):
    """The metaclass of Node: nodes of both graphs are instances."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, (_Node, Shown))


class Node(metaclass=_Nodes):
    """torch.autograd.graph.Node."""


class Shown:
    """A node of PyTorch's graph. Its other attributes, such as saved tensors, are those of norch's node.

    _real  the node of norch that computes it
    _tree  its name and inputs (see Tree)
    _path  () for the node that represents _real itself. If PyTorch has several nodes for _real: the inputs to follow
           from that node to reach this one"""

    __slots__ = ("__weakref__", "_path", "_real", "_tree")

    def __init__(self, real: _Node, tree: Tree, path: tuple[int, ...]) -> None:
        self._real, self._tree, self._path = real, tree, path

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the caller's notes, kept as long as the graph."""
        return _metadata.setdefault(self._real, {}).setdefault(self._path, {})

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output index) for each input; (None, 0) for an input without a gradient."""
        return tuple([self._next(i, to) for i, to in enumerate(self._tree[2])])

    def _next(self, i: int, to: Tree) -> tuple[Any, int]:
        if isinstance(to, tuple):
            return (_made(self._real, to, (*self._path, i)), 0) if _leads_on(to) else (None, 0)
        if isinstance(to, Output):
            return shown(to), to.index
        return shown(to), 0

    def name(self) -> str:
        return type(self).__name__

    def register_hook(self, hook: Callable[[Any, Any], Any]) -> Any:
        """Calls hook(grad_inputs, grad_outputs), with gradients in the order of next_functions. NotImplementedError if
        norch computes them in several nodes."""
        real, order, count = self._real, self._order(), _count_of_results(self._real)

        def as_shown(inputs: Any, outputs: Any) -> Any:
            shown = tuple([_turned(None if at is None else inputs[at], turns) for at, turns in order])
            changed = hook(shown, _of_results(outputs[0], count))
            if changed is None:
                return None
            back = {at: _turned(g, turns) for (at, turns), g in zip(order, changed, strict=True)}
            return tuple([back.get(at, g) for at, g in enumerate(inputs)])

        return real.register_hook(as_shown)

    def register_prehook(self, hook: Callable[[Any], Any]) -> Any:
        """Calls hook(grad_outputs) with the gradients of all outputs, None for those without one."""
        if self._path:
            raise NotImplementedError(
                f"{self.name()}: norch computes it in the node {self._real!r}, and has no hooks on it"
            )
        count = _count_of_results(self._real)

        def as_shown(outputs: Any) -> Any:
            (of_result,) = outputs
            changed = hook(_of_results(of_result, count))
            if not isinstance(of_result, Outputs):
                return changed
            for i, g in enumerate(changed or ()):
                if g is not None:
                    check_gradient(g, of_result.get(i, g), "register_prehook")
                    of_result[i] = g
            return None

        return self._real.register_prehook(as_shown)

    def _order(self) -> list[tuple[int | None, bool]]:
        """For each input the index of the edge of norch's node that has its gradient, and whether that is
        transposed."""
        edges = list(self._real.edges)
        order: list[tuple[int | None, bool]] = []
        for to in self._tree[2]:
            turns = isinstance(to, tuple) and to[0] == "TBackward0"
            to = to[2][0] if turns else to
            at = next((i for i, edge in enumerate(edges) if edge is to and i not in dict(order)), None)
            if self._path or (at is None and to is not None):
                raise NotImplementedError(
                    f"{self.name()}: norch computes it in the node {self._real!r}, with others, and has no hooks on it"
                )
            order.append((at, turns))
        return order

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in dir(self._real) if name[:7] == "_saved_")]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle {self.name()!r} object")

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


_existing: WeakValueDictionary[Any, Shown] = WeakValueDictionary()
_metadata: WeakKeyDictionary[_Node, dict[tuple[int, ...], dict[Any, Any]]] = WeakKeyDictionary()


def shown(node: Any) -> Any:
    """PyTorch's view of a node of norch: the same object as long as it is referenced."""
    if node is None or type(node) is Leaf or isinstance(node, Shown):
        return node
    if isinstance(node, Output) or type(node).__name__ == "Connect":
        return shown(node.edges[0])
    return _existing.get((node.seq, ())) or _made(node, _tree_of(node), ())


def _made(real: _Node, tree: Tree, path: tuple[int, ...]) -> Shown:
    existing = _existing.get((real.seq, path))
    if existing is None:
        existing = _existing[real.seq, path] = _class(tree[0])(real, tree, path)
    return existing


@cache
def _class(name: str) -> type[Shown]:
    return type(name, (Shown,), {"__slots__": (), "__module__": "builtins"})


def _leads_on(tree: Tree) -> bool:
    return any(map(_leads_on, tree[2])) if isinstance(tree, tuple) else tree is not None


def _turned(g: Any, turns: bool) -> Any:
    return g if g is None or not turns else g.t()


def _count_of_results(node: _Node) -> int:
    if isinstance(node, Function):
        return len(node._output_shapes)
    return 1 + len(_saved_by(node).get("rest", ()))  # record_factors()


def _of_results(g: Any, count: int) -> tuple[Any, ...]:
    """The gradients of a node's outputs, from the argument of its propagate()."""
    return tuple([g.get(i) for i in range(max(count, 1 + max(g)))]) if isinstance(g, Outputs) else (g,)


# ---- nodes.txt -----------------------------------------------------------------------------------------------------


@cache
def _rules() -> dict[str, list[tuple[Tree, Tree]]]:
    """{class of the first node: [(pattern of norch's nodes, PyTorch's nodes)]}."""
    rules: dict[str, list[tuple[Tree, Tree]]] = {}
    with open(os.path.join(HERE, "nodes.txt")) as file:
        for line in file:
            if line.strip() and line[0] != "#":
                left, right = (_read(text.strip()) for text in line.split(" = "))
                rules.setdefault(left[0], []).append((left, right))
    return rules


def _read(text: str) -> Tree:
    def tree(at: int) -> tuple[Tree, int]:
        match = _TOKEN.match(text, at)
        assert match, text
        name, tag, opens = match.groups()
        at = match.end()
        if not opens:
            return (None if name == "." else name), at
        inner = []
        while text[at] != ")":
            subtree, at = tree(at)
            inner.append(subtree)
        return (name, tag, inner), at + 1

    return tree(0)[0]


def _fits(pattern: Tree, node: _Node | None, found: dict[str, Any]) -> bool:
    if pattern is None:
        return node is None
    if isinstance(pattern, str):
        found[pattern] = node
        return True
    name, tag, inner = pattern
    if node is None or type(node).__name__ != name or len(node.edges) != len(inner):
        return False
    return (tag is None or tag == _read_of(node)) and all(map(_fits, inner, node.edges, [found] * len(inner)))


def _filled(form: Tree, found: dict[str, Any]) -> Tree:
    if not isinstance(form, tuple):
        return None if form is None else found[form]
    return _in_full(form[0]), None, [_filled(item, found) for item in form[2]]


@cache
def _in_full(name: str) -> str:
    return name if "Backward" in name or name == "CopySlices" else f"{name}Backward0"


def _tree_of(node: _Node) -> Tree:
    name = type(node).__name__
    if isinstance(node, Function):
        return f"{name}Backward", None, node.edges
    if name == "Region" and _read_of(node) == "region":
        return _indexed(node)
    for pattern, form in _rules().get(name, ()):
        trees: dict[str, Any] = {}
        if _fits(pattern, node, trees):
            return _filled(form, trees)
    return _in_full(re.sub(r"\d[a-z]", lambda m: m[0].upper(), name)), None, node.edges


def _indexed(node: Any) -> Tree:
    """x[...] with integers and slices: one node for each, the innermost first."""
    index = _saved_by(node)["arguments"][0]
    tree: Tree = node.edges[0]
    for part in index if isinstance(index, tuple) else (index,):
        if part is not Ellipsis and (part != slice(None) or type(index) is slice):
            name = "Slice" if isinstance(part, slice) else "Unsqueeze" if part is None else "Select"
            tree = f"{name}Backward0", None, [tree]
    return tree if isinstance(tree, tuple) else ("SliceBackward0", None, [tree])


# ---- what a node saved ---------------------------------------------------------------------------------------------


def _read_of(node: Any) -> str | None:
    """The text that nodes.txt compares with its text after a colon; None after backward() freed the saved values."""
    saved = _saved_by(node)
    read = _READ.get(type(node).__name__, _operands)
    return read(saved) if saved else None


def _saved_by(node: Any) -> dict[str, Any]:
    return dict(zip(node.save_plan.saves, node._saved)) if hasattr(node, "save_plan") and node._saved else {}


def _operands(saved: dict[str, Any]) -> str | None:
    if getattr(saved.get("a"), "_weak", False):
        return "of_number"
    numbers = any(getattr(saved.get(name), "_weak", False) for name in "bc")
    return "number" if numbers or not {"a", "b"} & saved.keys() else None


def _view(saved: dict[str, Any]) -> str | None:
    view_fn: Any = saved.get("view_fn")
    arguments: Any = saved.get("arguments")
    if view_fn is None or view_fn.__name__ != "squeeze" or arguments == (None,):
        return view_fn and view_fn.__name__
    return "squeeze_dims" if isinstance(arguments[0], (tuple, list)) else "squeeze_dim"


def _rank(*names: str) -> Callable[[dict[str, Any]], str]:
    """The ranks of saved tensors."""
    return lambda saved: ",".join([str(getattr(saved.get(name), "ndim", "")) for name in names])


def _normalized(saved: dict[str, Any]) -> str:
    if not saved["centered"]:
        return "rms"
    return "layer" if saved["axes"] > 0 else "groups" if saved["weight"] is None else "group"


_READ: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "Reshape": _view,
    "Region": _view,
    "Linear": _rank("x"),
    "Matmul": _rank("a", "b"),
    "Nll": lambda saved: str(len(saved["x_meta"].shape)),
    "Normalize": _normalized,
    "MaxPool": lambda saved: f"{len(saved['x_meta'].shape) - 2}d",
    "AvgPool": lambda saved: f"{len(saved['x_meta'].shape) - 2}d",
    "Interpolate": lambda saved: str(saved["index"].shape[0]),
    "Pad": lambda saved: f"{saved.get('mode')}{len(saved['before'])}",
} | dict.fromkeys(
    ("Sum", "Mean", "Prod", "Max", "Min", "Median", "Nanmedian"),
    lambda saved: None if saved.get("axes", saved.get("dim")) is None else "dim",
)


# ---- the door ------------------------------------------------------------------------------------------------------


def new_edge(cls: Any, node: Any, output_nr: int, ownership_token: Any = None) -> GradientEdge:
    """GradientEdge() for a node of either graph."""
    real = node._real if isinstance(node, Shown) and not node._path else node
    return tuple.__new__(cls, (real, output_nr, ownership_token))
