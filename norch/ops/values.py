"""Tensors made from data: Python numbers, nested lists, arrays, buffers, memory of other libraries.

Operations convert their arguments with this module, so it imports no operation.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from array import array
from functools import reduce

from .._binding.buffers import over_memory
from .._binding.library import lib
from .._binding.numbers import flag, ints
from .._package.typing import Any, DeviceLike, DTypeLike, Tensor
from .._tensor.handle import Handle
from ..device import CPU, current
from ..dtype import (
    BY_NAME,
    DTYPES,
    check_fits,
    complex128,
    dtype_named,
    float32,
    float64,
    get_default_dtype,
    promote_types,
)
from ..dtype import bool_ as norch_bool
from ..dtype import dtype as DType
from ..dtype import int64 as norch_int64
from ..errors import ArgumentError, DTypeError, ShapeError, stacklevel_of_user
from ..storage import Storage, bind_arrays
from ._out import with_options

_PLAIN = {float, int, bool, complex}
_DEPTH = 64  # of nested lists


def from_bytes(data: bytes, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A tensor of the C-ordered elements in data."""
    return lib.norch_from_bytes(data, len(data), len(shape), ints(shape), dtype.code)


def on_device(x: Tensor, device: DeviceLike) -> Tensor:
    """x on this device; None is the default one."""
    if device is not None or current.default is not CPU:
        x = x.to(current.default if device is None else device)
    return x


def iota(n: int, like: Handle, dtype: DType = norch_int64, first: int = 0) -> Tensor:
    """first, first + 1, ... (n) of a dtype, on the device of like."""
    line = lib.norch_arange(n, dtype.code, float(first), 1.0, first, 1)
    return lib.norch_to_device(line, (like._device_type, like._device_index), False)


def can_cache(like: Handle) -> bool:
    """Whether tensors that are made for calls with like may be cached for later calls: on the CPU, and outside of
    recordings, to which all belongs that is made in them."""
    return like._device_type == CPU.code and not lib.norch_recording()


# ---- numbers and nested lists -----------------------------------------------------------------------------------


def _flatten(data: Any, numbers: list[Any], types: set[Any], depth: int = 0) -> tuple[int, ...]:
    """The shape of nested lists; appends their numbers to numbers, in C order, and adds their types to types."""
    if not isinstance(data, (list, tuple, range)):
        kind = type(data)
        if kind is float or kind is int or kind is bool or kind is complex:
            types.add(kind)
            numbers.append(data)
        elif hasattr(data, "__getitem__") and not (
            hasattr(data, "__float__") or isinstance(data, (str, bytes, dict, complex))
        ):
            return _flatten([data[i] for i in range(len(data))], numbers, types, depth)
        else:
            numbers.append(_number(data, types))
        return ()
    if depth > _DEPTH:
        raise TypeError(f"tensor: lists nested more than {_DEPTH} deep; does one hold itself?")
    if (kinds := set(map(type, data))) <= _PLAIN:
        types |= kinds
        numbers.extend(data)
        return (len(data),)
    first: tuple[int, ...] | None = None
    for i, part in enumerate(data):
        scalar = part.numel() == 1 if isinstance(part, Handle) else not getattr(part, "ndim", 0)  # as in PyTorch
        if hasattr(part, "__array__") and not scalar:
            _add_dtype(part, types)
            shape = _flatten(part.tolist(), numbers, set())
        else:
            shape = _flatten(part, numbers, types, depth + 1)
        if first is not None and shape != first:
            raise ShapeError(f"tensor: ragged lists: item {i} has shape {shape} where item 0 has shape {first}")
        first = shape
    return (len(data), *(first or ()))


def _add_dtype(data: Any, types: set[Any]) -> bool:
    """Adds the dtype of an array, a tensor or a NumPy scalar to types; False where norch has no such dtype."""
    dtype = BY_NAME.get(getattr(getattr(data, "dtype", None), "name", ""))
    if dtype is not None:
        types.add(dtype)
    return dtype is not None


def _number(data: Any, types: set[Any]) -> Any:
    """An object that converts to a number as a Python number; TypeError for others."""
    if isinstance(data, (str, bytes)) or not (hasattr(data, "__float__") or isinstance(data, complex)):
        raise TypeError(f"tensor: a {type(data).__name__} is no number: {data!r}")
    has_dtype = _add_dtype(data, types)
    number = data.item() if hasattr(data, "item") else data
    if not isinstance(number, (bool, int, float, complex)):
        number = int(number) if hasattr(number, "__index__") else float(number)
    if not has_dtype:
        types.add(next(kind for kind in (bool, float, complex, int) if isinstance(number, kind)))
    return number


def common_dtype(types: set[Any]) -> DType:
    """The dtype to which these Python types and dtypes promote; the default dtype if there are none."""
    if not types:
        return get_default_dtype()
    return reduce(promote_types, map(_promoted_as, types))


def _promoted_as(one: Any) -> DType:
    """The dtype of a Python type in promotion: float and complex have the precision of the default dtype."""
    if one is float or one is complex:
        return get_default_dtype() if one is float else get_default_dtype().to_complex()
    return dtype_named(one)


def _from_numbers(numbers: list[Any], shape: tuple[int, ...], dtype: DType | None, promoted: DType) -> Tensor:
    """A tensor of Python numbers, which promote to the dtype promoted."""
    wanted = dtype or promoted
    if wanted is not promoted and wanted.kind in "iu" and numbers:
        for number in numbers if promoted.is_floating_point else (min(numbers), max(numbers)):
            check_fits(number, wanted, "tensor")
    if promoted is norch_bool:
        data, source = bytes(numbers), norch_bool
    elif promoted.kind in "iu":
        try:
            data, source = array("q", numbers).tobytes(), norch_int64
        except OverflowError:
            if wanted.kind not in "fc":
                raise OverflowError("tensor: an integer does not fit 64 bits") from None
            data, source = array("d", numbers).tobytes(), float64
    elif promoted.is_complex:
        data, source = array("d", [part for x in numbers for part in (x.real, x.imag)]).tobytes(), complex128
    else:
        source = float32 if wanted is float32 else float64
        data = array(source.format, numbers).tobytes()  # what is too large for float32 becomes infinite
    out = from_bytes(data, shape, source)
    return out if source is wanted else out.to(wanted)


def tensor(
    data: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of the values in data: a number, nested lists, an array, a buffer or a tensor. By
    default the dtype follows the values: int64 for integers, bool for bools, the default dtype for floats, and the
    dtype of an array. ShapeError for ragged lists, TypeError for objects that are no numbers.

    >>> norch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    wanted = None if dtype is None else dtype_named(dtype)
    if isinstance(data, Handle):
        warnings.warn("tensor: copy a tensor by x.detach().clone()", stacklevel=stacklevel_of_user())
        out = data.detach().clone()  # type: ignore[attr-defined]
    elif isinstance(data, (list, tuple, bool, int, float, complex)):
        out = None
    elif hasattr(data, "__array_interface__"):
        import numpy  # lazy import: such an object comes from NumPy

        if wanted is not None and isinstance(data, numpy.integer):
            check_fits(int(data), wanted, "tensor")
        plain = numpy.asarray(data)  # of a masked array its data; of what has the interface alone, an array
        out = from_bytes(plain.tobytes(), plain.shape, _array_dtype(plain.dtype.str))
    elif isinstance(data, Storage):
        out = _of_storage(data, wanted).clone()
    elif _is_buffer(data):
        out = _from_buffer(data)
    elif hasattr(data, "__array__"):
        return tensor(data.__array__(), dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)
    elif _has_only_dlpack(data):
        out = _from_dlpack(data).clone()
    else:
        out = None
    if out is None:
        numbers: list[Any] = []
        types: set[Any] = set()
        shape = _flatten(data, numbers, types)
        out = _from_numbers(numbers, shape, wanted, common_dtype(types))
    elif wanted is not None:
        out = out.to(wanted)
    out = on_device(out, device)
    return with_options(out, requires_grad, None, pin_memory) if requires_grad or pin_memory else out


def number_or_array(value: Any, name: str) -> Any:
    """A Python number or an array as a new Tensor for the operation name; NotImplemented for anything else."""
    number = _weak_number(value, name)
    if number is None and hasattr(value, "__array__"):
        numpy = sys.modules.get("numpy")  # imported already if there is a number of its types
        if numpy is not None and isinstance(value, numpy.integer):
            return _weak_number(int(value), name)
        return tensor(value)
    return NotImplemented if number is None else number


def _weak_number(value: Any, name: str) -> Any:
    """A Python number as a 0-d tensor that takes part in promotion by its kind only; None for other objects."""
    if isinstance(value, bool):
        return lib.norch_scalar_int(int(value), 0)
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return lib.norch_scalar_int(value, 3)
        raise OverflowError(f"{name}: {value} does not fit 64 bits")
    if isinstance(value, float):
        return lib.norch_scalar_float(value)
    if isinstance(value, complex):
        return lib.norch_scalar_complex(value.real, value.imag)
    return None


# ---- buffers and arrays -----------------------------------------------------------------------------------------


def _is_buffer(data: Any) -> bool:
    return not isinstance(data, bytes) and _has_buffer(data)


def is_bare_buffer(data: Any) -> bool:
    """Whether data is a buffer, but neither an array nor a number of NumPy."""
    if isinstance(data, (Handle, list, tuple)) or hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return False
    return _has_buffer(data)


def _has_buffer(data: Any) -> bool:
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


def _has_only_dlpack(data: Any) -> bool:
    """Whether data is an array of a library that offers its memory by __dlpack__, but cannot convert it to NumPy's."""
    return not isinstance(data, Handle) and hasattr(data, "__dlpack__") and not hasattr(data, "__array__")


def _from_dlpack(data: Any) -> Tensor:
    from ..utils.dlpack import from_dlpack  # here, as it imports this module

    return from_dlpack(data)


def _of_storage(storage: Storage, dtype: Any) -> Tensor:
    """A tensor of dtype over the elements of a storage. With None the elements are its bytes."""
    wanted = BY_NAME["uint8"] if dtype is None else dtype_named(dtype)
    return storage.seen_as(wanted, (storage.nbytes() // wanted.itemsize,), (1,), 0)


def _from_buffer(data: Any) -> Tensor:
    """A copy of an object with the buffer protocol, such as array.array."""
    view = memoryview(data)
    kind = {"?": "b", "B": "u", "e": "f", "f": "f", "d": "f"}.get(view.format, "i" if view.format in "bhilq" else None)
    dtype = _dtype_of(kind, view.itemsize, view.format)
    return from_bytes(view.tobytes(), tuple(view.shape or (view.nbytes // view.itemsize,)), dtype)


def _dtype_of(kind: str | None, itemsize: int, shown: str) -> DType:
    for candidate in DTYPES:
        if candidate.kind == kind and candidate.itemsize == itemsize:
            return candidate
    raise DTypeError(f"tensor: elements of type {shown} have no dtype in norch; convert them first")


def _array_dtype(typestr: str) -> DType:
    if typestr[0] == ">":
        raise DTypeError(f"tensor: big-endian elements ({typestr}); convert them to native order first")
    size = typestr[2:].partition("[")[0]  # dates have a unit behind it
    date = {"M": "datetime64", "m": "timedelta64"}.get(typestr[1])
    shown = date + typestr[3:] if date else typestr  # as NumPy names it
    return _dtype_of(typestr[1], int(size or 0), shown)


def _is_ndarray(data: Any) -> bool:
    """Whether data is a NumPy array, whose memory lives as long as it does. The array interface of a NumPy scalar
    points to a temporary.
    """
    numpy = sys.modules.get("numpy")  # imported already if there is an array
    return numpy is not None and isinstance(data, numpy.ndarray)


def from_numpy(array: Any) -> Tensor:
    """A tensor over the memory of a NumPy array. Writes go both ways, and each of the two keeps the memory alive.

    A read-only array is shared too, with a warning: writes to the tensor are undefined. TypeError for other objects,
    such as a NumPy scalar; ArgumentError for an array whose strides are not multiples of the element size; DTypeError
    for dtypes that norch lacks.

    >>> import numpy
    >>> a = numpy.zeros(2)
    >>> x = norch.from_numpy(a).add_(1)
    >>> a
    array([1., 1.])
    """
    out = lib.norch_from_array(array)
    if out is not None:
        return out
    if not _is_ndarray(array):
        raise TypeError(f"from_numpy: expected a NumPy array, not {type(array).__name__}")
    if not array.flags.writeable:
        _warn_of_read_only("from_numpy")
    return _over_array(array)


def frombuffer(buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor of dtype over the bytes of a Python buffer, such as bytearray, memoryview or mmap, from offset on.
    count is the number of elements, by default all. Writes go both ways; for a read-only or unaligned buffer the tensor
    is a copy. ArgumentError if there are fewer elements, or if bytes are left over.

    >>> norch.frombuffer(bytearray([1, 0, 2, 0]), dtype=norch.int16)
    tensor([1, 2], dtype=norch.int16)
    """
    kind = dtype_named(dtype)
    memory = memoryview(buffer)
    if not memory.c_contiguous:
        raise ArgumentError("frombuffer: the buffer's bytes are not contiguous")
    memory = memory.cast("B") if memory.nbytes else memory
    left = memory.nbytes - offset
    if memory.nbytes == 0 or count == 0 or not 0 <= offset < memory.nbytes:
        raise ArgumentError(f"frombuffer: no element of {memory.nbytes} bytes from {offset} on (count={count})")
    if count < 0 and left % kind.itemsize:
        raise ArgumentError(f"frombuffer: {left} bytes are no whole number of elements of {kind.itemsize}")
    size = left // kind.itemsize if count < 0 else count
    if size * kind.itemsize > left:
        raise ArgumentError(f"frombuffer: {size} elements of {kind.itemsize} bytes, but {left} bytes from {offset} on")
    part = memory[offset : offset + size * kind.itemsize]
    owner: Any = bytearray(part) if memory.readonly else part
    first = (ctypes.c_ubyte * part.nbytes).from_buffer(owner)
    if ctypes.addressof(first) % kind.itemsize:
        first = (ctypes.c_ubyte * part.nbytes).from_buffer(bytearray(part))
    out = over_memory(ctypes.addressof(first), (size,), ints((1,)), kind.code, first)
    return out.requires_grad_() if requires_grad else out


def _warn_of_read_only(name: str) -> None:
    warnings.warn(
        f"{name}: this array is read-only, and a tensor is not; do not write to it", stacklevel=stacklevel_of_user()
    )


def _over_array(array: Any) -> Tensor:
    if bind_arrays() and (out := lib.norch_from_array(array)) is not None:
        return out
    dtype = _array_dtype(array.dtype.str)
    shape, steps = array.shape, array.strides
    if any(step % dtype.itemsize for step in steps):
        raise ArgumentError(f"from_numpy: strides {steps} are no multiples of the element size; copy the array first")
    strides = ints([step // dtype.itemsize for step in steps], "stride")
    return over_memory(array.ctypes.data, shape, strides, dtype.code, array)


def as_tensor(data: Any, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """data as a tensor. It shares memory with a tensor or a NumPy array if dtype and device allow, with a warning if
    the array is read-only.

    >>> x = norch.ones(2)
    >>> norch.as_tensor(x) is x
    True
    """
    return _as_tensor(data, dtype, device, "as_tensor")


def _as_tensor(data: Any, dtype: DType | None, device: DeviceLike, name: str) -> Tensor:
    if isinstance(data, Handle):
        return data.to(dtype=dtype, device=device)  # type: ignore[attr-defined]
    if not _is_ndarray(data):
        if _has_only_dlpack(data):
            return _from_dlpack(data).to(dtype=dtype, device=device)
        return tensor(data, dtype=dtype, device=device)
    shared = _over_array(data)
    out = on_device(shared, device)
    out = out if dtype is None else out.to(dtype_named(dtype))
    if out is shared and not data.flags.writeable:
        _warn_of_read_only(name)
    return out


def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """obj as a tensor. With copy=None it shares memory with obj if possible, with True never, and with False always;
    ArgumentError if it cannot. A tensor stays in its graph unless requires_grad is False. The bytes of a buffer that is
    no array, such as bytearray, are read as elements of dtype, or of the default dtype. obj may be a DLPack capsule.

    >>> norch.asarray([1, 2])
    tensor([1, 2])
    """
    if type(obj).__name__ == "PyCapsule" or _has_only_dlpack(obj):
        obj = _from_dlpack(obj)
    elif isinstance(obj, Storage):
        obj = _of_storage(obj, dtype)
    elif is_bare_buffer(obj):
        if copy is False and memoryview(obj).readonly:
            raise ArgumentError(f"asarray: a {type(obj).__name__} cannot be written to: a tensor of it is a copy")
        obj = frombuffer(obj, dtype=dtype or get_default_dtype())
    if copy is not None and flag(copy, "asarray: copy") and not isinstance(obj, Handle):
        out = tensor(obj, dtype=dtype, device=device)
    elif copy:
        out = obj.to(dtype=dtype, device=device, copy=True)
    else:
        out = _as_tensor(obj, dtype, device, "asarray")
        shared = out is obj or (_is_ndarray(obj) and obj.ctypes.data == out._address)
        if copy is False and not shared:
            raise ArgumentError(f"asarray: a {type(obj).__name__} cannot be seen as such a tensor without a copy")
    if requires_grad is None or flag(requires_grad, "asarray: requires_grad") == out.requires_grad:
        return out
    return out.requires_grad_() if requires_grad else out.detach()
