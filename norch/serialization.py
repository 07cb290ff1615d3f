"""save and load: objects that hold tensors, in files.

A file is a line that says whose it is; then the storages of its tensors, each a size, its bytes and a checksum, once
however many views share them; then a size of -1, and a pickle (protocol 4) in which a storage is its number, with its
size and checksum, too. A checksum is the CRC-32 of all bytes of the file before it but other checksums. The bytes of a
tensor go between its memory and the file without a second copy of them. Loading a pickle can run any code, so load()
builds tensors, numbers, strings and containers only, unless it is told that the file can be trusted.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from ._exports import publish
from ._lib import flag
from ._source import Source, size_of
from ._unpickler import ALLOWED, Refusal, RestrictedUnpickler, TrustingUnpickler, placed
from .device import device as Device  # noqa: N812
from .errors import DeviceError, Error
from .storage import Storage, read_from

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip

HEAD = b"norch file 4\n"  # not 3, which a single wrong bit would turn into 1 or 2
SECOND = b"norch file 2\n"  # how files began that are the same without checksums and without a size of the pickle
FIRST = b"norch file 1\n"  # and those that are a pickle only, which holds the bytes of the storages
ZIP = b"PK\3\4"  # how torch.save begins
OLD = b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P"  # and how it began before PyTorch 1.6

SIZE = struct.Struct("<q")  # the bytes of a storage or of the pickle
END = -1  # no more storages
CHECK = struct.Struct("<I")


def save(obj: Any, f: Any) -> None:
    """Writes obj, a tensor, a state dict or anything that can be pickled, to a path or something to write to.

    Tensors that share memory share it again when loaded. Those computed in a graph are stored without it. A file that
    was at the path stays as it was until the new one is complete.

    >>> import io
    >>> file = io.BytesIO()
    >>> norch.save({"weight": norch.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> norch.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    pickled = io.BytesIO()
    pickler = _Pickler(pickled)
    pickler.dump(obj)  # what cannot be pickled raises before anything is opened
    parts = _Parts(list(pickler.numbers), pickled.getvalue())
    if hasattr(f, "write"):
        parts.write_to(f)
    else:
        _save_at(parts, os.path.realpath(os.fsdecode(f)))


class _Pickler(pickle.Pickler):
    """Numbers the storages that it meets."""

    def __init__(self, memory: io.BytesIO):
        super().__init__(memory, protocol=4)
        self.numbers: dict[Storage, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        return self.numbers.setdefault(obj, len(self.numbers)) if isinstance(obj, Storage) else None


class _Parts:
    """What a file is made of. Keeps the checksum of what it has written."""

    def __init__(self, storages: list[Storage], program: bytes):
        self.storages, self.program = storages, program

    def write_to(self, file: Any) -> None:
        if isinstance(file, io.RawIOBase):  # which may write less than it is given
            buffered = io.BufferedWriter(file)
            try:
                self.write_to(buffered)
                buffered.flush()
            finally:
                _detach(buffered)
            return
        self.file, self.checksum = file, 0
        self.write(HEAD)
        for storage in self.storages:
            self.write(SIZE.pack(storage.nbytes()))
            storage.write_to(self)
            file.write(CHECK.pack(self.checksum))
        self.write(SIZE.pack(END) + SIZE.pack(len(self.program)))
        self.write(self.program)
        file.write(CHECK.pack(self.checksum))

    def write(self, data: bytes) -> None:
        self.checksum = zlib.crc32(data, self.checksum)
        self.file.write(data)


def _detach(buffered: Any) -> None:
    """Leaves the raw file open; what could not be written has raised already."""
    with contextlib.suppress(OSError):
        buffered.detach()


def _save_at(parts: _Parts, path: str) -> None:
    """Writes a file beside path, which then takes its place: a failure leaves what is there."""
    folder, there = os.path.dirname(path), os.path.exists(path)
    beside = os.access(folder, os.W_OK | os.X_OK)
    if there and not (os.path.isfile(path) and os.access(path, os.W_OK)):
        beside = False  # a device or a pipe is written to; what else it is open() says
    written = os.path.join(folder, f".norch-{os.urandom(8).hex()}") if beside else path
    try:
        with open(written, "xb" if beside else "wb") as file:
            parts.write_to(file)
        if beside:
            if there:
                os.chmod(written, os.stat(path).st_mode & 0o7777)  # as open() would have left it
            os.replace(written, path)
    except BaseException:
        if beside and os.path.exists(written):
            os.remove(written)
        raise


def load(f: Any, map_location: Any = None, *, weights_only: bool | None = True) -> Any:
    """What save() wrote to f, a path or something to read from; or what torch.save() wrote (pytorch_file.py).

    Tensors come to the CPU, or to the device map_location. weights_only (None is True): tensors, parameters, numbers,
    strings and containers of them; a file with anything else raises UnpicklingError. False also makes instances of
    other classes, and lets a file run any code: for files that you trust. Files of something else, or damaged, raise
    an Error.
    """
    weights_only = weights_only is None or flag(weights_only, "load: weights_only")
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            return load(file, map_location, weights_only=weights_only)
    name = getattr(f, "name", None)
    which = "this" if name is None else repr(name)
    source = Source(f)
    head = source.read(len(HEAD))
    if head == OLD:
        raise Error(f"load: {which} has the form that torch.save wrote before PyTorch 1.6; load and save it there anew")
    if head not in (HEAD, SECOND, FIRST) and not head.startswith(ZIP):
        raise Error(f"load: {which} is no file of norch.save or torch.save, or it is damaged")
    device = None if map_location is None else Device(map_location)
    try:
        return _reader(f, source, head, device, weights_only).load()
    except (Refusal, DeviceError, MemoryError, OSError):
        raise
    except Exception as error:
        if not weights_only and isinstance(error, (AttributeError, ImportError)):
            raise  # a class that this program has not got
        cause = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise Error(f"load: {which} is no file of norch.save or torch.save, or it is damaged ({cause})") from error


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets load() with weights_only=True take these classes and functions from files, too, and call them.

    Each is a class or function, or a pair of it and the name, "module.name", that files have for it.
    """
    for thing in safe_globals:
        thing, path = thing if isinstance(thing, tuple) else (thing, f"{thing.__module__}.{thing.__qualname__}")
        if not callable(thing) or not isinstance(path, str):
            raise TypeError(f"add_safe_globals: expected classes and functions, not {thing!r}")
        ALLOWED[path] = thing


def get_safe_globals() -> list[Any]:
    """The classes and functions that add_safe_globals() was given."""
    return list(ALLOWED.values())


def clear_safe_globals() -> None:
    """Takes all of it back."""
    ALLOWED.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """add_safe_globals() within a with statement.

    >>> import collections, io
    >>> file = io.BytesIO()
    >>> norch.save(collections.UserList([1, 2]), file)
    >>> _ = file.seek(0)
    >>> with norch.serialization.safe_globals([collections.UserList]):
    ...     norch.load(file)
    [1, 2]
    """
    before = ALLOWED.copy()
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        ALLOWED.clear()
        ALLOWED.update(before)


def _reader(f: Any, source: Source, head: bytes, device: Device | None, weights_only: bool) -> Any:
    if head.startswith(ZIP):
        from .pytorch_file import Reader  # lazy import: few programs need it

        return Reader(f, source, head, device, trusting=not weights_only)
    storages = []
    if head != FIRST:
        left, checked = size_of(f), head == HEAD
        while (size := SIZE.unpack(source.read(SIZE.size))[0]) != END:
            _check_size(size, left)
            storages.append(placed(device, read_from(source, size)))
            if checked:
                _check_sum(source)
        if checked:
            source = _program(source, left)
    return (RestrictedUnpickler if weights_only else TrustingUnpickler)(source, device, storages)


def _program(source: Source, left: int | None) -> Source:
    """The pickle, when it is known to be what was saved."""
    (size,) = SIZE.unpack(source.read(SIZE.size))
    _check_size(size, left)
    program = source.read(size)
    _check_sum(source)
    return Source(io.BytesIO(program))


def _check_size(size: int, file_size: int | None) -> None:
    if size < 0 or (file_size is not None and size > file_size):
        raise ValueError(f"{size} bytes of a file of {file_size}")


def _check_sum(source: Source) -> None:
    expected = source.checksum
    (found,) = CHECK.unpack(source.read(CHECK.size))
    if found != expected:
        raise ValueError(f"the checksum is {found:#010x}, of what was read {expected:#010x}")
    source.checksum = expected


publish(globals())
