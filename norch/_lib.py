"""The binding to the C library. Only this file, _header.py and _buffers.py use ctypes.

Every function of csrc/norch.h is an attribute of ``lib``, under its name in C. The struct, the constants and the
signatures are read from the text of the header (_header.py), so that there is no second copy of them.

A C tensor is the Python object that users hold (csrc/python/object.c). Calls with tensors are builtin functions of the
library (csrc/python/calls.c); they check their arguments, and cost a tenth of a call through ctypes. The other calls go
through ctypes. It keeps only the low 64 bits of integers, so callers first check numbers from users with ``ints`` or
``int64``. Calls hold the GIL; the library releases it around long work. A call that fails raises an exception.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import types
from collections.abc import Callable, Sequence

from . import errors
from ._header import listed, read_header
from ._typing import TYPE_CHECKING, Any

_PATH = os.environ.get("NORCH_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libnorch.so")


def _load() -> ctypes.PyDLL:
    try:
        return ctypes.PyDLL(_PATH)
    except OSError as error:
        if not os.path.exists(_PATH):
            message = f"norch: its C library {_PATH} is missing; run `make` in the folder of the sources"
        else:
            message = f"norch: its C library {_PATH} cannot be loaded: {error}"
        raise ImportError(message) from None


_library = _load()
constants: dict[str, int]
constants, TensorStruct, _functions = read_header(_library, _PATH)
lib: Any = types.SimpleNamespace(**_functions)
constants |= {name.upper(): number for number, name in enumerate(listed(lib.norch_dtype_name))}  # of dtypes.def
if lib.norch_sizeof_tensor() != ctypes.sizeof(TensorStruct):
    raise ImportError("norch: the library's struct norch_tensor is not laid out as its header says")


def _check_isa() -> None:
    wanted = os.environ.get("NORCH_ISA")
    builds = lib.norch_isa_builds().decode().split()
    if wanted and wanted not in builds:
        raise ImportError(
            f"norch: NORCH_ISA={wanted} is not a build that this machine can run; it has {', '.join(builds)}"
        )


def _check_threads() -> None:
    wanted = os.environ.get("NORCH_NUM_THREADS", "").strip()
    if wanted and not (wanted.isascii() and wanted.isdecimal() and wanted.strip("0")):
        raise ImportError(
            f"norch: NORCH_NUM_THREADS={wanted} is not a number of threads, which is an integer of 1 or more"
        )


_check_isa()
_check_threads()


def _bind_python() -> type:
    """Gives C the exception classes, and replaces the calls with tensors in lib by builtins; returns the tensor
    type."""
    raised: dict[str, type[Exception]] = {
        "SHAPE": errors.ShapeError,
        "DTYPE": errors.DTypeError,
        "DEVICE": errors.DeviceError,
        "INDEX": errors.BoundsError,
        "MEMORY": errors.OutOfMemoryError,
        "VALUE": errors.ArgumentError,
        "ZERO_DIVISION": errors.DivisionError,
        "CAPTURE": errors.CaptureError,
    }
    by_kind = {constants["ERROR_" + name]: error for name, error in raised.items()}
    classes = [by_kind.get(kind, errors.Error) for kind in range(len(raised) + 1)]
    try:
        tensor_type = lib.norch_bind_python((ctypes.c_void_p * len(classes))(*map(id, classes)))
    except ValueError:  # NULL
        raise ImportError("norch: the library is not loaded into a Python process") from None
    for i, name in enumerate(listed(lib.norch_call_name)):
        setattr(lib, "norch_" + name, lib.norch_call(i))
    return tensor_type


if TYPE_CHECKING:

    class TensorBase:
        """The type of tensors, with the fields that csrc/python/object.c exposes."""

        ndim: int
        _node: Any
        _grad: Any
        _version_counter: list[int] | None
        _view: Any
        _data: int
        _numel: int
        _offset: int
        _dtype: int
        _device_type: int
        _device_index: int
        _contiguous: int
        _weak: int
        _mixed: int

    class Guard:
        """Base of context managers that restore a setting: __exit__ pops and calls the last function of _restores. It
        is written in C (csrc/python/guard.c), so that no asynchronous exception interrupts it."""

        _restores: list[Callable[[], Any]]

        def __exit__(self, *_: object) -> None: ...

    class CapturedBase:
        """Base of captured functions. A call replays _latest, the recording of _program. If there is none, or its
        conditions do not hold, the call goes to _call_slow_path() (csrc/python/captured.c)."""

        _latest: Any
        _program: Any
else:
    TensorBase = _bind_python()
    Guard = lib.norch_guard_class()
    CapturedBase = lib.norch_captured_class(sys.implementation.name == "cpython" and sys.version_info < (3, 12))


# ---- checks of numbers for C -------------------------------------------------------------------------------------

_PACK = [struct.Struct(f"{n}q").pack for n in range(constants["MAX_DIMS"] + 1)]


def ints(values: Sequence[int], what: str = "size") -> bytes:
    """Packs up to 16 integers as an int64 array for C; checks their type and range."""
    try:
        return _PACK[len(values)](*values)
    except IndexError:
        limit = constants["MAX_DIMS"]
        raise errors.ShapeError(f"{len(values)} dimensions; at most {limit} are supported") from None
    except struct.error:
        for value in values:
            int64(value, what)
        raise


def int64(value: Any, what: str = "number") -> int:
    """value as an int. TypeError for a bool or another type, OverflowError if it does not fit 64 bits."""
    if value is True or value is False:
        raise TypeError(f"{what} must be an integer, not bool")
    try:
        value = value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{what} must be an integer, not {type(value).__name__}") from None
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{what} {value} does not fit 64 bits")
    return value


def flag(value: Any, what: str) -> bool:
    """value, if it is True or False; TypeError otherwise, as in PyTorch."""
    if value is True or value is False:
        return value
    raise TypeError(f"{what} must be True or False, not {type(value).__name__}")
