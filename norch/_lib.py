"""The border to the C library, and the only module that uses ctypes.

The library carries its own header (csrc/norch.h). This module reads the struct, the constants and the signatures from
that text, so that there is no second copy of them. Every function of the header is an attribute of ``lib``, under its
name in C.

A C tensor is a Python object, the very ``Tensor`` that users hold (csrc/python/object.c). Calls with tensors are
builtin functions of the library (csrc/python/calls.c): they check their arguments and cost a tenth of a call through
ctypes. The other calls go through ctypes, which passes integers and pointers as ``c_void_p`` and keeps only their low
64 bits, so callers check numbers from users with ``ints`` or ``int64`` first. Calls hold the GIL; the library releases
it around long work. A call that fails raises.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import errors

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


# ---- reading the header -----------------------------------------------------------------------------------------

_SCALARS: dict[str, Any] = {
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
}


def _result_type(text: str) -> Any:
    if text in ("norch_tensor *", "void *"):
        return ctypes.py_object
    if text == "const char *":
        return ctypes.c_char_p
    if "*" in text:
        return ctypes.c_void_p
    return None if text == "void" else _SCALARS[text]


def _argument_type(text: str) -> Any:
    if "norch_tensor *" in text and "*optional_" not in text:
        return ctypes.py_object
    return ctypes.c_double if text.startswith("double ") and "*" not in text else ctypes.c_void_p


def _read_struct(text: str, constants: dict[str, int]) -> type[ctypes.Structure]:
    body = re.search(r"typedef struct norch_tensor \{(.*?)\} norch_tensor;", text, re.S)
    if body is None:
        raise ImportError("norch: the library's header holds no struct norch_tensor")
    fields: list[tuple[str, Any]] = []
    for kind, name, size in re.findall(r"([\w ]+?\*?)\s*(\w+)(?:\[(\w+)\])?;", body[1]):
        base = ctypes.c_void_p if "*" in kind else _SCALARS[kind.strip()]
        fields.append((name, base * constants[size] if size else base))
    return type("TensorStruct", (ctypes.Structure,), {"_fields_": fields})


def listed(name_of: Any) -> list[str]:
    """The names that a function of the library returns for 0, 1, ... up to the first NULL."""
    names: list[str] = []
    while (name := name_of(len(names))) is not None:
        names.append(name.decode())
    return names


def _read_header(library: ctypes.PyDLL) -> tuple[dict[str, int], type[ctypes.Structure], dict[str, Any]]:
    for text_of in ("norch_header", "norch_call_name"):
        try:
            getattr(library, text_of).restype = ctypes.c_char_p
        except AttributeError:
            raise ImportError(f"norch: {_PATH} is a library, but not norch's: it lacks {text_of}") from None
    text = re.sub(r"/\*.*?\*/", "", library.norch_header().decode(), flags=re.S)
    constants = {name: int(value) for name, value in re.findall(r"#define NORCH_(\w+) (\d+)", text)}
    tensor_struct = _read_struct(text, {"NORCH_" + name: value for name, value in constants.items()})
    builtins, functions = set(listed(library.norch_call_name)), {}
    for result, name, arguments in re.findall(r"^([\w ]+?\**)\s*\bnorch_(\w+)\(([^)]*)\);", text, re.M):
        if name in builtins:  # _bind_python makes it
            continue
        try:
            function = getattr(library, "norch_" + name)
        except AttributeError:
            raise ImportError(f"norch: {_PATH} lacks norch_{name}, which its own header declares") from None
        function.restype = _result_type(result.strip() if "*" not in result else " ".join(result.split()))
        each = [] if arguments.strip() == "void" else arguments.split(",")
        function.argtypes = [_argument_type(argument.strip()) for argument in each]
        functions["norch_" + name] = function
    return constants, tensor_struct, functions


_library = _load()
constants, TensorStruct, _functions = _read_header(_library)
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
    """Makes tensors Python objects, failures exceptions and calls builtins; returns the type of tensors."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or "t" in getattr(sys, "abiflags", ""):
        raise ImportError("norch: this Python runs without a global lock; norch needs one that has it")
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
        raise ImportError("norch: the library found no Python around it") from None
    for i, name in enumerate(listed(lib.norch_call_name)):
        setattr(lib, "norch_" + name, lib.norch_call(i))
    return tensor_type


if TYPE_CHECKING:

    class TensorBase:
        """The type of tensors, with the fields that csrc/python/object.c exposes."""

        ndim: int
        _node: Any
        _grad: Any
        _cell: list[int] | None
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
else:
    TensorBase = _bind_python()


# ---- numbers on their way to C -----------------------------------------------------------------------------------

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
    """value as an int that fits 64 bits; TypeError, also for a bool, or OverflowError otherwise."""
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
    """value, which is True or False; TypeError otherwise, like PyTorch."""
    if value is True or value is False:
        return value
    raise TypeError(f"{what} must be True or False, not {type(value).__name__}")


# ---- memory shared with others ------------------------------------------------------------------------------------


def keep_alive(owner: object) -> tuple[int, int]:
    """(release, context) for from_memory: keeps owner alive until C calls release(context)."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    release = ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p).value
    assert release is not None
    return release, id(owner)


def forget(owner: object) -> None:
    """Undoes keep_alive after a failure of from_memory."""
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(owner))


def memory_of(x: TensorBase) -> memoryview:
    """The bytes of a contiguous uint8 tensor on the CPU, to read and to write; x lives as long as they are seen."""
    lib.norch_note_unseen("Python reads the memory of a tensor")
    if x._numel == 0:
        return memoryview(bytearray())
    array: Any = (ctypes.c_ubyte * x._numel).from_address(x._data)
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


def address(array: Any) -> int:
    """The address of a C array."""
    return ctypes.addressof(array)
