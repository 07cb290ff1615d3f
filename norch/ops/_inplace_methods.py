"""In-place methods, made from functions: the result and its history replace those of the tensor (getitem.py explains
`x[0] += 1`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .._binding.library import lib
from .._package.typing import Any, Tensor
from .._tensor.handle import Handle, version_counter_of
from ..autograd.autocast import autocast_off, current
from ..autograd.grad_mode import enable_grad, mode
from ..autograd.inplace import check_writable
from ..autograd.node import Leaf
from ..autograd.outlive import snapshot
from ..autograd.record import gradient_edge
from ..autograd.view_history import rebase_history
from ..dtype import can_cast
from ..errors import DTypeError, ShapeError
from . import _rows
from ._arguments import named_function
from ._deferred import DeferredMethod
from ._entry import rename_errors
from ._operand import operand

Function = Callable[..., Any]

_OF_ROWS = {"unary": _rows.unary_, "binary": _rows.binary_}


def inplace_form(function: Function, is_operator: bool = False) -> Function:
    """The in-place method of a function. For a row it runs the kernel in place; otherwise it copies the result into the
    tensor. An operator (`+=`) returns NotImplemented for operands that are no tensor, number or array."""
    form, row, node_class = getattr(function, "row", ("", "", None))
    if form in _OF_ROWS:
        arguments = (row, node_class, is_operator) if form == "binary" else (row, node_class)
        function_ = _OF_ROWS[form](*arguments)
    else:
        function_ = _composed_(function, is_operator)
    function_.__annotations__["return"] = "Tensor"
    return named_function(function_, function.__name__ + "_", f"{function.__name__}() in place.")


class InplaceMethod(DeferredMethod):
    """The in-place method of a function, made at its first use: programs use few of them."""

    __slots__ = ("of",)

    def __init__(self, of: Function, name: str):
        super().__init__(__name__, name)
        self.of = of

    def function(self) -> Function:
        return _form_of(self.of)


_form_of = cache(inplace_form)  # one for all names of a method


def _composed_(function: Function, is_operator: bool) -> Function:
    """The in-place form of a function that does not change its first argument, and whose result has the shape of it. A
    row of three inputs runs its kernel, unless the second or third has a gradient.
    """
    name = function.__name__ + "_"
    form, row, node_class = getattr(function, "row", ("", "", None))
    write = _rows.ternary_(row, node_class, name) if form in ("ternary", "choice") else None
    write_plain = None if write is None else write.call

    def function_(self: Tensor, *arguments: Any, **named: Any) -> Any:
        if is_operator and operand(arguments[0], name) is NotImplemented:
            return NotImplemented
        if mode.casting and current().active:
            with autocast_off():
                return function_(self, *arguments, **named)
        if write_plain is not None and len(arguments) == 2 and not named:
            out = write_plain(self, *arguments)
            if out is not NotImplemented:
                return out
        check_writable(self, name)
        if write is not None and len(arguments) == 2 and not named and write(self, *arguments):
            return self
        old = self
        if mode.enabled:
            for x in (self, *arguments, *named.values()):
                if isinstance(x, Handle) and gradient_edge(x) is not None:
                    old = snapshot(self)  # nodes save a copy, not the tensor that is written to
                    arguments = tuple([old if x is self else x for x in arguments])
                    named = {key: old if x is self else x for key, x in named.items()}
                    break
        result = function(old, *arguments, **named)
        if lib.norch_shape(result) != lib.norch_shape(self):
            shapes = f"{tuple(result.shape)} and cannot be written into shape {tuple(self.shape)}"
            raise ShapeError(f"{name}: the result has shape {shapes}")
        if result._dtype != self._dtype and not can_cast(result.dtype, self.dtype):
            dtypes = f"{result.dtype.name} cannot be written into a tensor of dtype {self.dtype.name}"
            raise DTypeError(f"{name}: a result of dtype {dtypes}")
        return self.copy_(result)

    function_.__name__ = name
    function_.__wrapped__ = function  # type: ignore[attr-defined]  # its signature
    return rename_errors(function_)


def inplace_view(view: Function) -> Function:
    """The in-place form of a view: the tensor itself takes the shape, and its history goes through the view."""
    name = view.__name__ + "_"

    def function_(self: Tensor, *arguments: Any, **named: Any) -> Tensor:
        check_writable(self, name)
        to_self, old = gradient_edge(self), lib.norch_alias(self)
        old._version_counter, old._view, old._node = version_counter_of(self), self._view, to_self
        if type(to_self) is Leaf:  # under no_grad(): it stays the leaf that it is
            lib.norch_set_data(self, view(old, *arguments, **named))
        else:
            with enable_grad():
                new = view(old, *arguments, **named)
            lib.norch_set_data(self, new)
            if self._view is not None:
                self._view, self._node = new._view, new._node
            elif to_self is not None:
                rebase_history(self, new._node)
        self._bump()
        version_counter_of(self)[1:] = (True,)
        return self

    function_.__wrapped__ = view  # type: ignore[attr-defined]  # its signature
    about = f"{view.__name__}() in place: this tensor itself gets the shape. Views of it keep theirs."
    return named_function(function_, name, about)
