"""Reads what the head of a Mach-O library says: the machine, the oldest system, what it loads, its symbols.

The layout is that of Apple's <mach-o/loader.h> and <mach-o/nlist.h>, for 64 bits and little endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
SYMTAB, LOAD_DYLIB, ID_DYLIB, CODE_SIGNATURE, VERSION_MIN_MACOSX, BUILD_VERSION = 0x2, 0xC, 0xD, 0x1D, 0x24, 0x32
EXTERNAL, DEBUGGING, KIND, UNDEFINED = 0x01, 0xE0, 0x0E, 0x00  # of n_type
WEAK_REFERENCE = 0x0040  # of n_desc, whose high byte counts the libraries that are loaded, from 1
DYNAMIC_LOOKUP = 0xFE, 0x00  # is what Apple's linker writes for a symbol of any library, and what zig's writes
LINKERS_OWN = {"_mh_dylib_header", "__dso_handle"}


@dataclass
class Library:
    """A library: names of symbols are as in C, without the leading underscore."""

    machine: str
    oldest_system: tuple[int, int] = (0, 0)
    name: str = ""
    loads: list[str] = field(default_factory=list)
    signed: bool = False
    defined: set[str] = field(default_factory=set)
    undefined: set[str] = field(default_factory=set)  # looked up in what it loads
    dynamic: set[str] = field(default_factory=set)  # looked up in all that the process has loaded
    weak: set[str] = field(default_factory=set)  # of these two, those that are NULL where they are missing


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def read(path: Path) -> Library:
    """The library in a file; ValueError where that is none."""
    data = path.read_bytes()
    magic, cpu, _, kind, commands, _, _, _ = struct.unpack_from("<8I", data)
    if magic != 0xFEEDFACF or kind != 6 or cpu not in MACHINES:
        raise ValueError(f"{path} is no Mach-O library of 64 bits")
    library, at = Library(MACHINES[cpu]), 32
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", data, at)
        command &= 0x7FFFFFFF
        if command in (LOAD_DYLIB, ID_DYLIB):
            named = _text(data, at + struct.unpack_from("<I", data, at + 8)[0])
            if command == LOAD_DYLIB:
                library.loads.append(named)
            else:
                library.name = named
        elif command in (VERSION_MIN_MACOSX, BUILD_VERSION):
            version = struct.unpack_from("<I", data, at + (12 if command == BUILD_VERSION else 8))[0]
            library.oldest_system = version >> 16, version >> 8 & 0xFF
        elif command == CODE_SIGNATURE:
            library.signed = True
        elif command == SYMTAB:
            _read_symbols(library, data, *struct.unpack_from("<3I", data, at + 8))
        at += size
    return library


def _read_symbols(library: Library, data: bytes, start: int, count: int, names: int) -> None:
    for i in range(count):
        name, kind, _, description, _ = struct.unpack_from("<IBBHQ", data, start + 16 * i)
        if kind & DEBUGGING or not kind & EXTERNAL:
            continue
        symbol = _text(data, names + name).removeprefix("_")
        if kind & KIND != UNDEFINED:
            library.defined |= {symbol} - LINKERS_OWN
            continue
        (library.dynamic if description >> 8 in DYNAMIC_LOOKUP else library.undefined).add(symbol)
        if description & WEAK_REFERENCE:
            library.weak.add(symbol)
