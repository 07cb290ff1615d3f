"""The source of load(): any object with read(), which may return fewer bytes than asked for, as pipes do."""

from __future__ import annotations

import io
import os
import stat
import zlib
from typing import Any

from ..storage import PIECE, Storage, read_from

ALIGNMENT = 16  # of an address, for elements of any dtype


class Source:
    """Counts the bytes that it takes from a file, and has their checksum."""

    def __init__(self, file: Any):
        self._read = file.read
        self.taken = 0
        self.checksum = 0  # CRC-32

    def read(self, count: int) -> bytes:
        """The next count bytes; fewer only where the file ends. Memory is taken as they come, never for all before."""
        pieces: list[bytes] = []
        while count > 0 and (piece := self._read_once(min(count, PIECE))):
            pieces.append(piece)
            count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def readline(self) -> bytes:
        """The next line."""
        line = bytearray()
        while not line.endswith(b"\n") and (byte := self._read_once(1)):
            line += byte
        return bytes(line)

    def storage(self, count: int, alignment: int = ALIGNMENT) -> tuple[Storage, int | None]:
        """The next count bytes and their checksum, which self.checksum leaves out; None: they were not read, as they
        are mapped and their address is a multiple of alignment."""
        before, self.checksum = self.checksum, 0
        storage = read_from(self, count)
        checksum, self.checksum = self.checksum, before
        return storage, checksum

    def _read_once(self, count: int) -> bytes:
        piece = self._read(count)
        if piece is None:
            raise BlockingIOError("load: the file has no bytes yet, and does not wait for them")
        if not isinstance(piece, bytes):
            raise TypeError(f"load: expected a file opened with 'rb', not one that gives {type(piece).__name__}")
        self.taken += len(piece)
        self.checksum = zlib.crc32(piece, self.checksum)
        return piece


def size_of(file: Any) -> int | None:
    """The bytes of a file on a disk or in memory; None where they are not known without reading."""
    if isinstance(file, io.BytesIO):
        return file.getbuffer().nbytes
    raw = getattr(file, "raw", file)
    if not isinstance(raw, io.FileIO):
        return None
    status = os.fstat(raw.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None
