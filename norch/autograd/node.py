"""What the graph is made of.

A node remembers an operation that was done: ``edges`` say where the gradients of its inputs go (a node, or None
for an input that needs none), and ``propagate(g)`` turns the gradient of the output into those of the inputs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .._handle import Handle, tick
from ..errors import Error


class Node:
    """One recorded operation.

    edges   for each differentiable input, the node that its gradient goes to, or None
    seq     when it was made; inputs are always older, which is all the order that the engine needs
    hooks   functions of the incoming gradient, in order; each may return another gradient
    """

    __slots__ = ("__weakref__", "edges", "hooks", "seq")

    # True when propagate may hand on its argument, or a view of it, instead of a fresh tensor.
    passes = True
    # True when what propagate gives is 0 but for a region, and add_to(whole, g) adds that region to a gradient.
    partial = False
    # Of how many inputs, the first ones, the gradients count as functions, as PyTorch's do, even where they are flat.
    flat = 0

    edges: tuple[Node | None, ...]
    seq: int
    hooks: list[Callable[[Any], Any]] | None

    def __init__(self, *edges: Node | None):
        self.edges = edges
        self.seq = tick()
        self.hooks = None

    def propagate(self, g: Any) -> tuple[Any, ...]:
        raise NotImplementedError(f"{self.name()} has no derivative")

    def add_to(self, whole: Any, g: Any) -> None:
        """For a partial node: adds what propagate(g) would give to whole, in place."""

    def release(self) -> None:
        """Forgets what was saved for propagate."""

    def name(self) -> str:
        return type(self).__name__ + "Backward"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """PyTorch's view of the edges."""
        return tuple((edge, 0) for edge in self.edges)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def saved_intact(node: Node, saved: Any) -> None:
    """Raises when a tensor saved by node was freed by an earlier walk, or written to after node was made."""
    if saved is None:
        raise freed(node)
    cell = saved._cell
    if cell is not None and cell[0] > node.seq:
        raise Error(
            f"{node.name()}: a tensor of shape {tuple(saved.shape)} that it needs for its gradient was changed "
            "in place after it was used; change a clone() instead"
        )


def freed(node: Node) -> Error:
    return Error(
        f"{node.name()}: going backward through this graph a second time, but what it saved was freed the "
        "first time; pass retain_graph=True to the first backward()"
    )


class Leaf(Node):
    """Where a gradient arrives that is kept: adds it to tensor.grad."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Handle):
        super().__init__()
        self.tensor = weakref.ref(tensor)  # the tensor owns this node; a strong reference would be a cycle

    def name(self) -> str:
        return "AccumulateGrad"

    @property
    def variable(self) -> Any:
        """The tensor; None where it is gone."""
        return self.tensor()


class RemovableHandle:
    """Given by register_..._hook: remove(), or leaving a `with` block, takes the hook away."""

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[], None]):
        self._take: Callable[[], None] | None = take

    def remove(self) -> None:
        """Takes the hook away; a second time does nothing."""
        take, self._take = self._take, None
        if take is not None:
            take()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def hook_into(hooks: dict[int, Any], hook: Any, first: bool = False) -> RemovableHandle:
    """Adds a hook to those of a module or an optimizer, which are called in their order; first: in front."""
    key = max(hooks, default=-1) + 1
    others = dict(hooks) if first else {}
    for one in others:
        del hooks[one]
    hooks[key] = hook
    hooks.update(others)
    return RemovableHandle(lambda: hooks.pop(key, None))


def hook_onto(node: Node, hook: Any) -> RemovableHandle:
    """Adds a hook to those of node. The handle keeps no graph alive."""
    node.hooks = [*(node.hooks or ()), hook]
    known = weakref.ref(node)

    def take() -> None:
        node = known()
        hooks = [] if node is None else list(node.hooks or ())
        at = next((i for i, one in enumerate(hooks) if one is hook), None)
        if node is not None and at is not None:
            node.hooks = [*hooks[:at], *hooks[at + 1 :]] or None

    return RemovableHandle(take)


class Accumulated:
    """Among the hooks of a Leaf, one that is to see not the gradient that arrives but the tensor whose .grad has it."""

    def __init__(self, hook: Callable[[Any], None]):
        self.hook = hook

    def __call__(self, g: Any) -> None:
        pass


class Output(Node):
    """Stands between a Function with several outputs and the users of one of them."""

    __slots__ = ("index",)

    def __init__(self, parent: Node, index: int):
        super().__init__(parent)
        self.index = index

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (Outputs({self.index: g}),)


class Outputs(dict[int, Any]):
    """Gradients of some of the outputs of a Function; they add up output by output."""

    def __add__(self, other: Outputs) -> Outputs:
        return Outputs(
            {
                i: self[i] + other[i] if i in self and i in other else self.get(i, other.get(i))
                for i in {**self, **other}
            }
        )
