"""Forms of built-in nodes: what one saves, and when its gradients are asked for.

An entry of derivatives/ writes one method for each input: ``grad_x(self, g)`` for the input x, and so on. What
such a method (or propagate, where a class writes that) mentions is what the node saves: ``self.x``, ``self.a``,
``self.b``, ``self.c`` are inputs, ``self.out`` is the result. Nothing else is kept alive.
"""

from __future__ import annotations

from typing import Any

from .._handle import alias
from .grad_mode import mode
from .node import Node, saved_intact


class Operation(Node):
    """A built-in operation. ``saves[i]`` names the inputs that the gradient of input i needs, and "out" if that."""

    __slots__ = ("_out", "likes")

    shares_grad = False
    inputs: tuple[str, ...] = ()
    saves: tuple[frozenset[str], ...] = ()
    saves_out = False

    # What the slots of the classes hold, for type checkers.
    _x: Any
    _a: Any
    _b: Any
    _c: Any
    _out: Any
    like: Any
    step: tuple[Any, tuple[Any, ...]]
    axes: Any
    keepdim: Any
    param: float
    dim: int
    index: Any
    sizes: list[int | None]
    dtypes: list[Any]
    vectors: tuple[bool, bool]
    transposed: tuple[bool, bool]
    bias: Any

    # Shape and dtype of each input, where broadcasting or promotion made the result differ; else None.
    likes: tuple[Any, ...] | None

    @property
    def out(self) -> Any:
        """The result. The node keeps only its elements: with its place in the graph it would be a cycle."""
        saved = self._out
        if saved is None or saved._cell is not None:
            saved_intact(self, saved)
        if mode.enabled:
            saved = alias(saved)
            saved._node = self
        return saved

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        mentioned: list[frozenset[str]] = []
        for name in cls.inputs:
            code = getattr(getattr(cls, f"grad_{name}", cls.propagate), "__code__", None)
            mentioned.append(frozenset(code.co_names) if code else frozenset())
        cls.saves = tuple(names & {*cls.inputs, "out"} for names in mentioned)
        cls.saves_out = any("out" in names for names in mentioned)

    def release(self) -> None:
        self._out = None


class Unary(Operation):
    """out = f(x)."""

    __slots__ = ("_x",)
    inputs = ("x",)
    grad_x: Any

    @property
    def x(self) -> Any:
        saved = self._x
        if saved is None or saved._cell is not None:
            saved_intact(self, saved)
        return saved

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (self.grad_x(g),)

    def release(self) -> None:
        self._x = self._out = None


class Binary(Operation):
    """out = f(a, b)."""

    __slots__ = ("_a", "_b")
    inputs: tuple[str, ...] = ("a", "b")
    grad_a: Any
    grad_b: Any

    @property
    def a(self) -> Any:
        saved = self._a
        if saved is None or saved._cell is not None:
            saved_intact(self, saved)
        return saved

    @property
    def b(self) -> Any:
        saved = self._b
        if saved is None or saved._cell is not None:
            saved_intact(self, saved)
        return saved

    def propagate(self, g: Any) -> tuple[Any, ...]:
        to_a, to_b = self.edges
        grad_a = None if to_a is None else self.grad_a(g)
        grad_b = None if to_b is None else self.grad_b(g)
        likes = self.likes
        if likes is not None:
            if grad_a is not None:
                grad_a = grad_a._sum_to(likes[0])
            if grad_b is not None:
                grad_b = grad_b._sum_to(likes[1])
        return grad_a, grad_b

    def release(self) -> None:
        self._a = self._b = self._out = None


class Ternary(Binary):
    """out = f(a, b, c): a and b are saved as a Binary saves them."""

    __slots__ = ("_c",)
    inputs = ("a", "b", "c")
    grad_c: Any

    @property
    def c(self) -> Any:
        saved = self._c
        if saved is None or saved._cell is not None:
            saved_intact(self, saved)
        return saved

    def propagate(self, g: Any) -> tuple[Any, ...]:
        to_a, to_b, to_c = self.edges
        grads = (
            None if to_a is None else self.grad_a(g),
            None if to_b is None else self.grad_b(g),
            None if to_c is None else self.grad_c(g),
        )
        if self.likes is None:
            return grads
        return tuple(None if part is None else part._sum_to(like) for part, like in zip(grads, self.likes, strict=True))

    def release(self) -> None:
        self._a = self._b = self._c = self._out = None


class Reduction(Unary):
    """out = x reduced over axes. like: the shape of x; axes: None for all."""

    __slots__ = ("axes", "keepdim", "like", "param")

    def spread(self, g: Any) -> Any:
        """g, of the shape of the result, seen in the shape of x."""
        return g._spread(self.like, self.axes, self.keepdim)


class ViewOf(Operation):
    """out = a view of x. like: the shape of x; step: how it was taken, (function, arguments)."""

    __slots__ = ("like", "step")
    inputs = ("x",)
    shares_grad = True

    grad_x: Any

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (self.grad_x(g),)
