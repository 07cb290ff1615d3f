"""Memory of the CPU: what tensors hold, what waits for the next ones, and how much may wait.

Freed blocks wait in size classes for the next tensor of their size (csrc/cpu/cpu.c), as fresh memory from the system
costs more than most operations. PyTorch's CPU allocator has no such names; those here are the ones of `norch.cuda`.

>>> norch.memory.empty_cache()
>>> before = norch.memory.memory_allocated()
>>> x = norch.ones(1000)
>>> norch.memory.memory_allocated() - before  # blocks are a little larger than the 4000 bytes asked for
4096
"""

from __future__ import annotations

from ._lib import int64s, lib
from .errors import ArgumentError

_NAMES = (
    "allocated_bytes",
    "max_allocated_bytes",
    "reserved_bytes",
    "max_reserved_bytes",
    "cached_bytes",
    "cache_limit",
    "fresh_blocks",
    "reused_blocks",
    "returned_blocks",
)


def memory_stats() -> dict[str, int]:
    """All that is counted, by name.

    allocated_bytes are in tensors (and in scratch memory of operations under way), reserved_bytes those and the
    cached_bytes that wait, each with its peak; cache_limit is what may wait at most. fresh_blocks came from the system,
    reused_blocks out of the cache, returned_blocks went back to the system, since norch was imported.

    >>> stats = norch.memory.memory_stats()
    >>> stats["reserved_bytes"] == stats["allocated_bytes"] + stats["cached_bytes"]
    True
    """
    values = int64s(*(0,) * len(_NAMES))
    lib.norch_memory(values)
    return dict(zip(_NAMES, values))


def memory_allocated() -> int:
    """Bytes that tensors hold, in whole blocks."""
    return memory_stats()["allocated_bytes"]


def max_memory_allocated() -> int:
    """The most that memory_allocated() has been since the start or reset_peak_memory_stats()."""
    return memory_stats()["max_allocated_bytes"]


def memory_reserved() -> int:
    """Bytes taken from the system: what tensors hold, and what waits for the next ones."""
    return memory_stats()["reserved_bytes"]


def max_memory_reserved() -> int:
    """The most that memory_reserved() has been."""
    return memory_stats()["max_reserved_bytes"]


def reset_peak_memory_stats() -> None:
    """Lets max_memory_allocated() and max_memory_reserved() begin anew."""
    lib.norch_memory_reset_peak()


def empty_cache() -> None:
    """Gives memory that waits for reuse back to the system."""
    lib.norch_empty_cache()


def set_cache_limit(bytes: int) -> None:  # noqa: A002
    """How many bytes may wait for reuse at most, 512 MiB by default; 0 lets nothing wait. Gives back what is more.

    >>> norch.memory.set_cache_limit(1 << 29)
    """
    if type(bytes) is not int or not 0 <= bytes < 1 << 63:
        raise ArgumentError(f"set_cache_limit: expected a number of bytes from 0, got {bytes!r}")
    lib.norch_set_cache_limit(bytes)
