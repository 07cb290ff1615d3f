"""What the graph is made of.

A node remembers an operation that was done: ``edges`` say where the gradients of its inputs go (a node, or None
for an input that needs none), and ``propagate(g)`` turns the gradient of the output into those of the inputs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from .._handle import Handle, next_seq
from .._typing import Any
from ..errors import Error


class Node:
    """One recorded operation.

    edges   for each differentiable input, the node that its gradient goes to, or None
    seq     when it was made; inputs are always older, which is all the order that the engine needs
    hooks   functions of the incoming gradient, in order; each may return another gradient
    """

    __slots__ = ("__weakref__", "edges", "hooks", "seq")

    # Whether a gradient that propagate gives may be its argument or a view of it, instead of a fresh tensor.
    shares_grad = True
    # Whether what propagate gives is 0 but for a region, and add_to(whole, g) adds that region to a gradient.
    partial = False
    # Of how many of the first inputs recorded gradients are functions even where their derivative is 0, as in PyTorch:
    # that of relu depends on x, so that its second derivative is 0 and no error (dependence.py).
    depends_on = 0
    # Of functions of complex numbers: whether propagate multiplies g by the derivative. PyTorch's gradient is then that
    # of the conjugate of g, conjugated. False: propagate gives PyTorch's gradient itself.
    holomorphic = False
    # For each input its meta tensor, where broadcasting or promotion made the result differ: the engine sums and casts
    # the gradients that propagate gives back to these.
    metas: tuple[Any, ...] | None = None

    edges: tuple[Node | None, ...]
    seq: int
    hooks: list[Callable[[Any], Any]] | None

    def __init__(self, *edges: Node | None):
        self.edges = edges
        self.seq = next_seq()
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
    version = saved._version_counter
    if version is not None and version[0] > node.seq:
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
