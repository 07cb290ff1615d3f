"""``norch.types``: names for annotations of programs written for PyTorch."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeAlias

from .._package.exports import publish
from ..device import device as _device
from ..dtype import dtype as _dtype
from ..storage import Storage as Storage
from ..tensor import Size, Tensor
from .placeholders import Layout as _layout
from .placeholders import kind

publish(globals(), name="norch.types")

_int, _float, _bool, _complex, _symint = builtins.int, builtins.float, builtins.bool, builtins.complex, builtins.int
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Any
_TensorOrOptionalTensors: TypeAlias = Tensor | None | Sequence[Tensor | None]
_dispatchkey: TypeAlias = str
_qscheme = kind("qscheme", "quantised tensors")
Device: TypeAlias = _device | str | int | None
DeviceLikeType: TypeAlias = _device | str | int
FileLike: TypeAlias = str | PathLike[str] | Any
Number: TypeAlias = int | float | bool
IntLikeType, FloatLikeType, BoolLikeType = builtins.int, builtins.float, builtins.bool
PySymType: TypeAlias = int | float | bool
py_sym_types = (builtins.int, builtins.float, builtins.bool)
__all__ = ["Device", "FileLike", "Number", "Storage"]
_ = _dtype, _layout
