"""The class Tensor: Handle (_handle.py), with the methods that norch/ops declares and those of _autograd_methods.py,
_copying.py, _metadata.py and _protocols.py."""

from __future__ import annotations

from types import FunctionType

from . import _handle, _left_out
from ._autograd_methods import AutogradMethods
from ._copying import CopyMethods, adopt
from ._copying import rebuilt as rebuilt  # files of save() name it here
from ._handle import Size as Size  # files of save() may name it here
from ._lib import lib
from ._metadata import MetadataMethods
from ._protocols import ProtocolMethods
from ._typing import TYPE_CHECKING, Any, TypeVar
from .autograd import engine
from .ops import complex as _complex  # noqa: F401
from .ops import getitem as _getitem  # noqa: F401  (declares methods, as the modules below)
from .ops import linalg as _linalg  # noqa: F401
from .ops import norm as _norm  # noqa: F401
from .ops import random as _random  # noqa: F401
from .ops import scatter as _scatter  # noqa: F401
from .ops import softmax as _softmax  # noqa: F401
from .ops._deferred import deferred_methods
from .ops.composed import diagonal as _diagonal  # noqa: F401
from .ops.composed import pointwise as _pointwise  # noqa: F401
from .ops.composed import products as _products  # noqa: F401
from .ops.composed import shape as _shape  # noqa: F401
from .ops.composed import type_properties as _type_properties  # noqa: F401
from .ops.create import legacy_tensor
from .ops.op import METHODS

if TYPE_CHECKING:
    from ._methods import DeclaredMethods  # a stub: what follows the class makes of METHODS
else:
    DeclaredMethods = _handle.Handle


T = TypeVar("T", bound="Tensor")


class Tensor(AutogradMethods, CopyMethods, MetadataMethods, ProtocolMethods, DeclaredMethods):
    """An N-dimensional array of one dtype, whose computation autograd records.

    ``Tensor([[1, 2], [3, 4]])`` takes values; ``Tensor(2, 3)`` takes sizes, and its elements are uninitialized. Both
    have the default float dtype. ``norch.tensor(values)`` keeps the dtype of the values.

    >>> norch.Tensor([[1, 2], [3, 4]], requires_grad=True).sum()
    tensor(10., grad_fn=<SumBackward>)
    """

    __slots__ = ()
    __array_priority__ = 1000  # NumPy arrays on the left leave the operation to us

    def __new__(cls, *data: Any, requires_grad: bool = False) -> Tensor:
        return adopt(cls, legacy_tensor(data)).requires_grad_(requires_grad)

    @staticmethod
    def _make_subclass(cls: type[T], data: Tensor, require_grad: bool = False) -> T:
        """A leaf of class cls over the elements of data, for programs that subclass Tensor."""
        return adopt(cls, data.detach()).requires_grad_(require_grad)

    # ---- autograd --------------------------------------------------------------------------------------------

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Adds the gradient of this tensor to the .grad of every leaf that it was computed from. A tensor of more than
        one element needs gradient, of its shape. norch.autograd.backward explains the options and errors."""
        engine.backward([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)

    def __dir__(self) -> list[str]:
        lacking = {name for name, value in vars(Tensor).items() if type(value) is _left_out.Missing}
        return [name for name in object.__dir__(self) if name not in lacking]


def is_tensor(x: Any) -> bool:
    """Whether x is a Tensor."""
    return isinstance(x, Tensor)


for _name, _method in deferred_methods().items():
    METHODS.setdefault(_name, _method)
for _name, _function in METHODS.items():
    setattr(Tensor, _name, _function)
for _base in Tensor.__mro__[1:-1]:  # so that Python's TypeErrors name Tensor
    for _method in vars(_base).values():
        if isinstance(_method, FunctionType) and _method.__qualname__.startswith(f"{_base.__name__}."):
            _method.__qualname__ = f"Tensor.{_method.__name__}"
_left_out.mark(Tensor)
_handle.result_class = Tensor
lib.norch_set_class(id(Tensor))
