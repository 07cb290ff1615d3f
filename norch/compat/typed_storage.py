"""TypedStorage, the result of ``x.storage()``. untyped_storage() returns the bytes."""

from __future__ import annotations

from typing import Any

from ..device import device as Device  # noqa: N812
from ..dtype import dtype as DType  # noqa: N812
from ..storage import Storage

UntypedStorage = Storage


class TypedStorage:
    """All elements in a tensor's memory, in memory order. Writing to it changes the tensor.

    >>> x = norch.arange(4.0).view(2, 2).T
    >>> x.storage().tolist(), x[1:].storage().size()
    ([0.0, 1.0, 2.0, 3.0], 4)
    """

    __slots__ = ("__weakref__", "_elements")

    def __init__(
        self, x: Any = None, *, wrap_storage: Storage | None = None, dtype: Any = None, device: Any = None,
        _internal: bool = False,
    ):  # fmt: skip
        """From a tensor x, or from bytes and a dtype. TypeError for neither, both, or a device."""
        if (x is None) == (wrap_storage is None) or (dtype is None) != (wrap_storage is None) or device is not None:
            raise TypeError("TypedStorage: takes a tensor, or wrap_storage and dtype, and no device")
        if wrap_storage is None:
            wrap_storage, dtype = x.detach().untyped_storage(), x.dtype
        self._elements = wrap_storage.seen_as(dtype, (wrap_storage.nbytes() // dtype.itemsize,), (1,), 0)

    @property
    def dtype(self) -> DType:
        """The tensor's dtype."""
        return self._elements.dtype

    @property
    def device(self) -> Device:
        """The device of the memory."""
        return self._elements.device

    @property
    def is_cuda(self) -> bool:
        """Whether that is a CUDA device."""
        return self._elements.is_cuda

    def untyped(self) -> Storage:
        """The bytes."""
        return self._elements.untyped_storage()

    _untyped_storage = property(untyped)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._elements.data_ptr()

    def size(self) -> int:
        """The number of elements."""
        return self._elements.numel()

    __len__ = size

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._elements.nbytes

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> int:
        """The bytes of an element."""
        return self._elements.element_size()

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return self._elements.tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Writes value to all elements."""
        self._elements.fill_(value)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        """A copy. The copy of a tensor in the same deepcopy() shares it."""
        from copy import deepcopy

        return type(self)(wrap_storage=deepcopy(self.untyped(), memo), dtype=self.dtype)

    def __getitem__(self, index: Any) -> Any:
        value = self._elements[index]
        return value.item() if isinstance(index, int) else value.tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tolist()}, dtype={self.dtype}, device={self.device})"
