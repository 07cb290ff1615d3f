"""Reads files that torch.save wrote before PyTorch 1.6, and still writes with _use_new_zipfile_serialization=False.

Such a file is a sequence of pickles: a magic number, a version, facts of the machine, the object, and a list of the
keys of its storages; then for each key the number of its elements and their bytes. In the object a storage is

    ("storage", class, key, location, number of elements, None or (key of the view, offset, number of its elements))

so that tensors are made before their elements are read: into their memory, which the size of the file bounds.
"""

from __future__ import annotations

import functools
import io
import struct
from typing import Any

from .._binding.library import lib
from ..device import device as Device
from ..dtype import DTYPES, int64
from ..ops.create import zeros
from ..storage import PIECE, empty_storage, fill_from
from .placement import Chosen, placed
from .pytorch import TorchUnpickler, Typed, compressed_axis, sparse
from .source import Source, size_of
from .unpickler import WORD, Refusal, shown

VERSION = 1001
COUNT = struct.Struct("<q")


def _left(file: Any, source: Source) -> tuple[Source, int]:
    """The source, and how many bytes it has left. If that takes reading it, the source is a copy in memory."""
    if (size := size_of(file)) is not None:
        return source, size - file.tell()
    if hasattr(file, "seekable") and file.seekable():
        position = file.tell()
        size = file.seek(0, io.SEEK_END)
        file.seek(position)
        return source, size - position
    whole = io.BytesIO()
    while piece := source.read(PIECE):
        whole.write(piece)
    size = whole.tell()
    whole.seek(0)
    return Source(whole), size


class Reader(TorchUnpickler):
    """Reads such a file behind its magic number."""

    def __init__(self, file: Any, source: Source, where: Device | Chosen | None, trusting: bool):
        source, self.left = _left(file, source)
        super().__init__(source, where, trusting)
        self.by_key: dict[str, Typed] = {}
        self.unfilled: list[tuple[Any, Any, Any]] = []
        self.sparse = functools.partial(_unfilled, self.unfilled)
        self.calls = {**self.calls, self.sparse: self.calls[sparse]}

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        return self.sparse if found is sparse else found

    def next_object(self) -> Any:
        self.memo: dict[int, Any] = {}  # of each pickle
        return super().load()

    def load(self) -> Any:
        version, _ = self.next_object(), self.next_object()
        if version != VERSION:
            raise ValueError(f"version {shown(version)} of the format, not {VERSION}")
        result, keys = self.next_object(), self.next_object()
        if type(keys) is not list or set(map(_text, keys)) != self.by_key.keys() or len(keys) != len(self.by_key):
            raise ValueError("the keys of the storages are not those that the object names")
        for key in keys:
            self.fill(self.by_key[_text(key)])
        for stored in self.by_key.values():
            for copy in (stored.turned or {}).values():
                copy.turn()
        for x, layout, parts in self.unfilled:
            _fill(x, sparse(layout, parts))
        return result

    def fill(self, stored: Typed) -> None:
        """Reads the bytes of the storage that comes next."""
        (count,) = COUNT.unpack(self.source.read(COUNT.size))
        if count * stored.dtype.itemsize != stored.nbytes():
            raise ValueError(f"{count} elements of a storage of {stored.nbytes() // stored.dtype.itemsize}")
        if stored.device.type == "cpu":
            fill_from(self.source, stored)
        else:
            stored.elements.copy_(fill_from(self.source, empty_storage(stored.nbytes())).elements)

    def persistent_load(self, pid: Any) -> Any:
        """A storage, the same for each time that its key occurs; or a view of one, which shares its memory."""
        if type(pid) is not tuple or len(pid) < 2:
            raise ValueError(f"{shown(pid)} names no storage")
        if _text(pid[0]) == "module":  # a class with its source
            if self.trusting:
                return pid[1]
            raise Refusal("load: the file holds modules, which name classes; save the state_dict() of a module")
        kind, dtype, key, location, count, view = pid
        self.spend(sum(len(text) // WORD for text in (kind, key, location) if isinstance(text, bytes)))
        if _text(kind) != "storage" or dtype not in DTYPES or not _are_sizes(count):
            raise ValueError(f"neither a storage nor a dtype: {shown(kind)} of {shown(dtype)}")
        if (stored := self.by_key.get(_text(key))) is None:
            self.left -= count * dtype.itemsize
            if self.left < 0:
                raise ValueError("the storages have more bytes than the file")
            storage = placed(self.where, empty_storage(count * dtype.itemsize), _text(location))
            stored = self.by_key[_text(key)] = Typed(storage.elements, dtype, {})
        if view is None:
            return Typed(stored.elements, dtype, stored.turned)  # which may be another one of empty storages
        _, offset, size = view
        held = stored.nbytes() // dtype.itemsize
        if not _are_sizes(offset, size) or offset + size > held:
            raise ValueError(f"a view of elements {offset} to {offset} + {size} of a storage of {held}")
        first, last = offset * dtype.itemsize, (offset + size) * dtype.itemsize
        return Typed(lib.norch_slice(stored.elements, 0, first, last, 1), dtype)


def _unfilled(unfilled: list[tuple[Any, Any, Any]], layout: Any, parts: Any) -> Any:
    """A sparse tensor without elements, appended to `unfilled` with its parts, which are checked when they have been
    read."""
    from ..sparse.compressed import CompressedTensor
    from ..sparse.coo import SparseTensor, unchecked

    axis = compressed_axis(layout)
    values, size = parts[1:3] if axis is None else parts[2:4]
    coordinates = zeros((len(size) - values.ndim + 1, 0), dtype=int64)
    x: Any = unchecked(coordinates, values[:0], size, cls=SparseTensor if axis is None else CompressedTensor)
    if axis is not None:
        x._axis = axis
    unfilled.append((x, layout, parts))
    return x


def _fill(x: Any, checked: Any) -> None:
    from ..sparse.coo import SparseTensor

    for slot in SparseTensor.__slots__:
        setattr(x, slot, getattr(checked, slot))


def _text(x: Any) -> str:
    """A string, which Python 2 may have written as bytes."""
    if not isinstance(x, str | bytes):
        raise ValueError(f"{shown(x)} is no string")
    return x if isinstance(x, str) else x.decode()


def _are_sizes(*numbers: Any) -> bool:
    return all(type(number) is int and 0 <= number < 1 << 59 for number in numbers)
