"""Parameter: a tensor that a Module registers when it is assigned as an attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._binding.library import lib
from .._package.exports import publish
from ..errors import Error, rename_error
from ..ops.create import empty
from ..tensor import Tensor, adopt, disabled_torch_function

__all__ = ["Parameter"]


class Marked(type(Tensor)):  # type: ignore[misc]
    """The class of Parameter and Buffer. Tensors of other classes are their instances if they have an attribute, the
    mark."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        mark = vars(cls).get("_mark")  # a subclass does not have it
        return mark is not None and isinstance(instance, Tensor) and getattr(instance, mark, False)


class Parameter(Tensor, metaclass=Marked):
    """A leaf tensor to be trained. It shares the memory of `data` and has no history.

    data is a tensor of floats of any shape, or of integers with `requires_grad=False`. TypeError if it is no tensor. If
    data is of a subclass of Tensor, the parameter is of this class, with a mark that isinstance() looks for; Error if
    detach() gives another class.

    >>> norch.nn.Parameter(norch.zeros(2)).requires_grad
    True
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function
    _mark = "_is_param"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a norch.Tensor, got {type(data).__name__}")
        keeps_class = cls is Parameter and type(data) is not Tensor and not issubclass(type(data), Parameter)
        param = _marked(data) if keeps_class and not (data._in_coordinates or is_lazy(data)) else adopt(cls, data)
        if requires_grad:
            param.requires_grad_(True)
        return param

    def _grad_to_copy(self) -> None:
        """None: the copy of a model begins without gradients, as in PyTorch."""

    if not TYPE_CHECKING:  # as in Tensor

        def __repr__(self, *, tensor_contents: str | None = None) -> str:
            return "Parameter containing:\n" + super().__repr__(tensor_contents=tensor_contents)


def _marked(data: Any) -> Any:
    """A parameter of the class of data."""
    param = data.detach()
    if type(param) is not type(data):
        raise Error(
            f"Parameter: detach() of {type(data).__name__} must give the same class, not {type(param).__name__}"
        )
    param._is_param = True
    return param


lib.norch_set_parameter(Parameter)


def is_lazy(param: Any) -> bool:
    """Whether param is an UninitializedParameter or UninitializedBuffer."""
    return hasattr(type(param), "materialize")


def add_parameters(layer: Any, device: Any, dtype: Any, **shapes: Any) -> None:
    """Registers an uninitialized parameter of layer for each name and its shape; for a shape of None the parameter is
    absent.
    """
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
