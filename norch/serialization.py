"""save and load: objects that hold tensors, in files.

A file is a line that says whose it is; then the storages of its tensors, each a size and its bytes, once however many
views share them; then a size of -1, and a pickle (protocol 4) in which a storage is its number. So the bytes of a
tensor go between its memory and the file without a second copy of them. Loading a pickle can run any code, so load()
builds tensors, numbers, strings and containers only, unless it is told that the file can be trusted.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from typing import Any, ClassVar

from ._lib import flag
from .device import device as Device  # noqa: N812
from .errors import DeviceError, Error
from .storage import Storage, read_from, restored
from .tensor import Tensor

HEAD = b"norch file 2\n"
FIRST = b"norch file 1\n"  # how files began that are a pickle only, which holds the bytes of the storages
ZIP = b"PK\3\4"  # how torch.save begins
OLD = b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P"  # and how it began before PyTorch 1.6

SIZE = struct.Struct("<q")  # the bytes of a storage
END = -1  # no more storages

# What a file may name: none of it does more than to hold what it is given.
SAFE = {
    "_codecs": "encode",  # what bytes are written as for Python 2
    "builtins": "bool bytearray bytes complex dict float frozenset int list range set slice str tuple",
    "collections": "Counter OrderedDict defaultdict",
    "norch._handle": "Size",
    "norch.device": "device",
    "norch.dtype": "dtype_named",
    "norch.nn.parameter": "Parameter",
    "norch.storage": "restored",
    "norch.tensor": "Size Tensor rebuilt",
}


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
    if hasattr(f, "write"):
        f.write(HEAD)
        pickled = io.BytesIO()
        _Pickler(pickled, f).dump(obj)
        f.write(SIZE.pack(END))
        f.write(pickled.getvalue())
    else:
        _save_at(obj, os.path.realpath(os.fsdecode(f)))


def _save_at(obj: Any, path: str) -> None:
    """Writes a file beside path, which then takes its place: a failure leaves what is there."""
    folder, there = os.path.dirname(path), os.path.exists(path)
    beside = os.access(folder, os.W_OK | os.X_OK)
    if there and not (os.path.isfile(path) and os.access(path, os.W_OK)):
        beside = False  # a device or a pipe is written to; what else it is open() says
    written = os.path.join(folder, f".norch-{os.urandom(8).hex()}") if beside else path
    try:
        with open(written, "xb" if beside else "wb") as file:
            save(obj, file)
        if beside:
            if there:
                os.chmod(written, os.stat(path).st_mode & 0o7777)  # as open() would have left it
            os.replace(written, path)
    except BaseException:
        if beside and os.path.exists(written):
            os.remove(written)
        raise


class _Pickler(pickle.Pickler):
    """Pickles into memory, and writes each storage to file when it first meets it."""

    def __init__(self, memory: io.BytesIO, file: Any):
        super().__init__(memory, protocol=4)
        self.file = file
        self.numbers: dict[Storage, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, Storage):
            return None
        if obj not in self.numbers:
            self.numbers[obj] = len(self.numbers)
            self.file.write(SIZE.pack(obj.nbytes()))
            obj.write_to(self.file)
        return self.numbers[obj]


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
    head = f.read(len(HEAD))
    if head == OLD:
        raise Error(f"load: {which} has the form that torch.save wrote before PyTorch 1.6; load and save it there anew")
    if head not in (HEAD, FIRST) and not head.startswith(ZIP):
        raise Error(f"load: {which} is no file of norch.save or torch.save, or it is damaged")
    device = None if map_location is None else Device(map_location)
    try:
        return _reader(f, head, device, weights_only).load()
    except (Refusal, DeviceError, MemoryError, OSError):
        raise
    except Exception as error:
        if not weights_only and isinstance(error, (AttributeError, ImportError)):
            raise  # a class that this program has not got
        cause = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise Error(f"load: {which} is no file of norch.save or torch.save, or it is damaged ({cause})") from error


def _reader(f: Any, head: bytes, device: Device | None, weights_only: bool) -> Any:
    if head.startswith(ZIP):
        from .pytorch_file import Reader  # late: few programs need it

        return Reader(f, head, device, trusting=not weights_only)
    storages = [] if head == FIRST else _storages(f, device)
    return (RestrictedUnpickler if weights_only else _TrustingUnpickler)(f, device, storages)


def _storages(f: Any, device: Device | None) -> list[Storage]:
    storages = []
    while (size := SIZE.unpack(f.read(SIZE.size))[0]) != END:
        storages.append(placed(device, read_from(f, size)))
    return storages


class Refusal(pickle.UnpicklingError):
    """What a file asks for is not done."""


class _TrustingUnpickler(pickle.Unpickler):
    def __init__(self, file: Any, device: Device | None, storages: list[Storage]):
        super().__init__(file)
        self.device, self.storages = device, storages

    def find_class(self, module: str, name: str) -> Any:
        return _to(self.device, super().find_class(module, name))

    def persistent_load(self, pid: Any) -> Storage:
        return _numbered(self.storages, pid)


class RestrictedUnpickler(pickle._Unpickler):  # that in Python, as the one in C sets attributes of anything
    proto = 0
    stack: list[Any]

    def __init__(self, file: Any, device: Device | None, storages: list[Storage]):
        super().__init__(file)
        self.device, self.storages = device, storages

    def find_class(self, module: str, name: str) -> Any:
        if self.proto < 3:  # which torch.save takes: builtins and their kin have the names of Python 2 there
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        if name not in SAFE.get(module, "").split():
            raise Refusal(
                f"load: the file wants {module}.{name}, which is no tensor, number, string or container; "
                "if you trust the file, pass weights_only=False"
            )
        return _to(self.device, super().find_class(module, name))

    def persistent_load(self, pid: Any) -> Storage:
        """A storage of the file, by its number."""
        return _numbered(self.storages, pid)

    def build(self) -> None:
        """Sets attributes of a tensor, as the file says; refused for anything else, such as a class."""
        holder, attributes = self.stack[-2:]
        if not isinstance(holder, Tensor) or type(attributes) is not dict:
            raise Refusal(f"load: the file sets attributes of a {type(holder).__name__}")
        holder.__dict__.update(self.stack.pop())

    dispatch: ClassVar[dict[int, Any]] = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: lambda self: self.build()}


def _numbered(storages: list[Storage], number: Any) -> Storage:
    if type(number) is not int or not 0 <= number < len(storages):
        raise ValueError(f"the file has no storage {number!r}")
    return storages[number]


def _to(device: Device | None, found: Any) -> Any:
    return (lambda data: placed(device, restored(data))) if found is restored and device is not None else found


def placed(device: Device | None, storage: Storage) -> Storage:
    """The storage moves, not its tensors one by one: so they go on sharing it."""
    return storage if device is None else Storage(storage.elements.to(device))
