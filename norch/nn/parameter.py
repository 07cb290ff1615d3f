"""Parameter: a tensor that a Module registers when it is assigned as an attribute."""

from __future__ import annotations

from typing import Any

from .._left_out import nothing_more
from ..errors import Error, rename_error
from ..ops.create import empty
from ..tensor import Tensor, adopt


class Parameter(Tensor):
    """A leaf tensor that is trained. It shares the memory of `data`, detached from its history.

    data: a float tensor of any shape (integers only with `requires_grad=False`).

    >>> norch.nn.Parameter(norch.zeros(2)).requires_grad
    True
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a norch.Tensor, got {type(data).__name__}")
        param = adopt(cls, data)
        if requires_grad:
            param.requires_grad_(True)
        return param

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def blank(layer: Any, *shape: Any, dtype: Any, device: Any) -> Parameter:
    """A parameter whose elements are yet to be drawn; what is wrong with its sizes is said of the layer."""
    try:
        return Parameter(empty(*shape, dtype=dtype, device=device))
    except (Error, TypeError) as error:
        rename_error(error, type(layer).__name__)
        raise


__getattr__ = nothing_more(__name__)
