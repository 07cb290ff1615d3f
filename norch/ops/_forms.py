"""The function bodies behind pointwise.py, one a form: a call into C, and a node when a gradient is wanted.

This is the hot path: what a form does not need for a row is decided when the function is made, not when it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _handle
from .._handle import alias, tick
from .._lib import lib, listed
from ..autograd.forms import Binary, Operation, Ternary, Unary
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, edge, meta_of, written
from ..dtype import get_default_dtype
from ._operand import kernel_operand, named_function, operand

Op = Callable[..., Any]


OPS = {name: op for op, name in enumerate(listed(lib.norch_op_name))}  # opcode by name
_new = object.__new__


def _finish(function: Any, name: str, about: str, in_place: Any = None) -> Any:
    named_function(function, name, about)
    function.__module__ = __package__ + ".pointwise"  # where it will stand
    if in_place is not None:
        function.in_place = in_place  # makes the method name_ of what accepts its argument
    return function


# ---- one input ----------------------------------------------------------------------------------------------------


def unary(name: str, node_class: type[Unary] | None, about: str) -> Op:
    """The function of a UNARY row; node_class is its derivative, None where there is none."""
    op, call = OPS[name], lib.norch_unary
    saves_x = node_class is not None and "x" in node_class.saves[0]
    saves_out = node_class is not None and node_class.saves_out

    def function(input: Any) -> Any:  # noqa: A002  (PyTorch's name)
        x = input if type(input) is _handle.result_class else kernel_operand(input, name)
        out = call(op, x)
        to_x = x._node if x._view is None else edge(x)
        if to_x is not None and mode.enabled and node_class is not None:
            node = _new(node_class)
            node.edges = (to_x,)
            node.seq = tick()
            node.hooks = node.likes = None
            if saves_x:
                node._x = x
            if saves_out:
                node._out = alias(out)
            out._node = node
        return out

    function.opcode, function.derivative = op, node_class  # type: ignore[attr-defined]  # for a product that ends in it
    return _finish(function, name, about, lambda _: unary_(name, node_class))


def unary_(name: str, node_class: type[Unary] | None) -> Op:
    """The in-place method of a UNARY row."""
    op = OPS[name]
    saves_x = node_class is not None and "x" in node_class.saves[0]
    saves_out = node_class is not None and node_class.saves_out

    def function_(self: Any) -> Any:
        check_writable(self, name + "_")
        to_x = edge(self)
        node = None
        if to_x is not None and mode.enabled and node_class is not None:
            node = node_class(to_x)
            node.likes = None
            node._x = before(self) if saves_x else None
            node._out = None
        lib.norch_unary_into(self, op, self)
        if node is not None and saves_out:
            node._out = alias(self)
        written(self, node, saves_out)
        return self

    return _finish(function_, name + "_", f"{name}() in place.")


def before(x: Any) -> Any:
    """x as it is now, with its history: what a node saves of a tensor that is about to be written to."""
    old = lib.norch_clone(x)
    old._node = edge(x)
    return old


# ---- two inputs ---------------------------------------------------------------------------------------------------


def binary(
    name: str, node_class: type[Binary] | None, about: str = "", accept: Callable[[Any, str], Any] = kernel_operand
) -> Op:
    """The function of a BINARY row. accept turns what is no tensor into one, or into NotImplemented."""
    op, call = OPS[name], lib.norch_binary
    a_for_a, a_for_b, b_for_a, b_for_b = needs = _needs(node_class)
    saves_inputs = any(needs)
    saves_out = node_class is not None and node_class.saves_out

    def function(input: Any, other: Any) -> Any:  # noqa: A002
        tensor = _handle.result_class
        a = input if type(input) is tensor else kernel_operand(input, name)
        b = other
        if type(b) is not tensor:
            if (b := accept(b, name)) is NotImplemented:
                return b
            if isinstance(input, (int, float)):  # two numbers: what comes out takes part in promotion like any tensor
                a = lib.norch_cast(a, (get_default_dtype() if isinstance(input, float) else a.dtype).code)
        out = call(op, a, b)
        to_a = a._node if a._view is None else edge(a)
        to_b = b._node if b._view is None else edge(b)
        if (to_a is not None or to_b is not None) and mode.enabled and node_class is not None:
            node = _new(node_class)
            node.edges = (to_a, to_b)
            node.seq = tick()
            node.hooks = None
            node.likes = (meta_of(a), meta_of(b)) if out._mixed else None
            if saves_inputs:
                node._a = a if (a_for_a and to_a is not None) or (a_for_b and to_b is not None) else None
                node._b = b if (b_for_a and to_a is not None) or (b_for_b and to_b is not None) else None
            if saves_out:
                node._out = alias(out)
            out._node = node
        return out

    return _finish(function, name, about, lambda accept: binary_(name, node_class, accept))


def _needs(node_class: type[Binary] | None) -> tuple[bool, bool, bool, bool]:
    if node_class is None:
        return False, False, False, False
    for_a, for_b = node_class.saves
    return "a" in for_a, "a" in for_b, "b" in for_a, "b" in for_b


def binary_(name: str, node_class: type[Binary] | None, accept: Callable[[Any, str], Any]) -> Op:
    """The in-place method of a BINARY row; accept as in binary()."""
    op = OPS[name]
    a_for_a, a_for_b, b_for_a, b_for_b = _needs(node_class)
    saves_out = node_class is not None and node_class.saves_out

    def function_(self: Any, other: Any) -> Any:
        if (other := accept(other, name + "_")) is NotImplemented:
            return other
        check_writable(self, name + "_")
        to_a, to_b = edge(self), edge(other)
        node = None
        if (to_a is not None or to_b is not None) and mode.enabled and node_class is not None:
            node = node_class(to_a, to_b)
            node.likes = (meta_of(self), meta_of(other))
            saves_a = (a_for_a and to_a is not None) or (a_for_b and to_b is not None)
            saves_b = (b_for_a and to_a is not None) or (b_for_b and to_b is not None)
            node._a = before(self) if saves_a else None
            node._b = (before(other) if other is self else other) if saves_b else None
            node._out = None
        lib.norch_binary_into(self, op, self, other)
        if node is not None and saves_out:
            node._out = alias(self)
        written(self, node, saves_out)
        return self

    return _finish(function_, name + "_", f"{name}() in place.")


# ---- three inputs -------------------------------------------------------------------------------------------------


def ternary(name: str, node_class: type[Ternary], about: str = "") -> Op:
    """The function of a TERNARY or CHOICE row."""
    op, call = OPS[name], lib.norch_ternary

    def function(a: Any, b: Any, c: Any) -> Any:
        inputs = (kernel_operand(a, name), kernel_operand(b, name), kernel_operand(c, name))
        out = call(op, inputs[0], inputs[1], inputs[2])
        edges = (edge(inputs[0]), edge(inputs[1]), edge(inputs[2]))
        if mode.enabled and edges != (None, None, None):
            node = node_class(*edges)
            node.likes = tuple(meta_of(x) for x in inputs) if out._mixed else None
            _save(node, inputs, out)
        return out

    return _finish(function, name, about)


def _save(node: Operation, inputs: tuple[Any, ...], out: Any) -> None:
    """Makes node the history of out, with what its derivative needs."""
    node_class: Any = type(node)
    slots, keeps_out = _kept(node_class, tuple([to is not None for to in node.edges]))
    for (slot, keeps), x in zip(slots, inputs):  # noqa: B905  (an input each)
        setattr(node, slot, x if keeps else None)
    node._out = alias(out) if keeps_out else None
    out._node = node


@functools.cache
def _kept(node_class: Any, wanted: tuple[bool, ...]) -> tuple[list[tuple[str, bool]], bool]:
    """For each input its slot, and whether the wanted gradients need it; and whether they need the result."""
    needed = {saved for want, names in zip(wanted, node_class.saves, strict=True) if want for saved in names}
    return [("_" + name, name in needed) for name in node_class.inputs], "out" in needed


# ---- what is composed, with a derivative of its own ----------------------------------------------------------------


def derived(node_class: type[Operation], function: Op, *inputs: Any, **slots: Any) -> Any:
    """function(*inputs), a fresh tensor, not recorded itself: node_class, with these slots, is its derivative."""
    edges = [edge(x) for x in inputs]
    if not mode.enabled or not any(edges):
        return function(*inputs)
    mode.enabled = False
    try:
        out = function(*inputs)
    finally:
        mode.enabled = True
    node = node_class(*edges)
    node.likes = tuple([meta_of(x) for x in inputs])
    for name, value in slots.items():
        setattr(node, name, value)
    _save(node, inputs, out)
    return out


def hang(out: Any, node_class: Any, x: Any, **saved: Any) -> Any:
    """out, with a node that goes back to x and holds what is saved."""
    if mode.enabled and (to_x := edge(x)) is not None:
        node = node_class(to_x)
        node._out = node.likes = None
        for name, value in saved.items():
            setattr(node, name, value)
        out._node = node
    return out


# ---- operators ---------------------------------------------------------------------------------------------------


def operator(name: str, node_class: type[Binary] | None = None) -> Op:
    """A binary operator: what we cannot read gets the chance to read us."""
    return binary(name, node_class, accept=operand)


def reflected(function: Op) -> Op:
    def swapped(self: Any, other: Any) -> Any:
        other = operand(other, function.__name__)
        return NotImplemented if other is NotImplemented else function(other, self)

    return swapped
