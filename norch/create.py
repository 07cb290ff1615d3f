"""Making tensors: from values, from memory, from a rule."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from ._handle import Handle, Size
from ._lib import flag, forget, int64, ints, keep_alive, lib
from .device import CPU, current, place
from .dtype import (
    BY_NAME,
    check_fits,
    check_format,
    contiguous_format,
    dtype_named,
    float32,
    float64,
    get_default_dtype,
    promote_types,
)
from .dtype import bool_ as norch_bool
from .dtype import dtype as DType  # noqa: N812
from .dtype import int64 as norch_int64
from .errors import ArgumentError, DTypeError, Error, ShapeError, rename_error
from .ops._operand import rename_errors, tensor_of
from .ops.composed.shape import repeat_interleave
from .ops.copy import stack
from .ops.view import sizes

if TYPE_CHECKING:
    from .tensor import Tensor


def from_bytes(data: bytes, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A tensor of the C-ordered elements in data."""
    return lib.norch_from_bytes(data, len(data), len(shape), ints(shape), dtype.code)


def _placed(x: Tensor, device: Any, requires_grad: bool) -> Tensor:
    if device is not None or current.default is not CPU:
        x = x.to(current.default if device is None else device)
    return x.requires_grad_(requires_grad) if requires_grad else x


# ---- from values ------------------------------------------------------------------------------------------------


_PLAIN = {float, int, bool}


def _flatten(data: Any, flat: list[Any], seen: set[Any], depth: int = 0) -> tuple[int, ...]:
    """Appends the numbers in nested lists to flat, in order, and their types and dtypes to seen; gives their shape."""
    if not isinstance(data, (list, tuple, range)):
        kind = type(data)
        if kind is float or kind is int or kind is bool:
            seen.add(kind)
            flat.append(data)
        elif hasattr(data, "__getitem__") and not (hasattr(data, "__float__") or isinstance(data, (str, bytes, dict))):
            return _flatten([data[at] for at in range(len(data))], flat, seen, depth)
        else:
            flat.append(_number(data, seen))
        return ()
    if depth > 64:
        raise TypeError("tensor: lists nested more than 64 deep; does one hold itself?")
    if (kinds := set(map(type, data))) <= _PLAIN:
        seen |= kinds
        flat.extend(data)
        return (len(data),)
    inner: tuple[int, ...] | None = None
    for position, part in enumerate(data):
        number = part.numel() == 1 if isinstance(part, Handle) else not getattr(part, "ndim", 0)  # as in PyTorch
        if hasattr(part, "__array__") and not number:
            _see(part, seen)
            shape = _flatten(part.tolist(), flat, set())
        else:
            shape = _flatten(part, flat, seen, depth + 1)
        if inner is not None and shape != inner:
            raise ShapeError(f"tensor: ragged lists: item {position} has shape {shape} where item 0 has shape {inner}")
        inner = shape
    return (len(data), *(inner or ()))


def _see(data: Any, seen: set[Any]) -> bool:
    """Adds the dtype of an array, a tensor or a scalar of one to seen; whether norch knows it."""
    found = BY_NAME.get(getattr(getattr(data, "dtype", None), "name", ""))
    if found is not None:
        seen.add(found)
    return found is not None


def _number(data: Any, seen: set[Any]) -> Any:
    """data, which is no plain Python number, as one."""
    if isinstance(data, (str, bytes)) or not hasattr(data, "__float__"):
        raise TypeError(f"tensor: a {type(data).__name__} is no number: {data!r}")
    known = _see(data, seen)
    number = data.item() if hasattr(data, "item") else data
    if not isinstance(number, (bool, int, float)):
        number = int(number) if hasattr(number, "__index__") else float(number)
    if not known:
        seen.add(bool if isinstance(number, bool) else float if isinstance(number, float) else int)
    return number


def _infer(seen: set[Any]) -> DType:
    """The dtype that holds all of the given types and dtypes."""
    if not seen:
        return get_default_dtype()
    return reduce(promote_types, (get_default_dtype() if one is float else dtype_named(one) for one in seen))


def _from_numbers(flat: list[Any], shape: tuple[int, ...], dtype: DType | None, known: DType) -> Tensor:
    from array import array

    wanted = dtype or known
    if wanted is not known and wanted.kind in "iu" and flat:
        for number in flat if known.is_floating_point else (min(flat), max(flat)):
            check_fits(number, wanted, "tensor")
    if known.kind in "iu":
        try:
            data, source = array("q", [int(x) for x in flat]).tobytes(), norch_int64
        except OverflowError:
            if not wanted.is_floating_point:
                raise OverflowError("tensor: an integer does not fit 64 bits") from None
            data, source = array("d", map(float, flat)).tobytes(), float64
    elif known is norch_bool:
        data, source = bytes(flat), norch_bool
    elif wanted is float32:
        data, source = _as_float32(flat), float32
    else:
        data, source = array("d", map(float, flat)).tobytes(), float64
    made = from_bytes(data, shape, source)
    return made if source is wanted else made.to(wanted)


def _as_float32(flat: list[Any]) -> bytes:
    from array import array

    return array("f", map(float, flat)).tobytes()  # too large becomes infinite


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor of the values in data: a number, nested lists, an array, a buffer or a tensor; always a copy.

    Its dtype is that of the values: int64 for integers, bool for bools, the default dtype for floats, the array's own
    for arrays. ShapeError for ragged lists, TypeError for what is no number.

    >>> norch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    wanted = None if dtype is None else dtype_named(dtype)
    if isinstance(data, Handle):
        made = data.detach().clone()  # type: ignore[attr-defined]
        made = made if wanted is None else made.to(wanted)
    elif not isinstance(data, (list, tuple, bool, int, float)) and (
        hasattr(data, "__array_interface__") or _is_buffer(data)
    ):
        made = _from_buffer(data) if not hasattr(data, "__array_interface__") else _copied_array(data)
        made = made if wanted is None else made.to(wanted)
    elif hasattr(data, "__array__"):
        return tensor(data.__array__(), dtype=dtype, device=device, requires_grad=requires_grad)
    else:
        flat: list[Any] = []
        seen: set[Any] = set()
        shape = _flatten(data, flat, seen)
        made = _from_numbers(flat, shape, wanted, _infer(seen))
    return _placed(made, device, requires_grad)


def _is_buffer(data: Any) -> bool:
    if isinstance(data, (bytes, str)):
        return False
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


def _from_buffer(data: Any) -> Tensor:
    """A copy of an object with the buffer protocol, such as array.array."""
    view = memoryview(data)
    kind = {"?": "b", "B": "u", "e": "f", "f": "f", "d": "f"}.get(view.format, "i" if view.format in "bhilq" else None)
    found = _dtype_of(kind, view.itemsize, view.format)
    return from_bytes(view.tobytes(), tuple(view.shape or (view.nbytes // view.itemsize,)), found)


def _dtype_of(kind: str | None, itemsize: int, shown: Any) -> DType:
    from .dtype import DTYPES

    for one in DTYPES:
        if one.kind == kind and one.itemsize == itemsize:
            return one
    raise DTypeError(f"tensor: elements of type {shown} have no dtype in norch; convert them first")


def _copied_array(array: Any) -> Tensor:
    interface = array.__array_interface__
    found = _array_dtype(interface["typestr"])
    return from_bytes(array.tobytes(), tuple(interface["shape"]), found)


def _array_dtype(typestr: str) -> DType:
    if typestr[0] == ">":
        raise DTypeError(f"tensor: big-endian elements ({typestr}); convert them to native order first")
    return _dtype_of(typestr[1], int(typestr[2:] or 0), typestr)


def from_numpy(array: Any) -> Tensor:
    """A tensor over the memory of a NumPy array: writes go both ways, and each keeps the memory alive.

    ValueError for arrays that cannot be written to, or have odd strides; DTypeError for dtypes norch lacks.
    """
    if not hasattr(array, "__array_interface__"):
        raise TypeError(f"from_numpy: expected a NumPy array, not {type(array).__name__}")
    interface = array.__array_interface__
    found = _array_dtype(interface["typestr"])
    address, read_only = interface["data"]
    if read_only:
        raise ArgumentError("from_numpy: this array cannot be written to; copy it, or use norch.tensor()")
    shape = tuple(interface["shape"])
    steps = array.strides
    if any(step % found.itemsize for step in steps):
        raise ArgumentError(f"from_numpy: strides {steps} are no multiples of the element size; copy the array first")
    strides = ints([step // found.itemsize for step in steps], "stride")
    release, context = keep_alive(array)
    try:
        return lib.norch_from_memory(address, len(shape), ints(shape), strides, found.code, release, context)
    except BaseException:
        forget(array)
        raise


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """obj as a tensor: sharing memory where it can, never with copy=True, or else ValueError with copy=False. A tensor
    stays in its graph unless requires_grad is False."""
    if copy is not None and flag(copy, "asarray: copy") and not isinstance(obj, Handle):
        made = tensor(obj, dtype=dtype, device=device)
    elif copy:
        made = obj.to(dtype=dtype, device=device, copy=True)
    else:
        made = as_tensor(obj, dtype, device)
        if copy is False and made is not obj and not _shares(made, obj):
            raise ArgumentError(f"asarray: a {type(obj).__name__} cannot be seen as such a tensor without a copy")
    if requires_grad is None or flag(requires_grad, "asarray: requires_grad") == made.requires_grad:
        return made
    return made.requires_grad_() if requires_grad else made.detach()


def _shares(made: Tensor, source: Any) -> bool:
    interface = getattr(source, "__array_interface__", None)
    return interface is not None and interface["data"][0] == made.data_ptr()


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """data as a tensor, sharing memory where it can."""
    if isinstance(data, Handle):
        return data.to(dtype=dtype, device=device)  # type: ignore[attr-defined]
    if hasattr(data, "__array_interface__") and not data.__array_interface__["data"][1]:
        return _placed(from_numpy(data), device, False).to(dtype=dtype)
    return tensor(data, dtype=dtype, device=device)


def legacy_tensor(data: tuple[Any, ...], dtype: DType | None = None) -> Tensor:
    """What Tensor(...) holds: sizes when given integers or a Size, values when given one list, array or tensor."""
    dtype = dtype or get_default_dtype()
    if not data:
        return empty(0, dtype=dtype)
    if len(data) == 1 and not isinstance(data[0], Size):
        if not hasattr(data[0], "__index__") or isinstance(data[0], Handle) or hasattr(data[0], "__array__"):
            return tensor(data[0], dtype=dtype)
    return empty(*data, dtype=dtype)


# ---- from a rule ------------------------------------------------------------------------------------------------


def empty(
    *shape: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor whose elements are whatever the memory held."""
    if memory_format is not None:
        check_format(memory_format, "empty")
    wanted = get_default_dtype() if dtype is None else dtype_named(dtype)
    out: Tensor = lib.norch_empty(sizes(shape, size), wanted.code, place(device))
    return out.requires_grad_(requires_grad) if requires_grad else out


@rename_errors
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of undefined elements with the given strides."""
    steps = [int64(step, "empty_strided: stride") for step in stride]
    if min(steps, default=0) < 0:
        raise ArgumentError(f"empty_strided: strides must not be negative, got {tuple(steps)}")
    reach = sum((int64(count, "empty_strided: size") - 1) * step for count, step in zip(size, steps))
    out = empty(0 if 0 in size else reach + 1, dtype=dtype, device=device).as_strided(size, steps)
    return out.requires_grad_(requires_grad) if requires_grad else out


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """fill_value everywhere; its dtype follows the value unless given.

    >>> norch.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    fill_value = _plain(fill_value, "full")
    wanted = _infer({type(fill_value)}) if dtype is None else dtype_named(dtype)
    value, integer = _both(fill_value, "full")
    check_fits(fill_value, wanted, "full")
    out: Tensor = lib.norch_full(sizes((size,)), wanted.code, value, integer, place(device))
    return out.requires_grad_(requires_grad) if requires_grad else out


def _plain(value: Any, name: str) -> Any:
    """A number, a 0-d tensor or a scalar of NumPy as a bool, an int or a float."""
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return float(value)  # NumPy's float64 is a subclass
    if isinstance(value, Handle):
        return value.item()  # type: ignore[attr-defined]
    if hasattr(value, "dtype") and hasattr(value, "item"):
        return _plain(value.item(), name)
    for conversion in ("__index__", "__float__"):
        if hasattr(value, conversion):
            return getattr(value, conversion)()
    raise TypeError(f"{name}: expected a number, not {type(value).__name__}")


def _both(value: Any, name: str) -> tuple[float, int]:
    """A number as C takes it: as a double, and exactly where it is an integer."""
    if isinstance(value, (bool, int)):
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"{name}: {value} does not fit 64 bits")
        return float(value), int(value)
    number = float(value)
    return number, int(number) if abs(number) < 2.0**63 else 0


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A number as a 0-d tensor, of the default dtype unless given."""
    return full((), s, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad)


def zeros(*shape: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros, of the default dtype unless given.

    >>> norch.zeros(2, 3).shape
    norch.Size([2, 3])
    """
    return _all("zeros", 0, shape, size, dtype, device, requires_grad)


def ones(*shape: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones, of the default dtype unless given."""
    return _all("ones", 1, shape, size, dtype, device, requires_grad)


def _all(name: str, value: int, shape: Any, size: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """full(), whose errors name the caller."""
    try:
        wanted = dtype or get_default_dtype()
        return full(sizes(shape, size), value, dtype=wanted, device=device, requires_grad=requires_grad)
    except (Error, TypeError, OverflowError) as error:
        rename_error(error, name)
        raise


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """fill_value in the shape and dtype of input, on its device, and in its order where it lies dense in memory.

    memory_format=contiguous_format asks for C's order. So do zeros_like() and the others.

    >>> norch.full_like(norch.ones(2, 3).T, 7.0).stride()
    (1, 3)
    """
    check_format(memory_format, "full_like")
    wanted = tensor_of(input, "full_like").dtype if dtype is None else dtype_named(dtype)
    fill_value = _plain(fill_value, "full_like")
    check_fits(fill_value, wanted, "full_like")
    like = lib.norch_meta(input) if memory_format is contiguous_format else input
    return _placed(
        lib.norch_full_like(like, wanted.code, *_both(fill_value, "full_like")), device or input.device, requires_grad
    )


def zeros_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Zeros in the shape and dtype of input, and on its device."""
    check_format(memory_format, "zeros_like")
    return full_like(input, 0, dtype=dtype, device=device, requires_grad=requires_grad, memory_format=memory_format)


def ones_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Ones in the shape and dtype of input, and on its device."""
    check_format(memory_format, "ones_like")
    return full_like(input, 1, dtype=dtype, device=device, requires_grad=requires_grad, memory_format=memory_format)


def empty_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Undefined elements in the shape and dtype of input, and on its device."""
    check_format(memory_format, "empty_like")
    x: Any = tensor_of(input, "empty_like")
    if not x.is_contiguous() and memory_format is not contiguous_format:
        return full_like(x, 0, dtype=dtype, device=device, requires_grad=requires_grad)
    return empty(x.shape, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def arange(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """start, start + step ... as far as it stays before end; int64 for integers, else the default dtype.

    >>> norch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if end is None:
        start, end = 0, start
    start, end, step = (_plain(x, "arange") for x in (start, end, step))
    wanted = None if dtype is None else dtype_named(dtype)
    if wanted is norch_int64 and isfinite(start) and isfinite(end) and isfinite(step):  # as PyTorch, for int64 alone
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise ArgumentError("arange: step must not be 0")
    whole = all(isinstance(x, int) for x in (start, end, step))
    if not whole and not (isfinite(start) and isfinite(end) and isfinite(step)):
        raise ArgumentError(f"arange: from {start} to {end} in steps of {step} is no range")
    count = -((start - end) // step) if whole else ceil((end - start) / step)
    if count < 0 or (end - start) * step < 0:
        raise ArgumentError(f"arange: from {start} in steps of {step} never comes to {end}")
    wanted = wanted or (norch_int64 if whole else get_default_dtype())
    first, second = _both(start, "arange"), _both(step, "arange")
    return _placed(
        lib.norch_arange(count, wanted.code, first[0], second[0], first[1], second[1]), device, requires_grad
    )


def _evenly(start: Any, end: Any, steps: int, name: str, whole: bool, dtype: Any = float64) -> Tensor:
    """steps numbers from start to end in double precision; from each end on, so that both are exact."""
    if int64(steps, f"{name}: steps") < 0:
        raise ArgumentError(f"{name}: {steps} steps")
    start, end = (float(_plain(x, name)) for x in (start, end))
    if whole:
        start, end = float(int(start)), float(int(end))
    gap = (end - start) / (steps - 1) if steps > 1 else 0.0
    half = steps // 2 if steps > 1 else steps
    from_start, from_end = (
        lib.norch_arange(count, dtype.code, first, step, 0, 0)  # rounded once
        for count, first, step in ((half, start, gap), (steps - half, end, -gap))
    )
    return from_start if half == steps else lib.norch_cat((from_start, from_end.flip(0)), 0)


def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """steps numbers evenly from start to end, both included.

    >>> norch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    wanted = get_default_dtype() if dtype is None else dtype_named(dtype)
    whole = not wanted.is_floating_point
    direct = wanted if wanted is float32 else float64
    return _placed(_evenly(start, end, steps, "linspace", whole, direct).to(wanted), device, requires_grad)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """base to the power of linspace(start, end, steps).

    >>> norch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    wanted = get_default_dtype() if dtype is None else dtype_named(dtype)
    whole = not wanted.is_floating_point
    powers = float(_plain(base, "logspace")) ** _evenly(start, end, steps, "logspace", whole)
    return _placed(powers.to(wanted), device, requires_grad)


@rename_errors
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """An (n, m) matrix with ones on its diagonal; m is n unless given."""
    out = zeros(n, n if m is None else m, dtype=dtype, device=device)
    out.diagonal().fill_(1)
    return out.requires_grad_(requires_grad) if requires_grad else out


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = norch_int64, device: Any = None) -> Tensor:
    """Rows and columns, (2, N), of the lower triangle of a (row, col) matrix, row by row.

    >>> norch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    lengths = [min(max(i + offset + 1, 0), col) for i in _rows(row, col, offset, "tril_indices")]
    return _triangle(lengths, [0] * row, dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = norch_int64, device: Any = None) -> Tensor:
    """Rows and columns, (2, N), of the upper triangle of a (row, col) matrix, row by row."""
    begins = [min(max(i + offset, 0), col) for i in _rows(row, col, offset, "triu_indices")]
    return _triangle([col - begin for begin in begins], begins, dtype, device)


def _rows(row: int, col: int, offset: int, name: str) -> range:
    for number in (row, col, offset):
        int64(number, f"{name}: size")
    if row < 0 or col < 0:
        raise ArgumentError(f"{name}: sizes must not be negative, got {row} and {col}")
    return range(row)


def _triangle(lengths: list[int], begins: list[int], dtype: Any, device: Any) -> Tensor:
    """As many indices of each row as its length says, from its begin on."""
    counts = tensor(lengths, dtype=norch_int64)
    shifts = [begin - before for begin, before in zip(begins, accumulate([0, *lengths]))]
    columns = arange(sum(lengths)) + tensor(shifts, dtype=norch_int64).repeat_interleave(counts, 0)
    out = stack([repeat_interleave(counts), columns]).to(dtype_named(dtype))
    return _placed(out, device, False)


class CreateMethods(Handle):
    """The makers of Tensor, of more of its kind."""

    __slots__ = ()

    def new(self, *data: Any, size: Any = ()) -> Tensor:
        """Tensor(*data), which takes sizes or values, in this dtype and on this device: the older new_tensor()."""
        return legacy_tensor(data or tuple(size), self.dtype).to(self.device)

    def new_tensor(self, data: Any, **more: Any) -> Tensor:
        """The values in data, in this dtype and on this device; see norch.tensor."""
        return tensor(data, **self._like(more))

    def new_empty(self, *shape: Any, size: Any = None, **more: Any) -> Tensor:
        """Undefined elements in the given shape, in this dtype and on this device unless given."""
        return empty(*shape, size=size, **self._like(more))

    def new_zeros(self, *shape: Any, size: Any = None, **more: Any) -> Tensor:
        """Zeros in the given shape, in this dtype and on this device unless given."""
        return zeros(*shape, size=size, **self._like(more))

    def new_ones(self, *shape: Any, size: Any = None, **more: Any) -> Tensor:
        """Ones in the given shape, in this dtype and on this device unless given."""
        return ones(*shape, size=size, **self._like(more))

    def new_full(self, size: Any, fill_value: Any, **more: Any) -> Tensor:
        """fill_value in the given shape, in this dtype and on this device unless given."""
        return full(size, fill_value, **self._like(more))

    def new_empty_strided(self, size: Any, stride: Any, **more: Any) -> Tensor:
        """Undefined elements in the given shape and strides, in this dtype and on this device unless given."""
        return empty_strided(size, stride, **self._like(more))

    def _like(self, more: dict[str, Any]) -> dict[str, Any]:
        dtype, device = more.get("dtype"), more.get("device")
        return {**more, "dtype": dtype or self.dtype, "device": self.device if device is None else device}
