"""save and load: objects that hold tensors, in files.

The format:

- a line that identifies norch and the format
- each storage once: its size, zeros up to a multiple of ALIGNMENT, its bytes, their checksum
- the size -1, and a pickle (protocol 4) in which a storage is its number; with the size and the checksum of the pickle

A checksum is a CRC-32. That of the pickle covers the file before it except the bytes of storages, so that it can be
checked if these are mapped and not read. The bytes of a storage are read and written without a second copy. A pickle
can run any code, so load() makes only tensors, numbers, strings and containers, unless the file is trusted.
"""

from __future__ import annotations

import contextlib
import errno
import io
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from ._binding.numbers import flag
from ._files.placement import Chosen, destination, placed
from ._files.source import Source, size_of
from ._files.target import write
from ._files.unpickler import ALLOWED, Refusal, RestrictedUnpickler, TrustingUnpickler
from ._package.exports import publish
from ._package.recording import unseen
from .device import device as Device  # noqa: N812
from .errors import CaptureError, DeviceError, Error
from .storage import Storage

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip

# Two heads differ in more than one bit.
HEAD = b"norch file 7\n"
FIRST = b"norch file 1\n"  # how files of norch 0.1.0 begin: a pickle only, which holds the bytes of the storages
ZIP = b"PK\3\4"  # how torch.save begins

MAGIC = 0x1950A86A20F9469CFC6C  # the first object of a file of torch.save before PyTorch 1.6, by any protocol of pickle
LEGACY = {pickled[: len(HEAD)]: pickled[len(HEAD) :] for pickled in (pickle.dumps(MAGIC, n) for n in range(1, 6))}

# What programs read of PyTorch's module.
DEFAULT_PROTOCOL = 2
MAP_LOCATION = Callable[[Storage, str], Storage] | Device | str | dict[str, str] | None

SIZE = struct.Struct("<q")  # the bytes of a storage or of the pickle
END = -1  # no more storages
CHECK = struct.Struct("<I")
ALIGNMENT = 64  # of storages, counted from the head


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    format: str = "norch",  # noqa: A002
) -> None:
    """Writes obj, which is a tensor, a state dict or anything that can be pickled, to f, a path or an object with
    write().

    Tensors that share memory share it again when they are loaded. Tensors computed in a graph are stored without it. A
    file at the path does not change until the new one is complete.

    format is "norch"; "torch", a file that `torch.load(f, weights_only=True)` reads (_files/pytorch.py); or
    "safetensors", for a dict of contiguous tensors that share no memory (utils/safetensors.py). "torch" takes tensors,
    parameters, numbers, strings and some containers; a PicklingError names other objects. load() reads each format. The
    other arguments are PyTorch's: pickle_protocol and _disable_byteorder_record have no effect, because a format has
    one form. NotImplementedError for another pickle_module, and for files as before PyTorch 1.6.

    >>> import io
    >>> file = io.BytesIO()
    >>> norch.save({"weight": norch.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> norch.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    _check_pickle("save", pickle_module)
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save: files as before PyTorch 1.6 are read, not written")
    parts: Any
    if format == "norch":
        parts = _Parts(obj)
    elif format == "torch":
        from ._files.pytorch import Parts  # lazy imports: few programs need them

        parts = Parts(obj)
    elif format == "safetensors":
        from .utils import safetensors

        parts = safetensors.Parts(obj, None)
    else:
        raise ValueError(f"save: format is 'norch', 'torch' or 'safetensors', not {format!r}")
    write(parts, f)  # raised already if something cannot be saved


def _check_pickle(name: str, pickle_module: Any) -> None:
    if pickle_module not in (None, pickle):
        module = getattr(pickle_module, "__name__", pickle_module)
        raise NotImplementedError(f"{name}: pickle_module={module}: norch reads and writes files by its own picklers")


class _Pickler(pickle.Pickler):
    """Numbers the storages that it finds."""

    def __init__(self, memory: io.BytesIO):
        super().__init__(memory, protocol=4)
        self.numbers: dict[Storage, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, Storage) or obj.elements.is_meta:
            return None
        return self.numbers.setdefault(obj, len(self.numbers))


class _Parts:
    """A file in norch's format. It counts the size and the checksum of the bytes that it has written."""

    def __init__(self, obj: Any):
        pickled = io.BytesIO()
        pickler = _Pickler(pickled)
        pickler.dump(obj)
        self.storages, self.program = list(pickler.numbers), pickled.getvalue()

    def write_to(self, file: Any) -> None:
        self.file, self.written, self.checksum = file, 0, 0
        self.write(HEAD)
        for storage in self.storages:
            self.write(SIZE.pack(storage.nbytes()))
            self.write(bytes(-self.written % ALIGNMENT))
            before, self.checksum = self.checksum, 0
            storage.write_to(self)
            checksum, self.checksum = self.checksum, before
            self.write(CHECK.pack(checksum))
        self.write(SIZE.pack(END) + SIZE.pack(len(self.program)))
        self.write(self.program)
        self.write(CHECK.pack(self.checksum))

    def write(self, data: bytes) -> None:
        self.checksum = zlib.crc32(data, self.checksum)
        self.written += len(data)
        self.file.write(data)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads a file that save(), torch.save() or safetensors wrote. f is a path or an object with read(). An Error is
    raised for damaged files and files of another kind.

    Tensors are on the CPU, or on the device map_location. As in PyTorch map_location may also be a dict of locations in
    the file, such as {"cuda:0": "cpu"}; other locations become the CPU. Or it is a function of a storage and its
    location, which returns a location, or None for the same.

    weights_only, the default, reads tensors, parameters, numbers, strings and containers of them; other objects raise
    UnpicklingError. weights_only=False also creates instances of other classes (norch's classes for PyTorch's), and
    lets a file run any code: use it only for files that you trust.

    mmap maps the file, which must be a path, into memory; the bytes of a tensor are read when they are first used.
    Writes to the tensors do not change the file, and checksums are not compared. Storages that are not aligned, as in
    files of earlier versions, are read at once. encoding, by default "utf-8", decodes strings that Python 2 wrote.
    NotImplementedError for a pickle_module other than pickle.

    >>> import io
    >>> file = io.BytesIO()
    >>> norch.save({"x": norch.ones(2)}, file)
    >>> at = file.seek(0)
    >>> norch.load(file)
    {'x': tensor([1., 1.])}
    """
    _check_pickle("load", pickle_module)
    unseen("load() reads a file")
    encoding = pickle_load_args.pop("encoding", "utf-8")
    if pickle_load_args:
        raise TypeError(f"load: there is no argument {', '.join(pickle_load_args)}")
    weights_only = weights_only is None or flag(weights_only, "load: weights_only")
    mapped = mmap is not None and flag(mmap, "load: mmap")
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            return _load(file, map_location, weights_only, mapped, size_of(file), encoding)
    if mapped:
        raise ValueError(f"load: mmap=True maps the file at a path; a {type(f).__name__} is read")
    return _load(f, map_location, weights_only, False, None, encoding)


def _load(f: Any, map_location: Any, weights_only: bool, mapped: bool, size: int | None, encoding: str) -> Any:
    """Reads a file. size: the size of a file that contains nothing else, or None."""
    name = getattr(f, "name", None)
    which = "this" if name is None else repr(name)
    source = Source(f)
    head = source.read(len(HEAD))
    if mapped and size and head not in LEGACY:
        from ._files.mapping import MappedSource, Mapping

        source = MappedSource(Mapping(f))
        source.read(len(HEAD))
    tensors_only = head[8:9] == b"{"  # of safetensors
    if head not in (HEAD, FIRST, *LEGACY) and not head.startswith(ZIP) and not tensors_only:
        raise Error(f"load: {which} is no file of norch.save, torch.save or safetensors, or it is damaged")
    where = destination(map_location)
    if tensors_only:
        from .utils import safetensors

        return safetensors.read(source, head, where, size, size_of(f))
    try:
        reader = _reader(f, source, head, where, weights_only)
        if hasattr(reader, "calls"):  # no one of C
            reader.encoding = encoding
        return reader.load()
    except (Refusal, CaptureError, DeviceError, MemoryError):
        raise
    except Exception as error:
        if isinstance(where, Chosen) and where.error is not None:
            raise
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # of a place before the beginning of a file
            raise
        if not weights_only and isinstance(error, (AttributeError, ImportError)):
            raise  # a class that this program has not got
        cause = f"{type(error).__name__}: {error}".removesuffix(": ")
        kinds = "norch.save, torch.save or safetensors"
        raise Error(f"load: {which} is no file of {kinds}, or it is damaged ({cause})") from error


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets load() with weights_only=True read these classes and functions from files, and call them. Each is a class or
    function, or a pair of it and its name in files, "module.name".
    """
    for value in safe_globals:
        value, path = value if isinstance(value, tuple) else (value, f"{value.__module__}.{value.__qualname__}")
        if not callable(value) or not isinstance(path, str):
            raise TypeError(f"add_safe_globals: expected classes and functions, not {value!r}")
        ALLOWED[path] = value


def get_safe_globals() -> list[Any]:
    """The classes and functions that add_safe_globals() added.

    >>> with norch.serialization.safe_globals([range]):
    ...     range in norch.serialization.get_safe_globals()
    True
    """
    return list(ALLOWED.values())


def clear_safe_globals() -> None:
    """Removes the names that add_safe_globals() added."""
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


def _reader(f: Any, source: Source, head: bytes, where: Device | Chosen | None, weights_only: bool) -> Any:
    if head.startswith(ZIP):
        from ._files import pytorch  # lazy imports: few programs need them

        archive, trusting = pytorch.Archive(f, source, head), not weights_only
        if not archive.has("constants.pkl"):
            return pytorch.Reader(archive, where, trusting)
        from ._files.torchscript import ScriptReader

        return ScriptReader(archive, where, trusting)
    if head in LEGACY:
        from ._files.pytorch_legacy import Reader

        if source.read(len(LEGACY[head])) != LEGACY[head]:
            raise ValueError("another magic number")
        return Reader(f, source, where, trusting=not weights_only)
    storages = []
    if head != FIRST:
        left = size_of(f)
        while (size := SIZE.unpack(source.read(SIZE.size))[0]) != END:
            _check_size(size, left)
            storages.append(placed(where, _storage(source, size)))
        source = _program(source, left)
    return (RestrictedUnpickler if weights_only else TrustingUnpickler)(source, where, storages)


def _storage(source: Source, size: int) -> Storage:
    """The next storage, whose size has been read."""
    source.read(-source.taken % ALIGNMENT)
    storage, found = source.storage(size)
    (expected,) = CHECK.unpack(source.read(CHECK.size))
    if found not in (expected, None):
        raise ValueError(f"the checksum is {expected:#010x}, of what was read {found:#010x}")
    return storage


def _program(source: Source, left: int | None) -> Source:
    """The pickle, after a check of its checksum."""
    (size,) = SIZE.unpack(source.read(SIZE.size))
    _check_size(size, left)
    program, expected = source.read(size), source.checksum
    (found,) = CHECK.unpack(source.read(CHECK.size))
    if found != expected:
        raise ValueError(f"the checksum is {found:#010x}, of what was read {expected:#010x}")
    return Source(io.BytesIO(program))


def _check_size(size: int, file_size: int | None) -> None:
    if size < 0 or (file_size is not None and size > file_size):
        raise ValueError(f"{size} bytes of a file of {file_size}")


publish(globals())
