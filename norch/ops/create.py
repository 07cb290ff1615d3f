"""Tensors made by a rule: constants, ranges, the identity, the indices of triangles. values.py makes tensors from data.

The elements are computed on the device that the call names, or on the default device.
"""

from __future__ import annotations

from math import ceil, inf, isfinite

from .._binding.library import lib
from .._binding.numbers import int64
from .._package.typing import Any, DeviceLike, DTypeLike, Operand
from .._tensor import handle as _handle
from .._tensor.handle import Handle
from .._tensor.size import Size
from ..device import device_code
from ..dtype import (
    bool_,
    check_fits,
    check_format,
    check_numbers,
    contiguous_format,
    dtype_named,
    float32,
    float64,
    get_default_dtype,
)
from ..dtype import dtype as DType
from ..dtype import int64 as norch_int64
from ..errors import ArgumentError, DTypeError, Error, rename_error
from ._arguments import named_function, public
from ._examples import with_example
from ._operand import operand, tensor_of
from ._out import makes
from .values import Tensor, common_dtype, on_device, tensor
from .view import sizes

# ---- the options that all makers share --------------------------------------------------------------------------


def dtype_or_default(dtype: DTypeLike) -> DType:
    """The dtype of an option: the default float dtype for None."""
    return get_default_dtype() if dtype is None else dtype_named(dtype)


def options_like(
    name: str, x: Tensor, dtype: DType | None, device: DeviceLike, memory_format: Any
) -> tuple[DType, Any]:
    """The dtype and the device of a function name_like(), by default those of x, after checks of its arguments."""
    if memory_format is not None:
        check_format(memory_format, name)
    if not isinstance(x, Handle):
        tensor_of(x, name)
    return x.dtype if dtype is None else dtype_named(dtype), device or x.device


def number_of(value: Operand, name: str, may_require_grad: bool = False) -> Any:
    """A number, a 0-d tensor or a NumPy scalar as a bool, an int, a float or a complex. TypeError for other values, and
    for a tensor whose gradient would be lost.
    """
    if isinstance(value, (bool, int, complex)):
        return value
    if isinstance(value, float):
        return float(value)  # NumPy's float64 is a subclass
    if isinstance(value, Handle):
        if not may_require_grad:
            check_numbers(name, value=value)
        return value.item()
    if hasattr(value, "dtype") and hasattr(value, "item"):
        return number_of(value.item(), name)
    for conversion in ("__index__", "__float__"):
        if hasattr(value, conversion):
            return getattr(value, conversion)()
    raise TypeError(f"{name}: expected a number, not {type(value).__name__}")


def _double_and_int(value: Any, name: str) -> tuple[float, int]:
    """A number as C takes it: as a double, and exactly where it is an integer."""
    if isinstance(value, (bool, int)):
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"{name}: {value} does not fit 64 bits")
        return float(value), int(value)
    number = float(value)
    return number, int(number) if abs(number) < 2.0**63 else 0


def _is_finite(value: Any) -> bool:
    return isinstance(value, int) or isfinite(value)


# ---- constants --------------------------------------------------------------------------------------------------


@makes(undefined=True)
def empty(
    *shape: Any, size: Any = None, dtype: DType | None = None, device: DeviceLike = None, memory_format: Any = None
) -> Tensor:
    """A tensor whose elements are undefined: they are what the memory contained.

    >>> norch.empty(2, 3).shape
    norch.Size([2, 3])
    """
    if memory_format is not None:
        check_format(memory_format, "empty")
    return lib.norch_empty(sizes(shape, size), dtype_or_default(dtype).code, device_code(device))


@makes(out=False)
def empty_strided(size: Any, stride: Any, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """A tensor with these strides, whose elements are undefined. ArgumentError for negative strides.

    >>> norch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    steps = [step if type(step) is int else int64(step, "empty_strided: stride") for step in stride]
    if min(steps, default=0) < 0:
        raise ArgumentError(f"empty_strided: strides must not be negative, got {tuple(steps)}")
    reach = 1
    for count, step in zip(size, steps):
        reach += ((count if type(count) is int else int64(count, "empty_strided: size")) - 1) * step
    line = lib.norch_empty((0 if 0 in size else reach,), dtype_or_default(dtype).code, device_code(device))
    return lib.norch_as_strided(line, tuple(size), steps, 0)


@makes
def full(size: Any, fill_value: Operand, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """A tensor with all elements equal to fill_value. By default the dtype follows the value: int64 for an integer,
    bool for a bool, the default dtype for a float.

    >>> norch.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    fill_value = number_of(fill_value, "full")
    if dtype is not None:
        wanted = dtype_named(dtype)
    else:
        wanted = get_default_dtype() if type(fill_value) is float else common_dtype({type(fill_value)})
    if type(fill_value) is complex:
        out = lib.norch_empty(sizes((size,)), wanted.code, device_code(device))
        return out.fill_(fill_value)
    value, integer = _double_and_int(fill_value, "full")
    check_fits(fill_value, wanted, "full")
    return lib.norch_full(sizes((size,)), wanted.code, value, integer, device_code(device))


@makes(out=False)
def scalar_tensor(s: float, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """A number as a 0-d tensor, by default of the default dtype.

    >>> norch.scalar_tensor(2)
    tensor(2.)
    """
    wanted = dtype or get_default_dtype()
    return full((), s, dtype=wanted, device=device)


def _constant(name: str, value: int, contents: str) -> Any:
    """zeros() or ones()."""
    real = float(value)

    def constant(*shape: Any, size: Any = None, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
        wanted = dtype_or_default(dtype)
        return lib.norch_full(sizes(shape, size), wanted.code, real, value, device_code(device))

    return makes(named_function(constant, name, with_example(name, f"{contents}, of the default dtype unless given.")))


zeros, ones = _constant("zeros", 0, "Zeros"), _constant("ones", 1, "Ones")


@makes(out=False)
def full_like(
    input: Tensor,
    fill_value: float,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of fill_value with the shape, dtype and device of input. It has the strides of input if input is dense
    in memory. With memory_format=contiguous_format, this function and the other ..._like() functions use C order.

    >>> norch.full_like(norch.ones(2, 3).T, 7.0).stride()
    (1, 3)
    """
    plain = type(input) is _handle.result_class and device is memory_format is None
    if plain and (type(fill_value) is float or (type(fill_value) is int and -FAR < fill_value < FAR)):
        wanted = input.dtype if dtype is None else dtype_named(dtype)
        if wanted.is_floating_point:
            check_fits(fill_value, wanted, "full_like")
            return _full_like("full_like", input, wanted.code, fill_value, 0)
    return _constant_like("full_like", input, fill_value, dtype, device, memory_format)


def _full_like(name: str, input: Tensor, dtype: int, value: float, integer: int) -> Tensor:
    try:
        return lib.norch_full_like(input, dtype, value, integer)
    except Error as error:
        rename_error(error, name)
        raise


def _constant_like(
    name: str, input: Tensor, value: float, dtype: DType | None, device: Any, memory_format: Any
) -> Tensor:
    dtype, device = options_like(name, input, dtype, device, memory_format)
    value = number_of(value, name)
    check_fits(value, dtype, name)
    if type(value) is complex:
        return _constant_like(name, input, 0, dtype, device, memory_format).fill_(value)
    like = lib.norch_meta(input) if memory_format is contiguous_format else input
    out = _full_like(name, like, dtype.code, *_double_and_int(value, name))
    return on_device(out, device)


def _filled_like(name: str, value: int, contents: str) -> Any:
    """zeros_like() or ones_like()."""
    real = float(value)

    def filled_like(
        input: Tensor, *, dtype: DType | None = None, device: DeviceLike = None, memory_format: Any = None
    ) -> Tensor:
        if type(input) is _handle.result_class and device is memory_format is None:
            return _full_like(name, input, -1 if dtype is None else dtype_named(dtype).code, real, value)
        return _constant_like(name, input, value, dtype, device, memory_format)

    about = f"{contents} in the shape and dtype of input, on its device."
    return makes(out=False)(named_function(filled_like, name, with_example(name, about)))


zeros_like, ones_like = _filled_like("zeros_like", 0, "Zeros"), _filled_like("ones_like", 1, "Ones")


@makes(out=False)
def empty_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike = None, memory_format: Any = None
) -> Tensor:
    """A tensor with the shape, dtype and device of input, whose elements are undefined.

    >>> norch.empty_like(norch.ones(2, 3)).shape
    norch.Size([2, 3])
    """
    plain = type(input) is _handle.result_class and dtype is device is memory_format is None
    if plain and input._contiguous:
        return lib.norch_empty(lib.norch_shape(input), input._dtype, (input._device_type, input._device_index))
    dtype, device = options_like("empty_like", input, dtype, device, memory_format)
    if not input._contiguous and memory_format is not contiguous_format:
        return full_like(input, 0, dtype=dtype, device=device)
    return lib.norch_empty(input.shape, dtype.code, device_code(device))


FAR = 1 << 52  # integers that doubles hold, and so do their sums


# ---- ranges -----------------------------------------------------------------------------------------------------


@makes(line=True)
def arange(
    start: Tensor | float = 0,
    end: Tensor | float | None = None,
    step: Tensor | float = 1,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:
    """start, start + step, ... up to end, which is excluded. The default dtype is int64 if all three are integers, else
    the default float dtype.

    >>> norch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if end is None:
        start, end = 0, start
    wanted = None if dtype is None else dtype_named(dtype)
    fit = type(start) is type(end) is type(step) is int and wanted in (None, norch_int64, float32, float64)
    if fit and 0 <= start <= end < FAR > step > 0:
        code = (wanted or norch_int64).code
        out = lib.norch_arange((end - start + step - 1) // step, code, start, step, start, step)
        return on_device(out, device)
    start, end, step = (number_of(x, "arange") for x in (start, end, step))
    if (
        wanted is norch_int64 and _is_finite(start) and _is_finite(end) and _is_finite(step)
    ):  # as PyTorch, for int64 alone
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise ArgumentError("arange: step must not be 0")
    whole = all(isinstance(x, int) for x in (start, end, step))
    if not whole and not (isfinite(start) and isfinite(end) and isfinite(step)):
        raise ArgumentError(f"arange: from {start} to {end} in steps of {step} is no range")
    count = -((start - end) // step) if whole else ceil((end - start) / step)
    if count < 0 or (end - start) * step < 0:
        raise ArgumentError(f"arange: from {start} in steps of {step} never reaches {end}")
    wanted = wanted or (norch_int64 if whole else get_default_dtype())
    (first, int_first), (step, int_step) = _double_and_int(start, "arange"), _double_and_int(step, "arange")
    for number in (start, int_first + (count - 1) * int_step) if 0 < count < 1 << 63 else ():
        check_fits(number, wanted, "arange")
    numbers = lib.norch_arange(count, wanted.code, first, step, int_first, int_step)
    return on_device(numbers, device)


def _evenly_spaced(
    name: str, start: Operand, end: Operand, steps: int, dtype: Any, device: Any, base: Any = None
) -> Tensor:
    """steps numbers from start to end, or base to the power of these, in dtype. They are computed from each end to the
    middle, in double precision, so that both ends are exact.
    """
    first, last = number_of(start, name, True), number_of(end, name, True)  # as in PyTorch
    kinds = {float, type(first), type(last)}
    least = get_default_dtype() if kinds <= {float, int} else common_dtype(kinds)
    wanted = least if dtype is None else dtype_named(dtype)
    if wanted is bool_ or (least.is_complex and not wanted.is_complex):
        raise DTypeError(f"{name}: not defined for dtype {wanted.name}" + " of complex numbers" * least.is_complex)
    if int64(steps, f"{name}: steps") < 0:
        raise ArgumentError(f"{name}: {steps} steps")
    base = None if base is None else float(number_of(base, name))
    if wanted.kind in "iu":
        out = _even_integers(name, first, last, steps, wanted, base)
    elif wanted.is_complex:
        out = _even_complex(complex(first), complex(last), steps)
    else:
        code = (wanted if wanted is float32 and base is None else float64).code  # float32 is rounded once
        out = lib.norch_linspace(steps, code, float(first), float(last))
    if base is not None and wanted.kind not in "iu":
        out = base**out
    return on_device(out if out.dtype is wanted else out.to(wanted), device)


def _even_complex(start: complex, end: complex, steps: int) -> Tensor:
    real, imaginary = (
        lib.norch_linspace(steps, float64.code, *ends) for ends in ((start.real, end.real), (start.imag, end.imag))
    )
    return real + imaginary * 1j


def _even_integers(name: str, start: Any, end: Any, steps: int, wanted: DType, base: Any) -> Tensor:
    """The numbers without their fractions. The dtype must have both ends, or base to their power."""
    if not (_is_finite(start) and _is_finite(end)):
        raise ArgumentError(f"{name}: integers from {start} to {end}")
    start, end = int(start), int(end)
    for number in (start, end)[: min(steps, 2)]:
        check_fits(number if base is None else _power(base, number), wanted, name)
    if base is None and max(abs(start), abs(end)) > 1 << 53:  # doubles do not hold them
        gaps = max(steps - 1, 1)
        return tensor([_quotient(start * gaps + (end - start) * i, gaps) for i in range(steps)], dtype=wanted)
    out = lib.norch_linspace(steps, float64.code, start, end)
    return (out if base is None else base**out).to(wanted)


def _power(a: float, n: int) -> float:
    try:
        return a**n
    except (OverflowError, ZeroDivisionError):
        return inf


def _quotient(a: int, b: int) -> int:
    """a / b, b > 0, without its fraction."""
    return a // b if a >= 0 else -(-a // b)


@makes(line=True)
def linspace(
    start: Operand, end: Operand, steps: int, *, dtype: DType | None = None, device: DeviceLike = None
) -> Tensor:
    """steps evenly spaced numbers from start to end, both included.

    >>> norch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    return _evenly_spaced("linspace", start, end, steps, dtype, device)


@makes(line=True)
def logspace(
    start: float, end: float, steps: int, base: float = 10.0, *, dtype: DType | None = None, device: DeviceLike = None
) -> Tensor:
    """base to the power of linspace(start, end, steps).

    >>> norch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    return _evenly_spaced("logspace", start, end, steps, dtype, device, base)


# ---- matrices and their indices -----------------------------------------------------------------------------------


@makes
def eye(n: int, m: int | None = None, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """An (n, m) matrix with ones on its diagonal and zeros elsewhere. m is n by default.

    >>> norch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    out = lib.norch_full((n, n if m is None else m), dtype_or_default(dtype).code, 0.0, 0, device_code(device))
    lib.norch_copy(lib.norch_diagonal(out, 0, 0, 1), operand(1))
    return out


@makes(out=False)
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = norch_int64, device: DeviceLike = None
) -> Tensor:
    """The rows and columns (2, N) of the elements of the lower triangle of a (row, col) matrix, row by row.

    >>> norch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    offset = _offset("tril_indices", row, col, offset)
    indices = lib.norch_triangle_indices(_triangle_size(row, col, offset), max(-offset, 0), col, offset, False)
    return _indices(indices, dtype, device)


@makes(out=False)
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = norch_int64, device: DeviceLike = None
) -> Tensor:
    """The rows and columns (2, N) of the elements of the upper triangle of a (row, col) matrix, row by row.

    >>> norch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    offset = _offset("triu_indices", row, col, offset)
    total = row * col - _triangle_size(row, col, offset - 1)
    indices = lib.norch_triangle_indices(total, 0, col, offset, True)
    return _indices(indices, dtype, device)


def _offset(name: str, row: int, col: int, offset: int) -> int:
    """offset, or the nearest one that gives the same triangle."""
    for number in (row, col, offset):
        int64(number, f"{name}: size")
    if row < 0 or col < 0:
        raise ArgumentError(f"{name}: sizes must not be negative, got {row} and {col}")
    return max(-row, min(offset, col))


def _triangle_size(row: int, col: int, offset: int) -> int:
    """The number of elements in the lower triangle of a (row, col) matrix."""
    first = min(max(-offset, 0), row)  # the first row that has one, and the first that is whole
    whole = min(max(col - offset - 1, first), row)
    return (whole - first) * (first + whole + 2 * offset + 1) // 2 + (row - whole) * col


def _indices(indices: Tensor, dtype: DType | None, device: Any) -> Tensor:
    """Indices on the CPU as they were asked for."""
    wanted = norch_int64 if dtype is None else dtype_named(dtype)
    if wanted is not norch_int64 and indices.numel():
        check_fits(indices.amax().item(), wanted, "indices of a triangle")
    return on_device(indices.to(wanted), device)


# ---- values or sizes ------------------------------------------------------------------------------------------------


def legacy_tensor(data: tuple[Any, ...], dtype: DType | None = None) -> Tensor:
    """What Tensor(*data) holds: undefined elements of these sizes, or the values of one list, array or tensor."""
    if not data:
        return empty(0, dtype=dtype)
    if len(data) == 1 and not isinstance(data[0], Size):
        if not hasattr(data[0], "__index__") or isinstance(data[0], Handle) or hasattr(data[0], "__array__"):
            return tensor(data[0], dtype=dtype or get_default_dtype())
    return empty(*data, dtype=dtype)


_OTHERS = ("dtype_or_default", "legacy_tensor", "number_of", "options_like")
__all__ = public(globals(), *_OTHERS)
