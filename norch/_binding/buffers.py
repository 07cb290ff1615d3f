"""Memory that Python and C share: buffers and arrays that C fills or reads, and objects that C keeps alive."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from .._package.typing import Any
from ..errors import DeviceError
from .library import TensorBase, lib
from .numbers import ints


def over_memory(address: int, shape: Sequence[int], strides: bytes, dtype: int, owner: object) -> Any:
    """A tensor over memory of owner, which lives until C releases the tensor's storage. strides: packed by ints()."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    release = ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p).value
    try:
        return lib.norch_from_memory(address, len(shape), ints(shape), strides, dtype, release, id(owner))
    except BaseException:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(owner))
        raise


def memory_of(x: TensorBase, writes: bool = True) -> memoryview:
    """The bytes of a contiguous tensor on the CPU, to read, and unless writes is False to write; x lives as long as
    they are seen."""
    lib.norch_note_unseen("Python reads the memory of a tensor")
    if x._device_type:
        raise DeviceError("the memory of a tensor that is not on the CPU cannot be read; copy it with .cpu()")
    if x._numel == 0:
        return memoryview(bytearray())
    count = x._numel * lib.norch_dtype_size(x._dtype)
    array: Any = (ctypes.c_ubyte * count).from_address(x._data_pointer if writes else x._address)
    array.owner = x
    return memoryview(array).cast("B")


def buffer(count: int) -> Any:
    """A writable buffer of count bytes."""
    return ctypes.create_string_buffer(count)


def doubles(*values: float) -> Any:
    """A C array of doubles, which C reads when a call runs."""
    return (ctypes.c_double * len(values))(*values)


def struct_of_doubles(name: str, fields: Sequence[str]) -> type[ctypes.Structure]:
    """A C struct whose fields are doubles. Its instances keep their address, and have no attributes but the fields."""
    return type(
        name, (ctypes.Structure,), {"_fields_": [(field, ctypes.c_double) for field in fields], "__slots__": ()}
    )


def int64s(*values: int) -> Any:
    """A C array of int64, to be filled by C."""
    return (ctypes.c_int64 * len(values))(*values)


def uint64s(*values: int) -> Any:
    """A C array of uint64, to be filled or read by C."""
    return (ctypes.c_uint64 * len(values))(*values)


def function_of(file: str, name: str) -> int:
    """The address of a function of a shared library or of a library that it is linked with; 0 if it does not exist."""
    function: Any = getattr(ctypes.CDLL(file), name, None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def address(array: Any) -> int:
    """The address of a C array."""
    return ctypes.addressof(array)
