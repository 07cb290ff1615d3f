"""The class Tensor: Handle (_handle.py), with the methods that norch/ops declares and those of _autograd_methods.py,
_metadata.py and _protocols.py."""

from __future__ import annotations

from types import FunctionType

from . import _handle, _left_out
from ._autograd_methods import AutogradMethods
from ._handle import Size as Size  # files of save() may name it here
from ._lib import lib
from ._metadata import MetadataMethods
from ._protocols import ProtocolMethods
from ._typing import TYPE_CHECKING, Any, TypeVar
from .autograd import engine
from .dtype import dtype as DType  # noqa: N812
from .errors import Error
from .ops import complex as _complex  # noqa: F401
from .ops import getitem as _getitem  # noqa: F401  (declares methods, as the modules below)
from .ops import linalg as _linalg  # noqa: F401
from .ops import norm as _norm  # noqa: F401
from .ops import random as _random  # noqa: F401
from .ops import scatter as _scatter  # noqa: F401
from .ops import softmax as _softmax  # noqa: F401
from .ops import special as _special  # noqa: F401
from .ops.composed import diagonal as _diagonal  # noqa: F401
from .ops.composed import distance as _distance  # noqa: F401
from .ops.composed import histogram as _histogram  # noqa: F401
from .ops.composed import numeric as _numeric  # noqa: F401
from .ops.composed import order as _order  # noqa: F401
from .ops.composed import pointwise as _pointwise  # noqa: F401
from .ops.composed import products as _products  # noqa: F401
from .ops.composed import shape as _shape  # noqa: F401
from .ops.composed import statistics as _statistics  # noqa: F401
from .ops.composed import type_properties as _type_properties  # noqa: F401
from .ops.create import legacy_tensor
from .ops.op import METHODS
from .storage import Storage

if TYPE_CHECKING:
    from ._methods import DeclaredMethods  # a stub: what follows the class makes of METHODS
else:
    DeclaredMethods = _handle.Handle


T = TypeVar("T", bound="Tensor")


class Tensor(AutogradMethods, MetadataMethods, ProtocolMethods, DeclaredMethods):
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

    # ---- copies and pickles ------------------------------------------------------------------------------------

    def __dir__(self) -> list[str]:
        lacking = {name for name, value in vars(Tensor).items() if type(value) is _left_out.Missing}
        return [name for name in object.__dir__(self) if name not in lacking]

    def __deepcopy__(self: T, memo: dict[int, Any]) -> T:
        if not self.is_leaf:
            raise Error("deepcopy: only leaves can be copied; detach() this tensor first")
        from copy import deepcopy

        storage = deepcopy(self.untyped_storage(), memo)
        rebuild, (_, *rest), attributes = self.__reduce__()
        memo[id(self)] = copied = rebuild(storage, *rest)
        copied.grad = deepcopy(self.grad, memo)
        if attributes is not None:
            copied.__dict__.update(deepcopy(attributes, memo))
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: a leaf over the same storage. A storage that several tensors share is pickled once."""
        how = (self.dtype, tuple(self.shape), self.stride(), self._offset, type(self), self.requires_grad)
        return rebuilt, (self.untyped_storage(), *how), vars(self) or None


def adopt(cls: type[T], tensor: Tensor) -> T:
    """An instance of cls, a Tensor class, over the elements of tensor and outside any graph."""
    if cls is Tensor and type(tensor) is Tensor and tensor._node is None:
        return tensor  # type: ignore[return-value]
    out = lib.norch_adopt(cls, tensor)
    out._version_counter = _handle.version_counter_of(tensor)
    return out


def rebuilt(
    storage: Storage,
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    cls: type[Tensor],
    requires_grad: bool,
) -> Tensor:
    """The inverse of Tensor.__reduce__."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"{cls!r} is no class of tensors")
    return adopt(cls, storage.seen_as(dtype, shape, strides, offset)).requires_grad_(requires_grad)


def is_tensor(x: Any) -> bool:
    """Whether x is a Tensor."""
    return isinstance(x, Tensor)


for _name, _function in METHODS.items():
    setattr(Tensor, _name, _function)
for _base in Tensor.__mro__[1:-1]:  # so that Python's TypeErrors name Tensor
    for _method in vars(_base).values():
        if isinstance(_method, FunctionType) and _method.__qualname__.startswith(f"{_base.__name__}."):
            _method.__qualname__ = f"Tensor.{_method.__name__}"
_left_out.mark(Tensor)
_handle.result_class = Tensor
lib.norch_set_class(id(Tensor))
