"""dtypes, read from the library's table: ``norch.float32``, ``norch.int64`` ..."""

from __future__ import annotations

from typing import Any

from ._lib import lib
from .errors import DTypeError

# Codes of the struct module, by kind and bytes.
_STRUCT_FORMATS = {"b1": "?", "u1": "B", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "f2": "e", "f4": "f", "f8": "d"}


class dtype:  # noqa: N801  (PyTorch's name)
    """An element type. There is one object for each, so `is` compares them.

    >>> norch.float32.itemsize, norch.float32.is_floating_point
    (4, True)
    """

    __slots__ = ("code", "format", "is_floating_point", "is_signed", "itemsize", "kind", "name")

    def __init__(self, code: int):
        self.code: int = code  # its number in C
        self.name: str = lib.norch_dtype_name(code).decode()
        self.itemsize: int = lib.norch_dtype_size(code)
        self.kind: str = chr(lib.norch_dtype_kind(code))
        self.is_floating_point: bool = self.kind == "f"
        self.is_signed: bool = self.kind in "if"
        self.format: str = _STRUCT_FORMATS[self.kind + str(self.itemsize)]

    def __repr__(self) -> str:
        return f"norch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_named, (self.name,)


def _read_table() -> list[dtype]:
    table: list[dtype] = []
    while lib.norch_dtype_name(len(table)) is not None:
        table.append(dtype(len(table)))
    return table


DTYPES: list[dtype] = _read_table()  # by number
BY_NAME: dict[str, dtype] = {one.name: one for one in DTYPES}

bool_ = BY_NAME["bool"]
uint8 = BY_NAME["uint8"]
int32 = BY_NAME["int32"]
int64 = BY_NAME["int64"]
float32 = BY_NAME["float32"]
float64 = BY_NAME["float64"]
int_ = int32
long = int64
float_ = float32
double = float64


def dtype_named(name: Any) -> dtype:
    """The dtype that a name, a NumPy dtype or a Python type stands for; DTypeError if there is none."""
    if isinstance(name, dtype):
        return name
    if name is bool:
        return bool_
    if name is int:
        return int64
    if name is float:
        return get_default_dtype()
    text = name if isinstance(name, str) else getattr(name, "name", None) or getattr(name, "__name__", None)
    found = BY_NAME.get(str(text).removeprefix("norch."))
    if found is None:
        raise DTypeError(f"{name!r} is no dtype of norch; there are {', '.join(BY_NAME)}")
    return found


def get_default_dtype() -> dtype:
    """The dtype of floats made without one: float32 unless changed."""
    return DTYPES[lib.norch_default_dtype()]


def set_default_dtype(d: dtype) -> None:
    """Makes d, a floating dtype, the one that Python floats become."""
    lib.norch_set_default_dtype(dtype_named(d).code)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that holds both.

    >>> norch.promote_types(norch.int64, norch.float32)
    norch.float32
    """
    return DTYPES[lib.norch_promote_types(dtype_named(type1).code, dtype_named(type2).code)]
