"""Storage: the bytes of tensors as an object, so that views still share them after copies, pickling and saving."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import cache

from ._binding.buffers import memory_of
from ._binding.library import lib
from ._package.exports import publish
from ._package.typing import Any, Tensor
from ._tensor.handle import version_counter_of
from .device import CPU, META
from .device import device as Device
from .dtype import dtype as DType
from .dtype import uint8

__all__ = ["Storage"]

PIECE = 1 << 20  # bytes that are read or written at once: all that is copied of a storage on its way from or to a file


class Storage:
    """The bytes that one or more tensors see, on one device. Tensors that share them have the same Storage.

    >>> x = norch.zeros(3)
    >>> x.untyped_storage() is x[1:].untyped_storage(), x[1:].untyped_storage().nbytes()
    (True, 12)
    """

    __slots__ = ("__weakref__", "elements")

    def __init__(self, elements: Any):
        self.elements = elements  # all of them, as uint8

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int | None = None) -> Storage:
        """The bytes of a file, or its first nbytes, mapped into memory: they are read when they are needed, and writes
        do not reach the file. NotImplementedError with shared, by which they would."""
        from importlib import import_module  # by name: of a module that imports this one

        if shared:
            raise NotImplementedError("from_file: shared=True would write to the file; save the tensor instead")
        with open(filename, "rb") as file:
            mapping = import_module("norch._files.mapping").Mapping(file)
        storage = mapping.storage(0, nbytes or mapping.size)
        assert storage is not None  # as pages are aligned
        return storage

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __getitem__(self, index: Any) -> Any:
        """A byte; for a slice without steps the Storage of these bytes, which shares their memory."""
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ValueError(f"Storage: a slice has no steps, not {index.step}")
            start, stop, _ = index.indices(self.nbytes())
            return Storage(lib.norch_slice(self.elements, 0, start, max(start, stop), 1))
        return self.elements[index].item()

    def data_ptr(self) -> int:
        """The address of the first byte; 0 on the device "meta", which has no bytes."""
        return self.elements.data_ptr()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self.elements._numel

    size = __len__ = nbytes

    def untyped(self) -> Storage:
        """Itself."""
        return self

    _untyped = untyped

    @property
    def device(self) -> Device:
        """The device of the bytes."""
        return self.elements.device

    def to(self, device: Any) -> Storage:
        """A copy on another device; itself if it is there."""
        moved = self.elements.to(Device(device))
        return self if moved is self.elements else Storage(moved)

    def cpu(self) -> Storage:
        """A copy in the memory of the host; itself if it is there."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Storage:
        """A copy on a CUDA device, the current one or device; itself if it is there."""
        return self.to("cuda" if device is None else device)

    def seen_as(self, dtype: DType, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
        """A tensor over these bytes; ShapeError where it would reach beyond them."""
        whole = lib.norch_slice(self.elements, 0, 0, self.nbytes() // dtype.itemsize * dtype.itemsize, 1)
        out = lib.norch_as_strided(lib.norch_view_dtype(whole, dtype.code), shape, strides, offset)
        out._version_counter = version_counter_of(self.elements)
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> Storage:
        return Storage(self.elements.clone())

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self.elements.is_meta:
            return without_bytes, (self.nbytes(),)
        from pickle import PickleBuffer  # here, as it takes long to import

        memory = memory_of(self.elements.cpu())
        return restored, (PickleBuffer(memory) if protocol >= 5 else bytes(memory),)

    def write_to(self, file: Any) -> None:
        """Writes the bytes to a file, in pieces."""
        memory = memory_of(self.elements.cpu(), writes=False)
        for at in range(0, len(memory), PIECE):
            file.write(bytes(memory[at : at + PIECE]))


def restored(data: Any) -> Storage:
    """A storage from a pickle, on the CPU."""
    from pickle import PickleBuffer

    if not isinstance(data, (bytes, bytearray, memoryview, PickleBuffer)):
        raise TypeError(f"a storage is made of bytes, not of {type(data).__name__}")
    source = PickleBuffer(data).raw()
    storage = empty_storage(len(source))
    memory_of(storage.elements)[:] = source
    return storage


def without_bytes(count: int) -> Storage:
    """A storage of this many bytes on the device "meta"."""
    return Storage(lib.norch_empty((count,), uint8.code, (META.code, 0)))


def read_from(file: Any, count: int) -> Storage:
    """The next count bytes of a file, on the CPU: read in pieces into their own memory. EOFError if there are fewer."""
    return fill_from(file, empty_storage(count))


def fill_from(file: Any, storage: Storage) -> Storage:
    """Reads the bytes of a storage on the CPU from a file."""
    memory, at, count = memory_of(storage.elements), 0, storage.nbytes()
    while at < count:
        piece = file.read(min(PIECE, count - at))
        if not piece:
            raise EOFError(f"{count - at} of the {count} bytes of a storage are missing")
        memory[at : at + len(piece)] = piece
        at += len(piece)
    return storage


def empty_storage(count: int) -> Storage:
    """A storage on the CPU whose bytes are not set."""
    return Storage(lib.norch_empty((count,), uint8.code, (CPU.code, 0)))


_by_address: weakref.WeakValueDictionary[int, Storage] = weakref.WeakValueDictionary()  # by address


def storage_of(x: Any) -> Storage:
    """The Storage of x: the same object as long as it is referenced."""
    whole = lib.norch_view_storage(x)
    found = _by_address.get(whole._address)
    if found is None or not lib.norch_shares_storage(found.elements, whole):
        found = _by_address[whole._address] = Storage(whole)
    whole._version_counter = version_counter_of(x)
    return found


@cache
def bind_arrays() -> bool:
    """Whether the library makes arrays of NumPy, which has been imported: by the C API of its versions 1 and 2."""
    from importlib import import_module  # by name: NumPy is optional

    for name in ("numpy._core.multiarray", "numpy.core.multiarray"):
        try:
            api = import_module(name)._ARRAY_API
        except ImportError:
            continue
        return lib.norch_bind_arrays(api)
    return False


class Memory:
    """A tensor's memory under NumPy's array interface, for other versions of NumPy; the array keeps this, and this the
    tensor."""

    def __init__(self, x: Any):
        self.tensor = x = x.detach()  # an alias: x.data = ..., in another thread, say, changes x alone
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(x.shape),
            "strides": tuple(step * x.element_size() for step in x.stride()),
            "typestr": ("|" if x.element_size() == 1 else "<") + x.dtype.kind + str(x.element_size()),
            # a view that repeats elements is for reading only
            "data": (x.data_ptr(), bool(lib.norch_overlaps_itself(x))),
        }


publish(globals())
