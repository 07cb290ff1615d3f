"""Statistics of the pool of a device's memory. docs/cuda_inside.md says how the pool works."""

from __future__ import annotations

from typing import Any

from .._binding.buffers import int64s
from .._binding.library import lib
from ..device import cuda_device_count, cuda_place

__all__ = [
    "empty_cache", "host_memory_stats", "max_memory_allocated", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_reserved", "reset_peak_memory_stats",
]  # fmt: skip


def _memory(device: Any) -> Any:
    values = int64s(*(0,) * 9)
    lib.norch_device_memory(*cuda_place(device), values)
    return values


def _of_pool(device: Any, place: int) -> int:
    """A statistic of the pool; 0 without a CUDA device, as programs log them everywhere."""
    return _memory(device)[place] if cuda_device_count() else 0


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors use, 0 without a CUDA device. Each tensor is rounded up to a block of the pool, of 512
    bytes or more.

    >>> before, x = norch.cuda.memory_allocated(), norch.ones(1024, device="cuda")
    >>> norch.cuda.memory_allocated() - before
    4096
    """
    return _of_pool(device, 0)


def max_memory_allocated(device: Any = None) -> int:
    """The peak of memory_allocated() since the start or reset_peak_memory_stats().

    >>> norch.cuda.reset_peak_memory_stats()
    >>> y = norch.ones(1 << 20, device="cuda") + 1  # two tensors of 4 MiB for a moment
    >>> norch.cuda.max_memory_allocated() >= 8 << 20
    True
    """
    return _of_pool(device, 1)


def memory_reserved(device: Any = None) -> int:
    """The bytes taken from the device, in units of 32 MiB: those that tensors use, and cached ones.

    >>> norch.cuda.memory_reserved() >= norch.cuda.memory_allocated()
    True
    """
    return _of_pool(device, 2)


def max_memory_reserved(device: Any = None) -> int:
    """The peak of memory_reserved() since the start or reset_peak_memory_stats().

    >>> norch.cuda.max_memory_reserved() >= norch.cuda.memory_reserved()
    True
    """
    return _of_pool(device, 3)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the device.

    >>> free, total = norch.cuda.mem_get_info()
    >>> 0 < free <= total
    True
    """
    values = _memory(device)
    return values[4], values[5]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Resets max_memory_allocated() and max_memory_reserved() to the present values.

    >>> norch.cuda.reset_peak_memory_stats()
    >>> norch.cuda.max_memory_allocated() == norch.cuda.memory_allocated()
    True
    """
    lib.norch_device_reset_peak(*cuda_place(device))


def host_memory_stats() -> dict[str, int]:
    """Pinned memory of the host: bytes that tensors use, bytes with the cached ones, and the number of allocations.

    >>> norch.cuda.host_memory_stats()["active_bytes.current"] if norch.cuda.is_available() else 0
    0
    """
    active, allocated, allocations = _memory(None)[6:9]
    return {"active_bytes.current": active, "allocated_bytes.current": allocated, "num_host_alloc": allocations}


def empty_cache() -> None:
    """Waits for the devices and returns their cached memory, except units of 32 MiB that contain a tensor. Cached
    pinned memory returns to the system.

    >>> x = norch.ones(100 << 20, device="cuda")
    >>> del x
    >>> norch.cuda.empty_cache()
    >>> norch.cuda.memory_reserved() < 400 << 20
    True
    """
    for index in range(cuda_device_count()):
        lib.norch_device_empty_cache(1, index)
