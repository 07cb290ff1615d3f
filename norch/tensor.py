"""The class Tensor: Handle, with the methods that norch/ops declares and those of its other bases, all in _tensor/."""

from __future__ import annotations

from types import FunctionType

from . import autograd
from ._binding.library import lib
from ._package import left_out as _left_out
from ._package.typing import TYPE_CHECKING, Any, TypeVar
from ._tensor import handle as _handle
from ._tensor.autograd_methods import AutogradMethods
from ._tensor.copying import CopyMethods, adopt, overriding, refuse_dispatch
from ._tensor.copying import disabled_torch_function as disabled_torch_function
from ._tensor.copying import rebuilt as rebuilt  # files of save() name it here
from ._tensor.copying import rebuilt_compressed as rebuilt_compressed
from ._tensor.copying import rebuilt_sparse as rebuilt_sparse
from ._tensor.handle import Size as Size  # files of save() may name it here
from ._tensor.metadata import MetadataMethods
from ._tensor.protocols import ProtocolMethods
from .ops import sums as _sums  # noqa: F401
from .ops._deferred import deferred_methods
from .ops._rows import as_method
from .ops.create import empty, empty_strided, legacy_tensor
from .ops.op import METHODS
from .ops.view import alias_of

if TYPE_CHECKING:
    from ._methods import DeclaredMethods  # a stub: what follows the class makes of METHODS
else:
    DeclaredMethods = _handle.Handle


METHODS |= deferred_methods(METHODS)


def _requiring(x: T, requires_grad: bool) -> T:
    """Sets requires_grad of x. The class of x may override requires_grad_() with a method that needs attributes of its
    __init__, so that method is not called.
    """
    return AutogradMethods.requires_grad_(x, requires_grad)


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
        if len(data) == 1 and isinstance(data[0], Tensor):
            x = data[0].as_subclass(cls)
            return _requiring(x, True) if requires_grad else x
        refuse_dispatch(cls)
        return _requiring(adopt(cls, legacy_tensor(data)), requires_grad)

    def as_subclass(self, cls: type[T]) -> T:
        """A view of all elements that is an instance of cls, a subclass of Tensor.

        >>> class Image(norch.Tensor): pass
        >>> type(norch.ones(2).as_subclass(Image)) is Image
        True
        """
        if not (isinstance(cls, type) and issubclass(cls, Tensor)):
            raise TypeError(f"as_subclass: expected a subclass of Tensor, not {cls!r}")
        refuse_dispatch(cls)
        x = alias_of(self)
        out = adopt(cls, x)
        if out is not x:
            out._node, out._view = x._node, x._view
        return out

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What func gives, its tensors as instances of cls: subclasses override it (docs/less_common.md)."""
        return overriding().by_default(cls, func, types, args, kwargs)

    @staticmethod
    def _make_wrapper_subclass(
        cls: type[T],
        size: Any,
        strides: Any = None,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **_: Any,
    ) -> T:
        """An instance of cls without elements, on the device "meta", whatever device is."""
        if strides is None:
            meta = empty(size, dtype=dtype, device="meta")
        else:
            meta = empty_strided(size, strides, dtype=dtype, device="meta")
        return _requiring(adopt(cls, meta), requires_grad)

    @staticmethod
    def _make_subclass(cls: type[T], data: Tensor, require_grad: bool = False) -> T:
        """A leaf of class cls over the elements of data, for programs that subclass Tensor."""
        refuse_dispatch(cls)
        return _requiring(adopt(cls, data.detach()), require_grad)

    # ---- autograd --------------------------------------------------------------------------------------------

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Adds the gradient of this tensor to the .grad of every leaf that it was computed from. A tensor of more than
        one element needs gradient, of its shape. norch.autograd.backward explains the options and errors.

        >>> x = norch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        autograd.backward([self], None if gradient is None else [gradient], retain_graph, create_graph, None, inputs)

    def __dir__(self) -> list[str]:
        lacking = {name for name, value in vars(Tensor).items() if type(value) is _left_out.Missing}
        return [name for name in object.__dir__(self) if name not in lacking]

    if not TYPE_CHECKING:
        # At once: each setattr() would look at all of the class.
        locals().update(_left_out.missing_methods(), **{name: as_method(METHODS[name]) for name in METHODS})
        __hash__ = object.__hash__  # which a class with __eq__ does not inherit


T = TypeVar("T", bound=Tensor)


def is_tensor(x: Any) -> bool:
    """Whether x is a Tensor.

    >>> norch.is_tensor(norch.ones(2)), norch.is_tensor([1.0, 1.0])
    (True, False)
    """
    return isinstance(x, Tensor)


for _name, _function in METHODS.items():
    if _name[:2] == "__" and type(_function) is FunctionType and METHODS.get(_function.__name__) is not _function:
        _function.__name__ = _name
for _base in Tensor.__mro__[1:-1]:  # so that Python's TypeErrors name Tensor
    _prefix = f"{_base.__name__}."
    for _method in vars(_base).values():
        if type(_method) is FunctionType and _method.__qualname__.startswith(_prefix):
            _method.__qualname__ = f"Tensor.{_method.__name__}"
_handle.result_class = Tensor
lib.norch_set_class(id(Tensor))
