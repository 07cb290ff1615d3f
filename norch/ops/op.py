"""The declaration of operations: op() for rows of csrc/ops.def, @method for what is composed of other operations.

    tanh = op("tanh", "Hyperbolic tangent.", grad=lambda g, out: tanh_backward(g, out))
    mul = op("mul", "a * b.", grad_a=lambda g, b: g * b, grad_b=lambda g, a: g * a)

One declaration gives the function, the method of Tensor, the in-place method (``tanh_``) and the node of the graph.
What the gradient functions name as parameters is what the node saves: x (or a, b, c), out ... (autograd/record.py).
Families with more to say (convolution, indexing) have a page of their own, which holds the call into C, the rule and
the derivative: @differentiable, or record().
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .._handle import Handle, cell_of
from .._lib import lib
from ..autograd.grad_mode import enable_grad, mode
from ..autograd.inplace import check_writable, edge, rebase
from ..autograd.node import Leaf
from ..autograd.record import derivative
from ..dtype import can_cast
from ..errors import DTypeError, ShapeError
from . import _rows
from ._operand import kernel_operand, named_function, operand, rename_errors
from ._rows import OPCODES, snapshot

Function = Callable[..., Any]
Tensor = Any  # tensor.py makes that class, of what is declared here

# The methods and operators of Tensor that ops/ declares, by name; tensor.py makes the class of them.
METHODS: dict[str, Any] = {}

# How each form of row is called, and what its nodes save. CHOICE rows are ternary ones.
_FORMS: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {
    "unary": (_rows.unary, ("x",), _rows.UNARY_LAYOUT),
    "binary": (_rows.binary, ("a", "b"), _rows.BINARY_LAYOUT),
    "ternary": (_rows.ternary, ("a", "b", "c"), _rows.TERNARY_LAYOUT),
    "choice": (_rows.ternary, ("a", "b", "c"), _rows.TERNARY_LAYOUT),
    "reduce": (_rows.reduction, ("x",), _rows.REDUCTION_LAYOUT),
}
_INPLACE = {"unary": _rows.unary_, "binary": _rows.binary_}


def op(
    name: str,
    doc: str = "",
    *,
    row: str | None = None,
    aliases: tuple[str, ...] = (),
    is_method: bool = True,
    has_inplace: bool = True,
    shares_grad: bool = False,
    connected: int = 0,
    **grads: Any,
) -> Function:
    """The function of a row of csrc/ops.def (that of its name, or row), differentiable where gradients are given.

    aliases     other names of the methods
    is_method   whether Tensor has it as a method; has_inplace: and in place, as name_
    Other arguments as in autograd.record.derivative().
    """
    row = row or name
    form = lib.norch_op_form(OPCODES[row]).decode()
    make, inputs, layout = _FORMS[form]
    node_class = None
    if grads:
        node_class = derivative(name, inputs, layout=layout, shares_grad=shares_grad, connected=connected, **grads)
    function = named_function(make(row, node_class), name, doc)
    function.__module__ = sys._getframe(1).f_globals["__name__"]  # where it is declared
    function.row = form, row, node_class
    function.__annotations__["return"] = "Tensor"
    if is_method and form != "reduce":
        method(function, aliases=aliases, inplace=has_inplace)
    return function


function_op = functools.partial(op, is_method=False)  # the function alone


def method(function: Any = None, *, name: str = "", aliases: tuple[str, ...] = (), inplace: bool = False) -> Any:
    """Decorates a function of tensors that is a method of Tensor too, and with inplace has an in-place form, name_.

    name: of the method, where it is not the function's. It takes properties too.
    """
    if function is None:
        return lambda function: method(function, name=name, aliases=aliases, inplace=inplace)
    names = (name or function.__name__, *aliases)
    METHODS.update(dict.fromkeys(names, function))
    if inplace:
        METHODS.update(dict.fromkeys([name + "_" for name in names], inplace_form(function)))
    return function


class DeferredMethod:
    """A method whose module is imported when the method is asked for first, and which then stands in its place."""

    def __init__(self, module: str, name: str):
        self.module = module
        self.name = name

    def function(self) -> Function:
        """The function that it stands for."""
        from importlib import import_module  # lazy, for the time of `import norch`

        return getattr(import_module(self.module), self.name)

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self.function()
        setattr(next(cls for cls in owner.__mro__ if vars(cls).get(self.name) is self), self.name, function)
        return function if instance is None else function.__get__(instance, owner)


# ---- in-place forms --------------------------------------------------------------------------------------------------


def inplace_form(function: Function, accept: _rows.Accept = kernel_operand) -> Function:
    """The in-place method of a function: that of a row runs its kernel, else what was computed is copied into the
    tensor. As operators they accept `operand`, which gives what is no tensor the chance to handle the operation."""
    form, row, node_class = getattr(function, "row", ("", "", None))
    if form in _INPLACE:
        arguments = (row, node_class, accept) if form == "binary" else (row, node_class)
        function_ = _INPLACE[form](*arguments)
    else:
        function_ = _composed_(function, accept)
    function_.__annotations__["return"] = "Tensor"
    return named_function(function_, function.__name__ + "_", f"{function.__name__}() in place.")


def _composed_(function: Function, accept: _rows.Accept) -> Function:
    """The in-place form of a function whose result has the shape of its first argument, which it does not change."""
    name = function.__name__ + "_"

    def function_(self: Any, *arguments: Any, **named: Any) -> Any:
        if accept is not kernel_operand and accept(arguments[0], name) is NotImplemented:
            return NotImplemented
        check_writable(self, name)
        given = (self, *arguments, *named.values())
        old = self
        if mode.enabled and any(isinstance(x, Handle) and edge(x) is not None for x in given):
            old = snapshot(self)  # what nodes save is not what is written to
        result = function(
            old,
            *(old if x is self else x for x in arguments),
            **{key: old if x is self else x for key, x in named.items()},
        )
        if result.shape != self.shape:
            shapes = f"{tuple(result.shape)} and cannot be written into shape {tuple(self.shape)}"
            raise ShapeError(f"{name}: the result has shape {shapes}")
        if not can_cast(result.dtype, self.dtype):
            dtypes = f"{result.dtype.name} cannot be written into a tensor of dtype {self.dtype.name}"
            raise DTypeError(f"{name}: a result of dtype {dtypes}")
        return self.copy_(result)

    function_.__name__ = name
    return rename_errors(function_)


def inplace_view(view: Function) -> Function:
    """The in-place form of a view: the tensor itself takes the shape, and its history goes through the view."""
    name = view.__name__ + "_"

    def function_(self: Any, *arguments: Any, **named: Any) -> Any:
        check_writable(self, name)
        to_self, old = edge(self), lib.norch_alias(self)
        old._cell, old._view, old._node = cell_of(self), self._view, to_self
        if type(to_self) is Leaf:  # under no_grad(): it stays the leaf that it is
            lib.norch_set_data(self, view(old, *arguments, **named))
        else:
            with enable_grad():
                new = view(old, *arguments, **named)
            lib.norch_set_data(self, new)
            if self._view is not None:
                self._view, self._node = new._view, new._node
            elif to_self is not None:
                rebase(self, new._node)
        self._bump()
        return self

    about = f"{view.__name__}() in place: this tensor itself gets the shape. Views of it keep theirs."
    return named_function(function_, name, about)


# ---- operators -------------------------------------------------------------------------------------------------------


def operators(**functions: Function) -> None:
    """Declares Tensor's operators: add=function gives __add__, __radd__ and __iadd__ (keywords: and_=)."""
    for key, function in functions.items():
        name = key.rstrip("_")
        METHODS[f"__{name}__"] = operator(function)
        METHODS[f"__r{name}__"] = _reflected(function)
        METHODS[f"__i{name}__"] = inplace_form(function, operand)


def operator(function: Function) -> Function:
    """A binary row as an operator: what is no tensor, number or array gets the chance to handle the operation."""
    _, row, node_class = function.row  # type: ignore[attr-defined]
    as_operator = _rows.binary(row, node_class, operand)
    as_operator.__annotations__["return"] = "Tensor"
    return named_function(as_operator, function.__name__, function.__doc__ or "")


def _reflected(function: Function) -> Function:
    def swapped(self: Any, other: Any) -> Tensor:
        other = operand(other, function.__name__)
        return NotImplemented if other is NotImplemented else function(other, self)

    return swapped
