"""Files mapped into memory: load(mmap=True) and safetensors use their bytes without reading the file."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from .._binding.buffers import over_memory
from .._binding.numbers import ints
from ..dtype import uint8
from ..storage import Storage
from .source import ALIGNMENT, Source


class Mapping:
    """The bytes of a file, copy on write (MAP_PRIVATE): a write goes to a page of this process, never to the file.

    The file may be deleted or replaced meanwhile. As of any mapping, reading what another program has cut off of it
    ends the process (SIGBUS).
    """

    def __init__(self, file: Any):
        self.bytes: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self.size = len(self.bytes)
        self._first = ctypes.c_ubyte.from_buffer(self.bytes)  # while it is referenced the mapping stays

    def storage(self, start: int, count: int, alignment: int = ALIGNMENT) -> Storage | None:
        """The bytes from start on, without a copy; None if they are not aligned. EOFError if there are fewer."""
        if not 0 <= start <= start + count <= self.size:
            raise EOFError(f"bytes {start} to {start + count} of a file of {self.size}")
        address = ctypes.addressof(self._first) + start
        if address % alignment:
            return None
        return Storage(over_memory(address, (count,), ints((1,)), uint8.code, self._first))


class MappedSource(Source):
    """The source of load() if storages are mapped."""

    def __init__(self, mapping: Mapping):
        super().__init__(mapping.bytes)
        self.mapping = mapping

    def storage(self, count: int, alignment: int = ALIGNMENT) -> tuple[Storage, int | None]:
        mapped = self.mapping.storage(self.taken, count, alignment)
        if mapped is None:
            return super().storage(count)
        self.move_to(self.taken + count)
        return mapped, None

    def move_to(self, place: int) -> None:
        """Sets the position of the next read."""
        self.mapping.bytes.seek(place)
        self.taken = place
