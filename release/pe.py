"""Reads what the head of a Windows DLL says: the machine, the names that it exports, the libraries that it loads.

The layout is Microsoft's "PE Format", for 64 bits (PE32+).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

MACHINES = {0x8664: "amd64", 0xAA64: "arm64"}
PE32_PLUS = 0x20B
DLL = 0x2000  # of the file header's characteristics


@dataclass
class Library:
    machine: str
    exports: set[str]
    loads: set[str]


class _Image:
    """The bytes of a file by the addresses that they have in memory."""

    def __init__(self, data: bytes, sections: list[tuple[int, int, int]]):
        self.data, self.sections = data, sections  # (address, size, place in the file)

    def at(self, address: int) -> int:
        return next(place + address - start for start, size, place in self.sections if 0 <= address - start < size)

    def numbers(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{count}I", self.data, self.at(address))

    def text(self, address: int) -> str:
        start = self.at(address)
        return self.data[start : self.data.index(b"\0", start)].decode()


def read(path: Path) -> Library:
    """The library in a file; ValueError where that is none."""
    data = path.read_bytes()
    head = struct.unpack_from("<I", data, 60)[0] if data[:2] == b"MZ" else 0
    if data[head : head + 4] != b"PE\0\0":
        raise ValueError(f"{path} is no DLL")
    machine, section_count, _, _, _, optional_size, kind = struct.unpack_from("<2H3I2H", data, head + 4)
    optional = head + 24
    if machine not in MACHINES or not kind & DLL or struct.unpack_from("<H", data, optional)[0] != PE32_PLUS:
        raise ValueError(f"{path} is no DLL of 64 bits")
    table, sections = optional + optional_size, []
    for i in range(section_count):
        _, address, size, place = struct.unpack_from("<4I", data, table + 40 * i + 8)
        sections.append((address, size, place))
    image = _Image(data, sections)
    exports, _, imports, _ = struct.unpack_from("<4I", data, optional + 112)  # the first two data directories
    return Library(MACHINES[machine], _exports(image, exports), _loads(image, imports))


def _exports(image: _Image, directory: int) -> set[str]:
    if not directory:
        return set()
    count, _, names = image.numbers(directory + 24, 3)
    return {image.text(name) for name in image.numbers(names, count)}


def _loads(image: _Image, directory: int) -> set[str]:
    found: set[str] = set()
    while directory and (name := image.numbers(directory, 5)[3]):  # of each library five numbers; the last are zeros
        found.add(image.text(name))
        directory += 20
    return found
