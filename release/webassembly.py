"""Reads the names that a WebAssembly module exports (WebAssembly Core Specification 2.0, section 5.5)."""

from __future__ import annotations

from pathlib import Path

_EXPORTS = 7  # the number of that section


class _Reader:
    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        """An integer in LEB128: seven bits a byte, the lowest first; the last byte is below 128."""
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def exports(path: Path) -> set[str]:
    """The names that a module exports; ValueError if the file is none."""
    module = _Reader(path.read_bytes())
    if module.take(8) != b"\0asm\1\0\0\0":
        raise ValueError(f"{path} is no WebAssembly module")
    while module.at < len(module.data):
        kind, size = module.take(1)[0], module.number()
        section = _Reader(module.take(size))
        if kind == _EXPORTS:
            names = set()
            for _ in range(section.number()):
                names.add(section.take(section.number()).decode())
                section.take(1)  # whether a function, a table, memory or a global
                section.number()  # its index
            return names
    return set()
