"""The nodes of the graph.

A node is a recorded operation. ``edges`` say where the gradients of its inputs go (a node, or None for an input that
needs none). ``propagate(g)`` computes the gradients of the inputs from g, the gradient of the output.
"""

from __future__ import annotations

import weakref
from collections import namedtuple
from collections.abc import Callable, Sequence

from .._binding.library import lib
from .._package.typing import TYPE_CHECKING, Any
from .._tensor.handle import Handle, counter
from .hooks import AfterNode, BeforeNode, RemovableHandle, add_node_hook

if TYPE_CHECKING:

    class NodeBase:
        """The fields of nodes; csrc/python/node.c makes them."""

        edges: tuple[Node | None, ...]
        seq: int
        hooks: list[Callable[[Any], Any]] | None
        metas: tuple[Any, ...] | None
        _saved: Any
        _stack: Any

        def _propagate(self, g: Any) -> tuple[Any, ...]: ...
        def _free(self) -> None: ...
        def _free_tensors(self) -> None: ...

else:
    NodeBase = lib.norch_node_class(counter)


class Node(NodeBase):
    """One recorded operation. A new node has its number; its other fields are None.

    edges    for each differentiable input, the node that its gradient goes to, or None
    seq      sequence number; those of the inputs are lower, and the engine visits nodes in descending order
    hooks    functions of the incoming gradient, called in order; each may return another gradient
    metas    the meta tensor of each input, if broadcasting or promotion changed its shape or dtype: the engine sums and
             casts the gradients back to these
    _saved   the values that propagate() needs
    _stack   the stack of the recorded call, if anomaly mode was on
    """

    __slots__ = ("__weakref__",)

    # Whether propagate may return its argument, or a view of it, instead of a new tensor.
    shares_grad = True
    # Whether it represents other nodes; open() then redirects its edges to these, if possible.
    is_whole = False
    # Whether the gradient from propagate is 0 outside a region; add_to(whole, g) then adds that region to a gradient.
    partial = False
    # The first depends_on inputs belong to the graph of a recorded gradient even if its derivative by them is 0. As in
    # PyTorch, relu's second derivative is then 0 instead of an error (dependence.py).
    depends_on = 0
    # For complex numbers: True if propagate multiplies g by the derivative. The engine then conjugates g and the
    # result, which gives PyTorch's gradient. False: propagate returns PyTorch's gradient itself.
    holomorphic = False
    # Whether it is the node of a view; its first edge leads to the viewed tensor.
    of_view = False
    # The gradient functions, if they may need to be wrapped for 16-bit floats (halves.py).
    declaration: Any = None

    def __init__(self, *edges: Node | None):
        self.edges = edges

    def propagate(self, g: Any) -> tuple[Any, ...]:
        raise NotImplementedError(f"{self.name()} has no derivative")

    def _without_gradient(self) -> Sequence[Any]:
        """propagate(None), for a hook that returned no gradient."""
        return [None] * len(self.edges)

    def add_to(self, whole: Any, g: Any) -> None:
        """For a partial node: adds the gradient that propagate(g) would return to whole, in place."""

    def release(self) -> None:
        """Frees the saved values."""

    def open(self) -> None:
        """See is_whole."""

    def apart(self, x: Any) -> Node:
        """The node at which all gradients of x add up. This node is the history of x. The result is this node, or for a
        compiled function's result perhaps one of the function's own nodes (program/joint.py), which then becomes the
        history of x."""
        return self

    def name(self) -> str:
        return type(self).__name__ + "Backward"

    def register_hook(self, hook: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Calls hook(grad_inputs, grad_outputs), two tuples, when backward() has computed the gradients of the inputs
        (none for a leaf). A tuple that it returns replaces them.

        >>> x = norch.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: print(grad_inputs, grad_outputs))
        >>> y.sum().backward()
        (tensor([3., 3.]), None) (tensor([1., 1.]),)
        """
        return add_node_hook(self, AfterNode(hook))

    def register_prehook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Calls hook(grad_outputs) with the result's gradient in a tuple before the inputs' gradients are computed. A
        tuple that it returns replaces it."""
        return add_node_hook(self, BeforeNode(hook))

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The edges in PyTorch's form, (node, 0)."""
        return tuple((edge, 0) for edge in self.edges)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Leaf(Node):
    """The node of a leaf tensor: adds the gradient that arrives to tensor.grad."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Handle):
        super().__init__()
        self.tensor = weakref.ref(tensor)  # the tensor owns this node; a strong reference would be a cycle

    def name(self) -> str:
        return "AccumulateGrad"

    @property
    def variable(self) -> Any:
        """The tensor; None after it was freed."""
        return self.tensor()


Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"  # programs that walk a graph expect this name


_Edge: Any = namedtuple("_Edge", "node output_nr ownership_token", defaults=(None,))


class GradientEdge(_Edge):
    """The node at which a tensor's gradient arrives. grad() and backward() take it in place of the tensor, without
    keeping the elements alive. Edges to the same result of a node are equal.

    node             the operation that made the tensor, or the node of a leaf
    output_nr        0: a node of norch has one result
    ownership_token  an empty tensor of the tensor's shape, dtype and device, if the edge was made from one
    """

    __slots__ = ()

    def node_to_walk(self) -> Node:
        """The node. NotImplementedError if it is one of several that norch.compat shows for a single node."""
        node = self[0]
        if not isinstance(node, Node):
            raise NotImplementedError(f"norch computes {node.name()} in one node with others, and has no edge there")
        return node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GradientEdge) and self[:2] == other[:2]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:2])
