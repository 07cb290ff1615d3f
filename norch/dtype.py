"""Element types, ``norch.float32``, ``norch.int64`` ..., read from the table of the library, and memory formats."""

from __future__ import annotations

import math
from functools import cache

from ._binding.library import lib, listed
from ._package.typing import Any
from .errors import ArgumentError, DTypeError

__all__ = [
    "bfloat16", "can_cast", "cdouble", "cfloat", "channels_last", "channels_last_3d", "complex64", "complex128",
    "contiguous_format", "double", "dtype", "finfo", "float16", "float32", "float64", "get_default_dtype", "half",
    "iinfo", "int8", "int16", "int32", "int64", "long", "memory_format", "preserve_format", "promote_types",
    "set_default_dtype", "short", "uint8",
]  # fmt: skip

# Formats of memoryviews, by kind and size in bytes; they have none for the two half floats.
_STRUCT_FORMATS = dict(zip("b1 u1 u2 u4 u8 i1 i2 i4 i8 f4 f8".split(), "?BHIQbhiqfd", strict=True))


@cache
def _limits(itemsize: int, digits: int) -> tuple[float, float, float, float]:
    largest = (1 << (8 * itemsize - digits - 1)) - 1  # exponent
    eps = 2.0 ** (1 - digits)
    most = (2.0 - eps) * 2.0**largest
    return eps, most, -most, 2.0 ** (1 - largest)


class dtype:  # PyTorch's name
    """An element type. There is one object for each, so that `is` compares them.

    >>> norch.float32.itemsize, norch.float32.is_floating_point
    (4, True)
    """

    # format: of a memoryview, "" for the half floats, which memoryviews do not know; digits: how many binary digits an
    # exact number may have, of a complex one each part
    __slots__ = (
        "code", "digits", "format", "is_complex", "is_floating_point", "is_signed", "itemsize", "kind", "name",
    )  # fmt: skip

    def __new__(cls, code: int) -> dtype:
        if type(code) is not int or not 0 <= code < len(DTYPES):
            raise DTypeError(f"dtype: {code!r} is not the number of a dtype; there are {', '.join(map(repr, DTYPES))}")
        return DTYPES[code]

    def _read(self, code: int) -> dtype:
        """Fills in this dtype's properties from the library."""
        self.code: int = code  # its number in C
        self.name: str = lib.norch_dtype_name(code).decode()
        self.itemsize: int = lib.norch_dtype_size(code)
        self.digits: int = lib.norch_dtype_digits(code)
        self.kind: str = chr(lib.norch_dtype_kind(code))
        self.is_floating_point: bool = self.kind == "f"
        self.is_complex: bool = self.kind == "c"
        self.is_signed: bool = self.kind in "ifc"
        self.format: str = _STRUCT_FORMATS.get(self.kind + str(self.itemsize), "")
        return self

    def to_real(self) -> dtype:
        """The dtype of the parts of complex numbers; another dtype itself."""
        return DTYPES[lib.norch_dtype_part(self.code)]

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this floating dtype (float16 and bfloat16: complex64)."""
        return promote_types(self, complex64)

    def limits(self) -> tuple[float, float, float, float]:
        """Of a floating dtype: the distance from 1 to the next number, the largest, least and least positive normal
        numbers."""
        return _limits(self.itemsize, self.digits)

    def __repr__(self) -> str:
        return f"norch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_named, (self.name,)


# By number.
DTYPES = [object.__new__(dtype)._read(code) for code in range(len(listed(lib.norch_dtype_name)))]
BY_NAME: dict[str, dtype] = {one.name: one for one in DTYPES}


class memory_format:  # PyTorch's name
    """A memory layout that some operations accept. Copies are in C order, whichever one is passed.

    >>> norch.contiguous_format
    norch.contiguous_format
    """

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"norch.{self.name}"


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")


def check_format(wanted: Any, name: str) -> None:
    """TypeError for an option memory_format of another type."""
    if wanted is not None and not isinstance(wanted, memory_format):
        raise TypeError(f"{name}: memory_format must be one of {contiguous_format}, {preserve_format}, not {wanted!r}")


bool_, uint8, int8, int16 = (BY_NAME[name] for name in ("bool", "uint8", "int8", "int16"))
int64: dtype
int32, int64, float16, bfloat16 = (BY_NAME[name] for name in ("int32", "int64", "float16", "bfloat16"))
float32, float64 = BY_NAME["float32"], BY_NAME["float64"]
complex64, complex128 = BY_NAME["complex64"], BY_NAME["complex128"]
cfloat, cdouble = complex64, complex128
short, int_, long, half, float_, double = int16, int32, int64, float16, float32, float64


def dtype_named(name: Any) -> dtype:
    """The dtype for a name, a NumPy dtype or a Python type; DTypeError if norch does not have it."""
    if isinstance(name, dtype):
        return name
    if name is bool:
        return bool_
    if name is int:
        return int64
    if name is float:
        return float64
    if name is complex:
        return complex128
    text = name if isinstance(name, str) else getattr(name, "name", None) or getattr(name, "__name__", None)
    found = BY_NAME.get(str(text).removeprefix("norch."))
    if found is None:
        raise DTypeError(f"{name!r} is no dtype of norch; there are {', '.join(BY_NAME)}")
    return found


_default = DTYPES[lib.norch_default_dtype()]


def get_default_dtype() -> dtype:
    """The dtype of tensors of Python floats: float32 unless changed.

    >>> norch.get_default_dtype()
    norch.float32
    """
    return _default


def set_default_dtype(d: dtype) -> None:
    """Sets the dtype of tensors of Python floats to d, a floating one.

    >>> norch.set_default_dtype(norch.float64)
    >>> norch.tensor(1.5).dtype
    norch.float64
    >>> norch.set_default_dtype(norch.float32)
    """
    global _default
    named = dtype_named(d)
    lib.norch_set_default_dtype(named.code)
    _default = named


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that holds both: float32 for float16 and bfloat16, int16 for uint8 and int8.

    >>> norch.promote_types(norch.int64, norch.float16)
    norch.float16
    """
    return DTYPES[lib.norch_promote_types(dtype_named(type1).code, dtype_named(type2).code)]


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a cast keeps the kind of number: False from floats to integers, and from numbers to bool.

    >>> norch.can_cast(norch.int64, norch.float16), norch.can_cast(norch.float32, norch.int64)
    (True, False)
    """
    return lib.norch_can_cast(dtype_named(from_).code, dtype_named(to).code)


def check_numbers(name: str, **options: Any) -> None:
    """TypeError for an option that is not a number, or is a tensor whose gradient would be lost."""
    for option, value in options.items():
        if type(value) is float or type(value) is int:
            continue
        if not hasattr(value, "__float__"):
            raise TypeError(f"{name}: {option} must be a number, not {type(value).__name__}")
        if getattr(value, "requires_grad", False):
            raise TypeError(f"{name}: {option} must be a number, not a tensor that requires grad")


FITS_FLOATS = 65504.0  # the largest number of float16, which all float dtypes hold


def fits(value: Any, d: dtype) -> bool:
    """Whether a dtype of integers has a number in its range, or one of floats does not round it to infinity. Complex
    numbers are refused where they are converted."""
    if d.kind == "f" and type(value) is float and -FITS_FLOATS <= value <= FITS_FLOATS:
        return True  # the usual case
    if d.kind in "bc" or isinstance(value, complex):
        return True
    if d.kind == "f":
        eps, most, *_ = d.limits()
        return not most / (2 - eps) * (2 - eps / 2) <= abs(value) < math.inf
    most = (1 << d.digits) - 1
    return (-most - 1 if d.is_signed else 0) <= value <= most


def check_fits(value: Any, d: dtype, name: str) -> None:
    """Raises ArgumentError if a dtype cannot hold a number that is to be stored: numbers never wrap, and a finite one
    does not become infinite."""
    if not fits(value, d):
        raise ArgumentError(f"{name}: {value} does not fit {d.name}")


class _Limits:
    """The limits of a dtype; those of one dtype are equal."""

    def __init__(self, d: dtype) -> None:
        self.bits: int = 8 * d.itemsize
        self.dtype: str = d.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Limits) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class finfo(_Limits):  # PyTorch's name
    """The limits of a floating dtype (the default one unless given), or of the parts of a complex one: bits, eps, max,
    min, tiny, resolution.

    >>> norch.finfo(norch.float16).max
    65504.0
    """

    def __init__(self, type: Any = None):
        d = get_default_dtype() if type is None else dtype_named(type).to_real()
        if not d.is_floating_point:
            raise TypeError(f"finfo: {d.name} is no floating dtype; iinfo has the limits of integers")
        super().__init__(d)
        self.eps: float
        self.max: float
        self.min: float
        self.tiny: float
        self.eps, self.max, self.min, self.tiny = d.limits()
        self.smallest_normal: float = self.tiny
        self.resolution: float = 10.0 ** -int((d.digits - 1) * 0.30103)  # log10(2)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in ("resolution", "min", "max", "eps"))
        return f"finfo({shown}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"


class iinfo(_Limits):  # PyTorch's name
    """The limits of an integer dtype: bits, max, min.

    >>> norch.iinfo(norch.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type: Any):
        d = dtype_named(type)
        if d.kind not in "ui":
            raise TypeError(f"iinfo: {d.name} is no integer dtype; finfo has the limits of floats")
        super().__init__(d)
        self.max: int = (1 << d.digits) - 1
        self.min: int = -self.max - 1 if d.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
