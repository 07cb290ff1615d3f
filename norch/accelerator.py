"""``norch.accelerator``: device-independent names for the accelerator of the machine, here CUDA."""

from __future__ import annotations

from typing import Any

from . import cuda
from ._package.exports import publish
from .cuda import device_count as device_count
from .cuda import empty_cache as empty_cache
from .cuda import is_available as is_available
from .cuda import max_memory_allocated as max_memory_allocated
from .cuda import max_memory_reserved as max_memory_reserved
from .cuda import memory_allocated as memory_allocated
from .cuda import memory_reserved as memory_reserved
from .cuda import reset_peak_memory_stats as reset_peak_memory_stats
from .cuda import synchronize as synchronize
from .device import device

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip
publish(globals())

current_device_index = current_device_idx = cuda.current_device
set_device_index = set_device_idx = cuda.set_device
current_stream, set_stream, device_index = cuda.current_stream, cuda.set_stream, cuda.device


def current_accelerator(check_available: bool = False) -> Any:
    """norch.device("cuda") where a CUDA device is, else None.

    >>> device = norch.accelerator.current_accelerator() or norch.device("cpu")
    """
    return device("cuda") if is_available() else None
