"""The binding to the C library. Only this file, _binding/header.py and _binding/buffers.py use ctypes.

Every function of the public headers, csrc/norch*.h, is an attribute of ``lib``, under its name in C. The struct, the
constants and the signatures are read from the text of these headers (_binding/header.py): there is no second copy.

A C tensor is the Python object that users hold (csrc/python/object.c). Calls with tensors are builtin functions of the
library (csrc/python/calls.c); they check their arguments, and cost a tenth of a call through ctypes. The other calls go
through ctypes, with numbers that numbers.py has checked. Calls hold the GIL; the library releases it around long work.
A call that fails raises an exception.
"""

from __future__ import annotations

import ctypes
import os
import types

from .. import errors
from .._package.typing import TYPE_CHECKING, Any
from .environment import check_environment
from .header import listed, read_header

_NAME = "libnorch.dll" if os.name == "nt" else "libnorch.so"
_PATH = os.environ.get("NORCH_LIBRARY") or errors.PACKAGE + _NAME


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
constants, TensorStruct, _functions, _builtins = read_header(_library, _PATH)
lib: Any = types.SimpleNamespace(**_functions)
constants |= {name.upper(): number for number, name in enumerate(listed(lib.norch_dtype_name))}  # of dtypes.def
if lib.norch_sizeof_tensor() != ctypes.sizeof(TensorStruct):
    raise ImportError("norch: the library's struct norch_tensor is not laid out as its header says")
check_environment(lib.norch_isa_builds().decode().split())


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
        "META": errors.MetaError,
    }
    by_kind = {constants["ERROR_" + name]: error for name, error in raised.items()}
    classes = [by_kind.get(kind, errors.Error) for kind in range(len(raised) + 1)]
    try:
        tensor_type = lib.norch_bind_python((ctypes.c_void_p * len(classes))(*map(id, classes)))
    except ValueError:  # NULL
        raise ImportError("norch: the library is not loaded into a Python process") from None
    for i, name in enumerate(_builtins):
        setattr(lib, "norch_" + name, lib.norch_call(i))
    return tensor_type


if TYPE_CHECKING:

    class TensorBase:
        """The type of tensors, with the fields that csrc/python/object.c exposes."""

        ndim: int
        _node: Any
        _leaf: Any
        _grad: Any
        _version_counter: list[int] | None
        _view: Any
        _data_pointer: int  # the address of the elements, which others may then write to: no write is noticed any more
        _address: int  # the same, to be compared, or read at once
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
