"""Copies and pickles of tensors, and tensors of another class over the same elements."""

from __future__ import annotations

from .._binding.library import lib
from .._package.typing import Any, Tensor, TypeVar
from ..dtype import dtype as DType
from ..errors import Error
from ..storage import Storage
from . import handle as _handle
from .handle import Handle

T = TypeVar("T", bound=Tensor)


def overriding() -> Any:
    """The module of __torch_function__, which is imported when it is first needed."""
    from importlib import import_module  # lazy, as few programs need it

    return import_module("norch._package.override")


def _disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The __torch_function__ of classes whose instances override nothing, as Parameter."""
    return overriding().without_subclasses(func, args, kwargs)


_disabled.__name__ = "_disabled_torch_function_impl"
disabled_torch_function: Any = _disabled


def disabled_torch_dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The __torch_dispatch__ of classes that do without."""
    return func(*args, **(kwargs or {}))


disabled_torch_dispatch.__name__ = "_disabled_torch_dispatch_impl"


def refuse_dispatch(cls: type) -> None:
    """Raises NotImplementedError for a class with elements whose __torch_dispatch__ would be passed over."""
    if getattr(cls, "__torch_dispatch__", disabled_torch_dispatch) is not disabled_torch_dispatch:
        raise NotImplementedError(
            f"{cls.__name__}: norch calls __torch_function__ of a subclass of Tensor only, never its __torch_dispatch__"
        )


def adopt(cls: type[T], tensor: Tensor) -> T:
    """An instance of cls, a Tensor class, over the elements of tensor and outside any graph."""
    if cls is _handle.result_class:
        if type(tensor) is cls and tensor._node is None:
            return tensor
    elif getattr(cls, "__torch_function__", None) is not disabled_torch_function:
        overriding().begin(cls)
    if tensor._in_coordinates:
        raise TypeError(f"{cls.__name__}: a sparse tensor stays of its own class, as its elements are elsewhere")
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
    if not isinstance(cls, type) or not issubclass(cls, _handle.result_class):
        raise TypeError(f"{cls!r} is no class of tensors")
    return adopt(cls, storage.seen_as(dtype, shape, strides, offset)).requires_grad_(requires_grad)


def rebuilt_sparse(
    indices: Tensor, values: Tensor, size: tuple[int, ...], is_coalesced: bool, requires_grad: bool
) -> Tensor:
    """The inverse of SparseTensor.__reduce__."""
    from importlib import import_module  # lazy, as few programs need it

    for part in indices, values:  # of a file: whose strides must not repeat elements, as each is read
        if part.numel() * part.element_size() > part.untyped_storage().nbytes():
            raise ValueError("a part of a sparse tensor that is larger than its storage")
    tensor = import_module("norch.sparse.coo").checked(indices, values, size, is_coalesced, "load")
    return tensor.requires_grad_(requires_grad)


def rebuilt_compressed(
    compressed: Tensor, plain: Tensor, values: Tensor, size: tuple[int, ...], axis: int, requires_grad: bool
) -> Tensor:
    """The inverse of CompressedTensor.__reduce__."""
    from importlib import import_module

    if axis not in (0, 1):
        raise ValueError(f"a compressed axis of a matrix is 0 or 1, not {axis}")
    for part in compressed, plain, values:
        if part.numel() * part.element_size() > part.untyped_storage().nbytes():
            raise ValueError("a part of a sparse tensor that is larger than its storage")
    tensor = import_module("norch.sparse.compressed").checked_compressed(compressed, plain, values, size, axis, "load")
    return tensor.requires_grad_(requires_grad)


rebuilt.__module__ = rebuilt_sparse.__module__ = rebuilt_compressed.__module__ = "norch.tensor"  # the name in files


class CopyMethods(Handle):
    """These methods of Tensor."""

    __slots__ = ()

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise Error("deepcopy: only leaves can be copied; detach() this tensor first")
        from copy import deepcopy

        storage = deepcopy(self.untyped_storage(), memo)
        rebuild, (_, *rest), attributes = self.__reduce__()
        memo[id(self)] = copied = rebuild(storage, *rest)
        copied.grad = deepcopy(self._grad_to_copy(), memo)
        if attributes is not None:
            copied.__dict__.update(deepcopy(attributes, memo))
        return copied

    def _grad_to_copy(self: Any) -> Any:
        """The gradient that a deep copy gets."""
        return self.grad

    def __reduce__(self: Any) -> tuple[Any, ...]:
        """For pickle and copy: a leaf over the same storage. A storage that several tensors share is pickled once."""
        how = (self.dtype, tuple(self.shape), self.stride(), self._offset, type(self), self.requires_grad)
        return rebuilt, (self.untyped_storage(), *how), vars(self) or None
