"""Parameter: a tensor that a Module registers when it is assigned as an attribute."""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from .._package.exports import publish
from ..errors import Error, rename_error
from ..ops.create import empty
from ..tensor import Tensor, adopt, disabled_torch_function

__all__ = ["Parameter"]


class Parameter(Tensor):
    """A leaf tensor to be trained. It shares the memory of `data` and has no history.

    data: a tensor of floats of any shape; of integers only with `requires_grad=False`. TypeError if it is no tensor.

    >>> norch.nn.Parameter(norch.zeros(2)).requires_grad
    True
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a norch.Tensor, got {type(data).__name__}")
        param = adopt(cls, data)
        if requires_grad:
            param.requires_grad_(True)
        return param

    def _grad_to_copy(self) -> None:
        """None: the copy of a model begins without gradients, as in PyTorch."""

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


lib.norch_set_parameter(Parameter)


def is_lazy(param: Any) -> bool:
    """Whether param is an UninitializedParameter or UninitializedBuffer."""
    return hasattr(type(param), "materialize")


def add_parameters(layer: Any, device: Any, dtype: Any, **shapes: Any) -> None:
    """Registers an uninitialized parameter of layer, or for None an absent one, for each name and its shape."""
    for name, shape in shapes.items():
        try:
            parameter = None if shape is None else Parameter(empty(shape, dtype=dtype, device=device))
        except (Error, TypeError) as error:
            rename_error(error, type(layer).__name__)
            raise
        layer.register_parameter(name, parameter)


publish(
    globals(),
    {
        "..extras.buffer": "Buffer",
        "..extras.uninitialized": "UninitializedBuffer UninitializedParameter UninitializedTensorMixin",
    },
)
