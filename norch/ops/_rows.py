"""Functions that make the functions of rows of csrc/ops.def. One call into C computes, and makes the node if a gradient
is wanted (csrc/python/calls.c, node.c). The functions here convert arguments that are no tensors, and record writes in
place.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .._binding.header import listed
from .._binding.library import constants, lib
from .._package.typing import Any, Operand, Tensor
from .._tensor import handle as _handle
from ..autograd.derivative import OpNode
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, finish_write
from ..autograd.record import is_recorded
from ..dtype import get_default_dtype
from ._autocast import casts_of, in_autocast
from ._operand import kernel_operand, operand, refused

OPCODES = {name: op for op, name in enumerate(listed(lib.norch_op_name))}
REDUCTION_OTHERS = ("axes", "keepdim", "dtype", "param")
_FLOATS = constants["FLOAT32"], constants["FLOAT64"]
NodeClass = Callable[[], type[OpNode]] | None  # a class that is made when it is first needed


def _calls(form: str, name: str, node_class: NodeClass, autocast: str = "") -> Any:
    """Two functions that call a row and record it. The first returns NotImplemented if an input is no Tensor, or if
    there is a policy and the thread casts."""
    return lib.norch_operation(form, OPCODES[name], node_class, casts_of(autocast))[:2]


def writes(form: str, name: str) -> Any:
    """The function that writes a row into its first input and returns that input, if no input has a history. It returns
    NotImplemented otherwise.
    """
    return lib.norch_operation(form, OPCODES[name], None, 0)[2]


def _recorded_write(form: str, name: str, node_class: NodeClass) -> Any:
    """The function that writes a row of x and other tensors into x, with a node if a gradient is wanted."""
    op, into = OPCODES[name], getattr(lib, f"norch_{form}_into")

    def write(x: Tensor, *others: Tensor) -> Tensor:
        node = None if node_class is None else lib.norch_node_of_write(node_class(), x, *others)
        into(x, op, x, *others)
        finish_write(x, node, node is not None and node.save_plan.out)
        return x

    return write


def is_row(function: Any) -> bool:
    """Whether a function has the call of a row, which returns NotImplemented if arguments have to be converted."""
    return hasattr(function, "call") and not hasattr(function, "__wrapped__")


def as_method(function: Any) -> Any:
    """The attribute of Tensor for a function. For a row it is an object that makes its call without a Python function
    (csrc/python/method.c)."""
    return lib.norch_method(function.call, function, function.__code__.co_argcount) if is_row(function) else function


# ---- one input ----------------------------------------------------------------------------------------------------


def unary(name: str, node_class: NodeClass, autocast: str = "") -> Any:
    """The function of a UNARY row. node_class returns the class of the nodes of its derivative; None if it has none."""
    call, converted = _calls("unary", name, node_class, autocast)

    def function(input: Tensor) -> Tensor:  # PyTorch's name
        out = call(input)
        if out is not NotImplemented:
            return out
        if mode.casting and (out := in_autocast(function, input)) is not None:
            return out
        if (x := operand(input, name)) is NotImplemented:
            return refused(function, name, False, input)
        return converted(x)

    function.opcode, function.node_class = OPCODES[name], node_class  # type: ignore[attr-defined]  # for an epilogue
    function.call = call  # type: ignore[attr-defined]  # for _public.py
    return function


def unary_(name: str, node_class: NodeClass) -> Any:
    """The in-place method of a UNARY row."""
    in_place, write, recorded = name + "_", writes("unary", name), _recorded_write("unary", name, node_class)

    def function_(self: Tensor) -> Tensor:
        out = write(self)
        if out is not NotImplemented:
            return out
        check_writable(self, in_place)
        return recorded(self)

    function_.call = write  # type: ignore[attr-defined]
    return function_


# ---- two inputs ---------------------------------------------------------------------------------------------------


def binary(name: str, node_class: NodeClass, autocast: str = "", *, is_operator: bool = False) -> Any:
    """The function of a BINARY row. As an operator it returns NotImplemented unless operands are
    tensors, numbers or arrays."""
    call, converted = _calls("binary", name, node_class, autocast)
    is_comparison = name in ("eq", "ne", "lt", "le", "gt", "ge")

    def function(input: Any, other: Any) -> Tensor:
        out = call(input, other)
        if out is not NotImplemented:
            return out
        if mode.casting and (out := in_autocast(function, input, other)) is not None:
            return out
        if (a := operand(input, name)) is NotImplemented:
            return refused(function, name, is_operator, input, other)
        try:
            b = operand(other, name)
        except OverflowError:
            if not is_comparison or a.dtype.kind not in "iu":
                raise
            b = operand(math.inf if other > 0 else -math.inf)  # beyond 64 bits, and so beyond every element
        if b is NotImplemented:
            return refused(function, name, is_operator, input, other)
        if b is not other and isinstance(input, (int, float, complex)):  # the result of two numbers promotes as any
            a = lib.norch_cast(a, (get_default_dtype() if isinstance(input, float) else a.dtype).code)
        return converted(a, b)

    function.opcode, function.call = OPCODES[name], call  # type: ignore[attr-defined]
    return function


def binary_(name: str, node_class: NodeClass, is_operator: bool = False) -> Any:
    """The in-place method of a BINARY row; is_operator as in binary()."""
    in_place, write, recorded = name + "_", writes("binary", name), _recorded_write("binary", name, node_class)
    as_tensor = operand if is_operator else kernel_operand

    def function_(self: Tensor, other: Operand) -> Tensor:
        out = write(self, other)
        if out is not NotImplemented:
            return out
        b: Any = other
        if type(b) is not _handle.result_class and (b := as_tensor(b, in_place)) is NotImplemented:
            return b
        check_writable(self, in_place, b)
        return recorded(self, b)

    function_.call = write  # type: ignore[attr-defined]
    return function_


# ---- three inputs, and reductions -----------------------------------------------------------------------------------


def ternary(name: str, node_class: NodeClass) -> Any:
    """The function of a TERNARY or CHOICE row."""
    call, converted = _calls("ternary", name, node_class)

    def function(a: Any, b: Any, c: Any) -> Tensor:
        out = call(a, b, c)
        if out is not NotImplemented:
            return out
        return converted(kernel_operand(a, name), kernel_operand(b, name), kernel_operand(c, name))

    return function


def ternary_(row: str, node_class: NodeClass, name: str) -> Any:
    """A function that writes a TERNARY or CHOICE row into a and returns True. It writes nothing and returns False if a
    gradient is wanted and the row has no derivative, or computes in another dtype."""
    recorded = _recorded_write("ternary", row, node_class)

    def function_(a: Tensor, second: Any, third: Any) -> bool:
        b, c = kernel_operand(second, name), kernel_operand(third, name)
        if (node_class is None or a._dtype not in _FLOATS) and is_recorded((a, b, c)):
            return False
        recorded(a, b, c)
        return True

    function_.call = writes("ternary", row)  # type: ignore[attr-defined]
    return function_


def reduction(name: str, node_class: NodeClass) -> Any:
    """The function of a REDUCE row. Its arguments are x, the axes (a sequence, or None for all), keepdim, a dtype code
    (-1 for the dtype that the table states) and the row's parameter. Gradient functions find the parameter in param;
    correction overrides it there.
    """
    _, call = _calls("reduce", name, node_class)

    def function(x: Tensor, axes: Any = None, keepdim: bool = False, dtype: int = -1, param: float = 0.0) -> Tensor:
        return call(x, axes, keepdim, dtype, param)

    return function
