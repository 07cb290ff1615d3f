"""``norch.memory``: statistics and settings of the caching allocator of the CPU (csrc/cpu/memory.c).

Freed blocks are cached in size classes for the next tensors, since fresh memory from the system costs more than most
operations. PyTorch has no such functions for the CPU; the names are the names in `norch.cuda`.

>>> norch.memory.empty_cache()
>>> before = norch.memory.memory_allocated()
>>> x = norch.ones(1000)
>>> norch.memory.memory_allocated() - before  # blocks are a little larger than the 4000 bytes asked for
4096
"""

from __future__ import annotations

from ._binding.buffers import int64s
from ._binding.library import lib
from ._package.exports import publish
from .errors import ArgumentError

_NAMES = (
    "allocated_bytes max_allocated_bytes reserved_bytes max_reserved_bytes cached_bytes cache_limit fresh_blocks "
    "reused_blocks returned_blocks"
).split()


def memory_stats() -> dict[str, int]:
    """All counters, by name.

    allocated_bytes are used by tensors (and as scratch memory by running operations); reserved_bytes are the sum of
    allocated_bytes and cached_bytes; both have a peak. cache_limit is the maximum of cached_bytes. Since the import,
    the system provided fresh_blocks, the cache provided reused_blocks, and the system got returned_blocks back.

    >>> stats = norch.memory.memory_stats()
    >>> stats["reserved_bytes"] == stats["allocated_bytes"] + stats["cached_bytes"]
    True
    """
    values = int64s(*(0,) * len(_NAMES))
    lib.norch_memory(values)
    return dict(zip(_NAMES, values))


def memory_allocated() -> int:
    """Bytes that tensors use, in whole blocks.

    >>> x = norch.zeros(1000)
    >>> norch.memory.memory_allocated() >= x.nbytes
    True
    """
    return memory_stats()["allocated_bytes"]


def max_memory_allocated() -> int:
    """The peak of memory_allocated() since the import or reset_peak_memory_stats().

    >>> norch.memory.max_memory_allocated() >= norch.memory.memory_allocated()
    True
    """
    return memory_stats()["max_allocated_bytes"]


def memory_reserved() -> int:
    """Bytes taken from the system: those that tensors use, and cached ones.

    >>> norch.memory.memory_reserved() >= norch.memory.memory_allocated()
    True
    """
    return memory_stats()["reserved_bytes"]


def max_memory_reserved() -> int:
    """The peak of memory_reserved().

    >>> norch.memory.max_memory_reserved() >= norch.memory.memory_reserved()
    True
    """
    return memory_stats()["max_reserved_bytes"]


def reset_peak_memory_stats() -> None:
    """Resets max_memory_allocated() and max_memory_reserved() to the present values."""
    lib.norch_memory_reset_peak()


def empty_cache() -> None:
    """Gives cached memory back to the system."""
    lib.norch_empty_cache()


def set_cache_limit(bytes: int) -> None:
    """Limits the cache to a number of bytes, 512 MiB by default; 0 disables it. The excess goes back to the system.

    >>> norch.memory.set_cache_limit(1 << 29)
    """
    if type(bytes) is not int or not 0 <= bytes < 1 << 63:
        raise ArgumentError(f"set_cache_limit: expected a number of bytes from 0, got {bytes!r}")
    lib.norch_set_cache_limit(bytes)


publish(globals())
