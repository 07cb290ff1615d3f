"""Functions of the array API standard that make arrays or describe dtypes. Arrays are norch's tensors."""

from __future__ import annotations

from typing import Any

from ..device import CPU, cuda_device, cuda_device_count, get_default_device
from ..device import device as Device
from ..dtype import BY_NAME, finfo, float64, get_default_dtype, iinfo, int64
from ..dtype import dtype as DType
from ..ops import create
from ..ops._arguments import named_function
from ..ops.composed.diagonal import tril as _tril
from ..ops.composed.diagonal import triu as _triu
from ..ops.composed.grid import meshgrid as _meshgrid
from ..ops.composed.shape import broadcast_tensors as _broadcast_tensors
from ..ops.values import asarray as _asarray
from ..ops.values import is_bare_buffer, tensor
from ..ops.view import broadcast_to as _broadcast_to
from ..tensor import Tensor
from ..utils.dlpack import from_dlpack
from ._checks import result_type

__all__ = [
    "__array_namespace_info__", "arange", "asarray", "astype", "broadcast_arrays", "broadcast_to", "can_cast", "empty",
    "empty_like", "eye", "finfo", "from_dlpack", "full", "full_like", "iinfo", "isdtype", "linspace", "meshgrid",
    "ones", "ones_like", "result_type", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


# ---- new arrays ----------------------------------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """obj, an array, number or nested list, as a tensor; copy: True for always, False for never."""
    if copy is None and is_bare_buffer(obj):  # by its own type of elements
        return tensor(obj, dtype=dtype, device=device)
    return _asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """The numbers start, start + step, ... before stop; arange(stop) starts at 0."""
    first, last = (0, start) if stop is None else (start, stop)
    if (last - first) * step <= 0:  # empty, which norch takes for a mistake
        floats = any(isinstance(number, float) for number in (first, last, step))
        return create.empty(0, dtype=dtype or (get_default_dtype() if floats else int64), device=device)
    return create.arange(first, last, step, dtype=dtype, device=device)


def linspace(
    start: float, stop: float, /, num: int, *, dtype: DType | None = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """num numbers at equal distances from start to stop, without stop unless endpoint."""
    if endpoint:
        return create.linspace(start, stop, num, dtype=dtype, device=device)
    return create.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def _of_shape(make: Any, contents: str) -> Any:
    def create_array(shape: int | tuple[int, ...], *, dtype: DType | None = None, device: Any = None) -> Tensor:
        return make(shape, dtype=dtype, device=device)

    return named_function(create_array, make.__name__, f"An array of {contents}.")


empty, zeros = _of_shape(create.empty, "any values"), _of_shape(create.zeros, "zeros")
ones = _of_shape(create.ones, "ones")


def full(shape: int | tuple[int, ...], fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of one value."""
    return create.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def _like(make: Any, contents: str) -> Any:
    def create_array(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
        return make(x, dtype=dtype, device=device)

    return named_function(create_array, make.__name__, f"An array of the shape of x, of {contents}.")


empty_like, zeros_like = _like(create.empty_like, "any values"), _like(create.zeros_like, "zeros")
ones_like = _like(create.ones_like, "ones")


def full_like(x: Tensor, /, fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of the shape of x, of one value."""
    return create.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """A matrix of zeros with ones on the diagonal k."""
    columns = n_rows if n_cols is None else n_cols
    out = create.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        out.diagonal(k).fill_(1)
    return out


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices (..., M, N), up to the diagonal k."""
    return _tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices (..., M, N), from the diagonal k on."""
    return _triu(x, k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid."""
    return _meshgrid(*arrays, indexing=indexing)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays, each of the shape that all broadcast to."""
    return tuple(_broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """x, broadcast to shape."""
    return _broadcast_to(x, shape)


# ---- dtypes --------------------------------------------------------------------------------------------------------


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x cast to dtype; without copy it may be x itself."""
    return x.to(dtype=dtype, device=device, copy=copy)


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether promotion leads from one dtype to another."""
    return result_type(from_, to) is to


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "ui",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "uifc",
}


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether dtype is kind: a dtype, the name of a kind such as "real floating", or a tuple of these, of which one
    must match.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in _KINDS:
        raise ValueError(f"isdtype: {kind!r} is no kind of dtype; there are {', '.join(_KINDS)}")
    return dtype.kind in _KINDS[kind]


# The dtypes that the standard names, as far as norch has them.
STANDARD = {
    name: BY_NAME[name]
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
    if name in BY_NAME
}


class __array_namespace_info__:  # the standard's name
    """The dtypes and devices of the namespace, for programs to query."""

    def capabilities(self) -> dict[str, Any]:
        """What of the standard's optional parts there is."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self) -> Device:
        """The device of arrays that are created without one."""
        return get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of arrays of Python numbers, by kind."""
        dtypes = {"real floating": get_default_dtype(), "integral": int64, "indexing": int64}
        if "complex64" in STANDARD:
            double = get_default_dtype() is float64
            dtypes["complex floating"] = STANDARD["complex128" if double else "complex64"]
        return dtypes

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes of a kind, or of all, by name."""
        return {name: dtype for name, dtype in STANDARD.items() if kind is None or isdtype(dtype, kind)}

    def devices(self) -> list[Device]:
        """All devices."""
        return [CPU, *(cuda_device(index) for index in range(cuda_device_count()))]
