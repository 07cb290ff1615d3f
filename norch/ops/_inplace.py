"""The in-place forms: ``exp_`` from ``exp``, for rows of the table and for what is composed of them, and of views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._handle import Handle, cell_of
from .._lib import lib
from ..autograd.grad_mode import enable_grad, mode
from ..autograd.inplace import check_writable, edge, rebase
from ..autograd.node import Leaf
from ..dtype import can_cast
from ..errors import DTypeError, ShapeError
from ._forms import Op, before
from ._operand import kernel_operand, named_function, rename_errors
from .copy import copy_


def in_place(*functions: Op, accept: Callable[[Any, str], Any] = kernel_operand) -> list[Op]:
    """The in-place methods of functions: of a row its own kernel, else what is computed is copied into the tensor. As
    operators they accept `operand`: what we cannot read gets the chance to read us."""
    return [f.in_place(accept) if hasattr(f, "in_place") else composed_(f, accept) for f in functions]


def composed_(function: Op, accept: Callable[[Any, str], Any] = kernel_operand) -> Op:
    """The in-place method of a function whose result has the shape of its first argument, which must not change it."""
    name = function.__name__ + "_"

    def function_(self: Any, *arguments: Any, **named: Any) -> Any:
        if accept is not kernel_operand and accept(arguments[0], name) is NotImplemented:
            return NotImplemented
        check_writable(self, name)
        given = (self, *arguments, *named.values())
        old = self
        if mode.enabled and any(isinstance(x, Handle) and edge(x) is not None for x in given):
            old = before(self)  # what nodes save must not be what is written to
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
        return copy_(self, result)

    return rename_errors(named_function(function_, name, f"{function.__name__}() in place."))


def turned_(step: Op) -> Op:
    """The in-place form of a view: the tensor itself takes the shape, and its history goes through the step."""
    name = step.__name__ + "_"

    def function_(self: Any, *arguments: Any, **named: Any) -> Any:
        check_writable(self, name)
        to_self, old = edge(self), lib.norch_alias(self)
        old._cell, old._view, old._node = cell_of(self), self._view, to_self
        if type(to_self) is Leaf:  # under no_grad(): it stays the leaf that it is
            lib.norch_set_data(self, step(old, *arguments, **named))
        else:
            with enable_grad():
                new = step(old, *arguments, **named)
            lib.norch_set_data(self, new)
            if self._view is not None:
                self._view, self._node = new._view, new._node
            elif to_self is not None:
                rebase(self, new._node)
        self._bump()
        return self

    about = f"{step.__name__}() in place: this tensor itself gets the shape. Views of it keep theirs."
    return named_function(function_, name, about)
