"""What the graph is made of: grad modes, nodes, leaves, and Functions of the user.

A node remembers an operation that was done: ``edges`` say where the gradients of its inputs go (a node, or None
for an input that needs none), and ``propagate(g)`` turns the gradient of the output into those of the inputs.
Built-in operations are Nodes themselves (derivatives.py); users write a ``Function`` with forward and backward.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .._handle import Handle, alias, cell_of, tick, wrap
from .._lib import lib
from ..errors import Error
from . import inplace

F = TypeVar("F", bound=Callable[..., Any])


# ---- grad mode -------------------------------------------------------------------------------------------------


class _Mode(threading.local):
    enabled = True


mode = _Mode()


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded."""
    return mode.enabled


class set_grad_enabled:  # noqa: N801  (PyTorch's name)
    """Turns recording on or off in this thread: at once, until the end of a `with`, or within a decorated function.

    >>> x = norch.ones(2, requires_grad=True)
    >>> with norch.set_grad_enabled(False):
    ...     print((x * 2).requires_grad)
    False
    """

    def __init__(self, mode_: bool):
        self.enabled = bool(mode_)
        self.before = mode.enabled
        mode.enabled = self.enabled

    def __enter__(self) -> None:
        mode.enabled = self.enabled

    def __exit__(self, *_: object) -> None:
        mode.enabled = self.before

    def __call__(self, function: F) -> F:
        mode.enabled = self.before  # as a decorator it acts inside the function only
        return _decorate(function, lambda: set_grad_enabled(self.enabled))


class _Within:
    """A grad mode for a `with` or a decorated function; one object may be entered many times, also nested."""

    enabled: bool

    def __init__(self) -> None:
        self.before: list[bool] = []

    def __new__(cls, function: Any = None) -> Any:
        return object.__new__(cls) if function is None else _decorate(function, cls)

    def __enter__(self) -> None:
        self.before.append(mode.enabled)
        mode.enabled = self.enabled

    def __exit__(self, *_: object) -> None:
        mode.enabled = self.before.pop()

    def __call__(self, function: F) -> F:
        return _decorate(function, type(self))


def _decorate(function: F, make: Callable[[], Any]) -> F:
    @functools.wraps(function)
    def inside(*arguments: Any, **named: Any) -> Any:
        with make():
            return function(*arguments, **named)

    return cast(F, inside)


class no_grad(_Within):  # noqa: N801  (PyTorch's name)
    """Operations inside are not recorded: ``with no_grad():`` or ``@no_grad()``.

    >>> x = norch.ones(2, requires_grad=True)
    >>> with norch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    enabled = False


class enable_grad(_Within):  # noqa: N801  (PyTorch's name)
    """Operations inside are recorded, also within no_grad()."""

    enabled = True


# ---- nodes -----------------------------------------------------------------------------------------------------


class Node:
    """One recorded operation.

    edges   for each differentiable input, the node that its gradient goes to, or None
    seq     when it was made; inputs are always older, which is all the order that the engine needs
    hooks   functions of the incoming gradient, in order; each may return another gradient
    """

    __slots__ = ("__weakref__", "edges", "hooks", "seq")

    # True when propagate may hand on its argument, or a view of it, instead of a fresh tensor.
    passes = True

    edges: tuple[Node | None, ...]
    seq: int
    hooks: list[Callable[[Any], Any]] | None

    def __init__(self, *edges: Node | None):
        self.edges = edges
        self.seq = tick()
        self.hooks = None

    def propagate(self, g: Any) -> tuple[Any, ...]:
        raise NotImplementedError(f"{self.name()} has no derivative")

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
    """Raises when a tensor saved by node was written to after node was made."""
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
        return Outputs({i: self[i] + other[i] if i in self and i in other else self.get(i, other.get(i))
                        for i in {**self, **other}})


# ---- Functions of the user --------------------------------------------------------------------------------------


class Function(Node):
    """An operation with a derivative of your own. Its instance is `ctx` and the node of the graph at once.

    >>> class Cube(norch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * g
    >>> x = norch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    # No __slots__: users set attributes on ctx.

    def __init__(self) -> None:
        super().__init__()
        self.needs_input_grad: tuple[bool, ...] = ()
        self._saved: tuple[Any, ...] = ()
        self._saved_outputs: dict[int, int] = {}
        self._released = False
        self._not_differentiable: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._output_shapes: list[Any] = []
        self._materialize = True

    @staticmethod
    def forward(ctx: Any, *arguments: Any, **named: Any) -> Any:
        """The values. Runs without recording."""
        raise NotImplementedError("a Function needs a static forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """One gradient for each argument of forward, None where there is none."""
        raise NotImplementedError("a Function needs a static backward(ctx, ...)")

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors (inputs, outputs or others) for backward, which finds them in ctx.saved_tensors."""
        self._saved = tensors

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """These outputs get no gradient."""
        self._not_differentiable = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        """These inputs were changed in place by forward, and are returned by it."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """False: backward gets None, not zeros, for outputs that nobody used."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What save_for_backward kept, in its order."""
        if self._released:
            raise freed(self)
        tensors = []
        for position, saved in enumerate(self._saved):
            if saved is None:
                tensors.append(None)
                continue
            saved_intact(self, saved)
            index = self._saved_outputs.get(position)
            if index is not None and mode.enabled:  # an output: give it back its place in the graph
                saved = alias(saved)
                saved._node = self if len(self._output_shapes) == 1 else Output(self, index)
            tensors.append(saved)
        return tuple(tensors)

    @classmethod
    def apply(cls, *arguments: Any, **named: Any) -> Any:
        """Calls forward and records the node."""
        node = cls()
        inputs = [argument if isinstance(argument, Handle) else None for argument in arguments]
        edges = tuple(None if x is None else inplace.edge(x) for x in inputs)
        node.needs_input_grad = tuple(edge is not None for edge in edges)
        record = mode.enabled and any(node.needs_input_grad)
        with no_grad():
            result = cls.forward(node, *arguments, **named)
        if record:
            node.edges = edges
            node._record(result if isinstance(result, tuple) else (result,), inputs)
            if not isinstance(result, tuple) and any(result is x for x in inputs) and not node._is_dirty(result):
                return node._identity(result)
        return result

    def _is_dirty(self, x: Any) -> bool:
        return any(x is one for one in self._dirty)

    def _identity(self, x: Any) -> Any:
        """forward returned an input itself: the output is a view of it, so that the input keeps its own history."""
        out = wrap(lib.norch_alias(x._h))
        out._cell = cell_of(x)
        out._node = self
        return out

    def _record(self, outputs: tuple[Any, ...], inputs: list[Any]) -> None:
        for x in self._dirty:
            x._bump()
        self.seq = tick()  # forward may have made nodes of its own, and writes in place
        self._output_shapes = [inplace.like_of(out) if isinstance(out, Handle) else None for out in outputs]
        for position, saved in enumerate(self._saved):
            for index, out in enumerate(outputs):
                if saved is out and not any(saved is x for x in inputs):
                    self._saved = (*self._saved[:position], alias(out), *self._saved[position + 1 :])
                    self._saved_outputs[position] = index
        for index, out in enumerate(outputs):
            if not isinstance(out, Handle) or any(out is one for one in self._not_differentiable):
                continue
            if any(out is x for x in inputs) and not self._is_dirty(out):
                continue
            if not cast(Any, out).dtype.is_floating_point:
                continue
            node = self if len(outputs) == 1 else Output(self, index)
            if self._is_dirty(out):
                inplace.rebase(out, node)
            else:
                out._node = node

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if isinstance(g, Outputs):
            grads = [g.get(i) for i in range(len(self._output_shapes))]
            if self._materialize:
                grads = [
                    inplace.zeros_of(like) if one is None and like is not None else one
                    for one, like in zip(grads, self._output_shapes, strict=True)
                ]
        else:
            grads = [g]
        result = type(self).backward(self, *grads)
        listed = result if isinstance(result, tuple) else (result,)
        while len(listed) > len(self.edges) and listed[-1] is None:
            listed = listed[:-1]
        if len(listed) != len(self.edges):
            raise Error(
                f"{self.name()}: backward returned {len(listed)} gradients for {len(self.edges)} arguments of forward"
            )
        return listed

    def release(self) -> None:
        self._saved = ()
        self._released = True


def once_differentiable(function: F) -> F:
    """Decorates a backward whose own derivative is not wanted: it runs without recording."""
    return _decorate(function, no_grad)
