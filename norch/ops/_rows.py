"""Makers of the functions of rows of csrc/ops.def: one body calls C and, if a gradient is wanted, makes the node.

This is the hot path: record() (autograd/record.py), specialized for one, two and three inputs and for reductions. What
a row does not need is decided when its function is made, not when it runs.
"""

from __future__ import annotations

import math

from .._binding.header import listed
from .._binding.library import lib
from .._package.typing import Any, Operand, Tensor
from .._tensor import handle as _handle
from .._tensor.handle import alias, meta_of, next_seq
from ..autograd.derivative import OpNode
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, finish_write
from ..autograd.outlive import snapshot
from ..autograd.record import gradient_edge, record
from ..dtype import get_default_dtype
from ._operand import kernel_operand, operand, refused

OPCODES = {name: op for op, name in enumerate(listed(lib.norch_op_name))}
UNARY_LAYOUT: tuple[str, ...] = ("x", "out")
BINARY_LAYOUT: tuple[str, ...] = ("a", "b", "out")
TERNARY_LAYOUT: tuple[str, ...] = ("a", "b", "c", "out")
REDUCTION_LAYOUT: tuple[str, ...] = ("x", "out", "x_meta", "axes", "keepdim", "param")
_new = object.__new__


def _needed(node_class: type[OpNode] | None, *inputs: str) -> list[tuple[bool, ...]]:
    """For each input, whether its gradient needs each input and the result. Below, a_for_b: whether b's needs a."""
    if node_class is None:
        return [(False,) * (len(inputs) + 1)] * len(inputs)
    return [tuple(map(names.__contains__, (*inputs, "out"))) for names in node_class.save_plan.needed]


# ---- one input ----------------------------------------------------------------------------------------------------


def unary(name: str, node_class: type[OpNode] | None) -> Any:
    """The function of a UNARY row. node_class: that of its derivative, or None."""
    op, call = OPCODES[name], lib.norch_unary
    ((saves_x, saves_out),) = _needed(node_class, "x")

    def function(input: Tensor) -> Tensor:  # PyTorch's name
        if type(input) is _handle.result_class:
            x = input
        elif (x := operand(input, name)) is NotImplemented:
            return refused(function, name, False, input)
        out = call(op, x)
        to_x = x._node if x._view is None else gradient_edge(x)
        if to_x is not None and mode.enabled and node_class is not None:
            node = _new(node_class)
            node.edges = (to_x,)
            node.seq = next_seq()
            node.hooks = node.metas = None
            node._saved = (x if saves_x else None, alias(out) if saves_out else None)
            out._node = node
        return out

    function.opcode, function.node_class = op, node_class  # type: ignore[attr-defined]  # for a fused epilogue
    return function


def unary_(name: str, node_class: type[OpNode] | None) -> Any:
    """The in-place method of a UNARY row."""
    op, in_place = OPCODES[name], name + "_"
    ((saves_x, saves_out),) = _needed(node_class, "x")

    def function_(self: Tensor) -> Tensor:
        check_writable(self, in_place)
        to_x = gradient_edge(self)
        node = None
        if to_x is not None and mode.enabled and node_class is not None:
            node = _node(node_class, (to_x,), None)
            old = snapshot(self) if saves_x else None
        lib.norch_unary_into(self, op, self)
        if node is not None:
            node._saved = (old, alias(self) if saves_out else None)
        finish_write(self, node, saves_out)
        return self

    return function_


def _node(node_class: type[OpNode], edges: tuple[Any, ...], metas: Any) -> OpNode:
    node = _new(node_class)
    node.edges, node.seq, node.hooks, node.metas = edges, next_seq(), None, metas
    return node


# ---- two inputs ---------------------------------------------------------------------------------------------------


def binary(name: str, node_class: type[OpNode] | None, is_operator: bool = False) -> Any:
    """The function of a BINARY row. As an operator it gives NotImplemented for what is no tensor, number or array."""
    op, call = OPCODES[name], lib.norch_binary
    (a_for_a, b_for_a, out_for_a), (a_for_b, b_for_b, out_for_b) = _needed(node_class, "a", "b")
    saves_out = out_for_a or out_for_b
    saves = saves_out or a_for_a or b_for_a or a_for_b or b_for_b
    is_comparison = name in ("eq", "ne", "lt", "le", "gt", "ge")

    def function(input: Any, other: Any) -> Tensor:
        tensor = _handle.result_class
        if type(input) is tensor:
            a = input
        elif (a := operand(input, name)) is NotImplemented:
            return refused(function, name, is_operator, input, other)
        b = other
        if type(b) is not tensor:
            try:
                b = operand(b, name)
            except OverflowError:
                if not is_comparison or a.dtype.kind not in "iu":
                    raise
                b = operand(math.inf if other > 0 else -math.inf)  # beyond 64 bits, and so beyond every element
            if b is NotImplemented:
                return refused(function, name, is_operator, input, other)
            if b is not other and isinstance(
                input, (int, float, complex)
            ):  # two numbers give what is promoted as any tensor is
                a = lib.norch_cast(a, (get_default_dtype() if isinstance(input, float) else a.dtype).code)
        out = call(op, a, b)
        to_a = a._node if a._view is None else gradient_edge(a)
        to_b = b._node if b._view is None else gradient_edge(b)
        if (to_a is not None or to_b is not None) and mode.enabled and node_class is not None:
            node = _new(node_class)
            node.edges = (to_a, to_b)
            node.seq = next_seq()
            node.hooks = None
            node.metas = (meta_of(a), meta_of(b)) if out._mixed else None
            if saves:
                node._saved = (
                    a if (a_for_a and to_a is not None) or (a_for_b and to_b is not None) else None,
                    b if (b_for_a and to_a is not None) or (b_for_b and to_b is not None) else None,
                    alias(out) if saves_out else None,
                )
            out._node = node
        return out

    function.opcode = op  # type: ignore[attr-defined]
    return function


def binary_(name: str, node_class: type[OpNode] | None, is_operator: bool = False) -> Any:
    """The in-place method of a BINARY row; is_operator as in binary()."""
    op, in_place = OPCODES[name], name + "_"
    as_tensor = operand if is_operator else kernel_operand
    (a_for_a, b_for_a, out_for_a), (a_for_b, b_for_b, out_for_b) = _needed(node_class, "a", "b")
    saves_out = out_for_a or out_for_b

    def function_(self: Tensor, other: Operand) -> Tensor:
        if (other := as_tensor(other, in_place)) is NotImplemented:
            return other
        check_writable(self, in_place, other)
        to_a = self._node if self._view is None else gradient_edge(self)
        to_b = other._node if other._view is None else gradient_edge(other)
        node = old = None
        if (to_a is not None or to_b is not None) and mode.enabled and node_class is not None:
            node = _node(node_class, (to_a, to_b), (meta_of(self), meta_of(other)))
            saves_a = (a_for_a and to_a is not None) or (a_for_b and to_b is not None)
            saves_b = (b_for_a and to_a is not None) or (b_for_b and to_b is not None)
            old = (
                snapshot(self) if saves_a else None,
                (snapshot(other) if other is self else other) if saves_b else None,
            )
        lib.norch_binary_into(self, op, self, other)
        if node is not None and old is not None:
            node._saved = (*old, alias(self) if saves_out else None)
        finish_write(self, node, saves_out)
        return self

    return function_


# ---- three inputs, and reductions -----------------------------------------------------------------------------------


def ternary(name: str, node_class: type[OpNode] | None) -> Any:
    """The function of a TERNARY or CHOICE row."""
    op, call = OPCODES[name], lib.norch_ternary

    def function(a: Any, b: Any, c: Any) -> Tensor:
        tensor = _handle.result_class
        if type(a) is not tensor:
            a = kernel_operand(a, name)
        if type(b) is not tensor:
            b = kernel_operand(b, name)
        if type(c) is not tensor:
            c = kernel_operand(c, name)
        out = call(op, a, b, c)
        if node_class is None or (
            (a._node if a._view is None else gradient_edge(a)) is None
            and (b._node if b._view is None else gradient_edge(b)) is None
            and (c._node if c._view is None else gradient_edge(c)) is None
        ):
            return out
        return record(node_class, out, (a, b, c), (), out._mixed)

    return function


def reduction(name: str, node_class: type[OpNode] | None) -> Any:
    """The function of a REDUCE row: of x, the axes (a sequence, None for all), keepdim, a dtype code (-1: that of the
    table) and the row's parameter. Gradient functions find it in param; correction overrides it there."""
    op, call = OPCODES[name], lib.norch_reduce
    ((saves_x, saves_out),) = _needed(node_class, "x")

    def function(x: Tensor, axes: Any = None, keepdim: bool = False, dtype: int = -1, param: float = 0.0) -> Tensor:
        out = call(op, x, axes, keepdim, dtype, param)
        to_x = x._node if x._view is None else gradient_edge(x)
        if to_x is not None and mode.enabled and node_class is not None:
            node = _new(node_class)
            node.edges = (to_x,)
            node.seq = next_seq()
            node.hooks = node.metas = None
            node._saved = (
                x if saves_x else None, alias(out) if saves_out else None, meta_of(x), axes, keepdim, param
            )  # fmt: skip
            out._node = node
        return out

    return function
