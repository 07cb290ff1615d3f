"""safetensors: files that hold named tensors and nothing else, so that loading runs no code. The functions are those of
`safetensors.torch`, for norch's tensors and without that package.

A file is the header's size in 8 bytes; the header, JSON, `{name: {"dtype", "shape", "data_offsets"}}` and optionally
`"__metadata__"`, a dict of strings; then the elements of all tensors in C order, without gaps
(github.com/huggingface/safetensors). Files are checked as that package checks them.

>>> import norch, os, tempfile
>>> from norch.utils import safetensors
>>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
>>> safetensors.save_file({"weight": norch.ones(2, 2)}, path, metadata={"step": "3"})
>>> safetensors.load_file(path)
{'weight': tensor([[1., 1.],
        [1., 1.]])}
>>> with safetensors.safe_open(path) as file:
...     print(file.keys(), file.metadata(), file.get_slice("weight")[0].tolist())
['weight'] {'step': '3'} [1.0, 1.0]
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, NamedTuple

from .._binding.library import constants
from .._files.mapping import MappedSource
from .._files.mapping import Mapping as MappedFile
from .._files.placement import Chosen, placed
from .._files.source import Source, size_of
from .._files.target import write
from .._package.exports import publish
from ..device import device as Device  # noqa: N812
from ..dtype import BY_NAME, uint8
from ..dtype import dtype as DType  # noqa: N812
from ..errors import ArgumentError, Error
from ..nn import Module
from ..storage import Storage
from ..tensor import Tensor

__all__ = [
    "SafetensorError", "load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model",
]  # fmt: skip

MAX_DIMS = constants["MAX_DIMS"]
SIZE = struct.Struct("<Q")
LARGEST_HEADER = 100_000_000
METADATA = "__metadata__"

# The format's dtypes. A file orders its tensors by them, the last first.
DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
NAMES = {name: code for code, name in DTYPES.items()}
RANK = {code: rank for rank, code in enumerate(DTYPES)}


class SafetensorError(Error):
    """The file is damaged or not a safetensors file, or has a dtype that norch lacks."""


# ---- writing -------------------------------------------------------------------------------------------------------


class Parts:
    """A file of tensors, checked and ready to write."""

    def __init__(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None):
        _check(tensors, metadata)
        self.tensors = sorted(tensors.items(), key=lambda item: (-RANK[NAMES[item[1].dtype.name]], item[0]))
        header: dict[str, Any] = {} if metadata is None else {METADATA: dict(metadata)}
        at = 0
        for name, x in self.tensors:
            offsets = [at, at := at + x.nbytes]
            header[name] = {"dtype": NAMES[x.dtype.name], "shape": list(x.shape), "data_offsets": offsets}
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        self.header = text + b" " * (-len(text) % SIZE.size)
        if len(self.header) > LARGEST_HEADER:
            raise SafetensorError(f"save: a header of {len(self.header)} bytes; {LARGEST_HEADER} is the limit")

    def write_to(self, file: Any) -> None:
        """Writes the header, then the elements of the tensors in order."""
        file.write(SIZE.pack(len(self.header)) + self.header)
        for _, x in self.tensors:
            Storage(x.detach().reshape(-1).view(uint8)).write_to(file)


def _check(tensors: Any, metadata: Any) -> None:
    if not isinstance(tensors, Mapping):
        raise ArgumentError(f"save: expected a dict of tensors by name, not a {type(tensors).__name__}")
    if metadata is not None and not all(isinstance(text, str) for item in metadata.items() for text in item):
        raise TypeError("save: metadata must be a dict of strings")
    for name, x in tensors.items():
        if not isinstance(name, str) or name == METADATA:
            raise ArgumentError(f"save: {name!r} cannot be the name of a tensor of safetensors")
        if not isinstance(x, Tensor):
            raise ArgumentError(f"save: safetensors are a dict of tensors; {name!r} is a {type(x).__name__}")
        if x.dtype.name not in NAMES:
            raise ArgumentError(f"save: {name!r} is of {x.dtype}, which the format lacks")
        if not x.is_contiguous():
            raise ArgumentError(f"save: {name!r} is not contiguous, and the format has no strides; save .contiguous()")
    for first, second in _sharing(tensors):
        raise ArgumentError(
            f"save: {first!r} and {second!r} share memory, which safetensors cannot represent; save one of them, a "
            "clone(), or a module by save_model()"
        )


def _sharing(tensors: Mapping[str, Tensor]) -> Iterable[tuple[str, str]]:
    """Pairs of names of contiguous tensors that overlap."""
    places = sorted(
        (str(x.device), x.data_ptr(), x.data_ptr() + x.nbytes, name) for name, x in tensors.items() if x.numel()
    )
    last: tuple[str, int, int, str] = ("", 0, 0, "")
    for place in places:
        if place[0] == last[0] and place[1] < last[2]:
            yield last[3], place[3]
        if place[0] != last[0] or place[2] > last[2]:
            last = place


def save_file(tensors: Mapping[str, Tensor], filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Writes named tensors, and metadata strings, to the file at filename.

    ArgumentError (a ValueError) for tensors that are not contiguous, share memory, or have a dtype that the format
    lacks. An existing file is replaced only when the new one is complete.
    """
    write(Parts(tensors, metadata), filename)


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes that save_file() writes.

    >>> data = norch.utils.safetensors.save({"x": norch.ones(2)})
    >>> norch.utils.safetensors.load(data)
    {'x': tensor([1., 1.])}
    """
    file = io.BytesIO()
    write(Parts(tensors, metadata), file)
    return file.getvalue()


# ---- reading -------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A tensor's entry in the header. start: the offset of its elements, from the end of the header."""

    name: str
    code: str
    shape: tuple[int, ...]
    start: int
    nbytes: int

    def dtype(self) -> DType:
        found = BY_NAME.get(DTYPES[self.code])
        if found is None:
            raise SafetensorError(f"safetensors: {self.name!r} is of {self.code}, for which norch has no dtype")
        return found

    def tensor(self, storage: Storage) -> Tensor:
        dtype, strides, step = self.dtype(), [0] * len(self.shape), 1
        for axis in reversed(range(len(self.shape))):
            strides[axis], step = step, step * max(self.shape[axis], 1)
        return storage.seen_as(dtype, self.shape, strides, 0)


# Bits of an element, also for dtypes that norch lacks.
BITS = {code: 8 if code in ("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3") else int(code.lstrip("BCUIF")) for code in DTYPES}


def _refuse(reason: str) -> SafetensorError:
    return SafetensorError(f"safetensors: the file is damaged, or of something else: {reason}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name appears twice")
    return entries


def _size(text: str) -> int:
    if len(text) > 20:  # converting digits takes time in the square of their number
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _header_size(head: bytes, size: int | None) -> int:
    """The size of the header, for a file that begins with head and has size bytes."""
    if len(head) < SIZE.size:
        raise _refuse(f"{len(head)} bytes")
    (count,) = SIZE.unpack(head[: SIZE.size])
    if count > LARGEST_HEADER or (size is not None and count > size - SIZE.size):
        raise _refuse(f"a header of {count} bytes")
    return count


def _parsed(header: bytes, data_size: int | None) -> tuple[list[Entry], dict[str, str] | None]:
    """The entries of a header, by offset, and the metadata. data_size: bytes after the header."""
    if header[:1] != b"{":
        raise _refuse("the header does not begin with {")
    try:
        content = json.loads(header.decode(), object_pairs_hook=_once, parse_int=_size)
    except (ValueError, RecursionError) as error:
        raise _refuse(f"the header is not JSON ({error})") from None
    metadata = content.pop(METADATA, None)
    if metadata is not None and not (type(metadata) is dict and all(type(text) is str for text in metadata.values())):
        raise _refuse(f"{METADATA} is not a dict of strings")
    entries = sorted((_entry(name, fields) for name, fields in content.items()), key=lambda entry: entry[3:])
    at = 0
    for entry in entries:
        if entry.start != at:
            raise _refuse(f"the elements of {entry.name!r} begin at {entry.start}, not at {at}")
        at += entry.nbytes
    if data_size is not None and at != data_size:
        raise _refuse(f"{data_size} bytes of elements, not {at}")
    return entries, metadata


def _entry(name: str, said: Any) -> Entry:
    if type(said) is not dict or not {"dtype", "shape", "data_offsets"} <= said.keys():
        raise _refuse(f"{name!r} lacks dtype, shape or data_offsets")
    code, shape, offsets = said["dtype"], said["shape"], said["data_offsets"]
    if type(code) is not str or code not in DTYPES:
        raise _refuse(f"{name!r} is of {code if type(code) is str else type(code).__name__}")
    for numbers in (shape, offsets):
        if type(numbers) is not list or any(type(n) is not int or not 0 <= n < 1 << 63 for n in numbers):
            raise _refuse(f"{name!r} has sizes or offsets that are not integers >= 0")
    if len(shape) > MAX_DIMS or len(offsets) != 2:
        raise _refuse(f"{name!r} has {len(shape)} sizes and {len(offsets)} offsets; {MAX_DIMS} and 2 is the limit")
    if prod(max(size, 1) for size in shape) * BITS[code] >= 1 << 63:
        raise _refuse(f"{name!r}, {code} of shape {tuple(shape)}, has too many elements")
    if offsets[1] - offsets[0] != prod(shape) * BITS[code] // 8:
        raise _refuse(f"{name!r}, {code} of shape {tuple(shape)}, has the offsets {offsets}")
    return Entry(name, code, tuple(shape), offsets[0], offsets[1] - offsets[0])


def read(
    source: Source, head: bytes, where: Device | Chosen | None, size: int | None, most: int | None
) -> dict[str, Tensor]:
    """The tensors of a file whose head was read, mapped if possible. size: the number of its bytes, if known; most: an
    upper bound on it."""
    count = _header_size(head, most) + SIZE.size
    header = head[SIZE.size : count] + source.read(count - len(head))
    if len(header) < count - SIZE.size:
        raise _refuse(f"{len(header)} bytes of a header of {count - SIZE.size}")
    entries, _ = _parsed(header, None if size is None else size - count)
    if most is not None and (claimed := sum(entry.nbytes for entry in entries)) > most:  # checked before allocation
        raise _refuse(f"{claimed} bytes of elements in a file of {most}")
    tensors = {}
    try:
        for entry in entries:
            storage, _ = source.storage(entry.nbytes, entry.dtype().itemsize)
            tensors[entry.name] = entry.tensor(placed(where, storage))
    except EOFError as error:
        raise _refuse(str(error)) from None
    return tensors


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of the file at filename, by name, in file order.

    On the CPU they are mapped copy on write: the file is read when the elements are, and writes do not reach it.
    Elements that are not aligned in the file are copied. SafetensorError for a damaged file or another format.
    """
    with safe_open(filename, device=device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors, by name, from the bytes of a file.

    >>> norch.utils.safetensors.load(norch.utils.safetensors.save({"x": norch.ones(2)}))
    {'x': tensor([1., 1.])}
    """
    source = Source(io.BytesIO(data))
    return read(source, source.read(SIZE.size), None, len(data), len(data))


class safe_open:  # noqa: N801  (the name in safetensors)
    """A file whose tensors are read one by one, whole or in part.

    framework: "norch", or "pt" or "torch" for programs written for PyTorch; all return norch's tensors. device: the
    device of the tensors.
    """

    def __init__(self, filename: Any, framework: str = "norch", device: Any = "cpu"):
        if framework not in ("norch", "pt", "torch", "pytorch"):
            raise ArgumentError(f"safe_open: unknown framework {framework!r}")
        self._device = Device(device)
        with open(filename, "rb") as file:
            size = size_of(file)
            if not size:
                raise _refuse("0 bytes")
            source = MappedSource(MappedFile(file))
        count = _header_size(source.read(SIZE.size), size)
        entries, self._metadata = _parsed(source.read(count), size - SIZE.size - count)
        self._source: MappedSource | None = source
        self._first = SIZE.size + count
        self._entries = {entry.name: entry for entry in entries}

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: Any) -> None:
        self._source = None  # tensors keep the mapping alive

    def keys(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._entries)

    def offset_keys(self) -> list[str]:
        """The names in file order."""
        return list(self._entries)

    def metadata(self) -> dict[str, str] | None:
        """The metadata, a dict of strings; None if there are none."""
        return self._metadata

    def _mapped(self, name: str) -> Tensor:
        if self._source is None:
            raise SafetensorError("safe_open: the file is closed")
        if name not in self._entries:
            raise SafetensorError(f"safe_open: the file has no tensor {name!r}")
        entry = self._entries[name]
        self._source.move_to(self._first + entry.start)
        return entry.tensor(self._source.storage(entry.nbytes, entry.dtype().itemsize)[0])

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of that name; SafetensorError if there is none."""
        return self._mapped(name).to(self._device)

    def get_slice(self, name: str) -> Slice:
        """The Slice of a tensor: indexing it reads a part."""
        return Slice(self._mapped(name), self._entries[name].code, self._device)


class Slice:
    """A tensor of a file; indexing reads only that part."""

    def __init__(self, mapped: Tensor, code: str, device: Device):
        self._mapped, self._code, self._device = mapped, code, device

    def get_shape(self) -> list[int]:
        """The sizes."""
        return list(self._mapped.shape)

    def get_dtype(self) -> str:
        """The dtype's name in the file, such as "F32"."""
        return self._code

    def __getitem__(self, index: Any) -> Tensor:
        return self._mapped[index].to(self._device)


# ---- modules -------------------------------------------------------------------------------------------------------


def _place(name: str, x: Any) -> Any:
    """A key that is equal for state dict entries with the same elements."""
    return (x.device, x.data_ptr(), x.shape, x.stride(), x.dtype) if isinstance(x, Tensor) and x.numel() else name


def save_model(model: Module, filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Writes the state dict of a module. Of entries that share their elements, such as tied weights, only the first by
    name is written; the metadata map the other names to it."""
    info, first_at, written = dict(metadata or {}), dict[Any, str](), dict[str, Any]()
    for name, x in sorted(model.state_dict().items()):
        if (first := first_at.setdefault(_place(name, x), name)) == name:
            written[name] = x.contiguous() if isinstance(x, Tensor) else x
        else:
            info.setdefault(name, first)
    save_file(written, filename, info or None)


def load_model(model: Module, filename: Any, strict: bool = True, device: Any = "cpu") -> tuple[list[str], list[str]]:
    """Copies the tensors of a save_model() file into a module. Returns (missing keys, unexpected keys); with strict an
    Error names them and nothing is changed."""
    state = load_file(filename, device)
    places = {name: _place(name, x) for name, x in model.state_dict().items()}
    by_place = {places[name]: x for name, x in state.items() if name in places}
    tied = {name: by_place[place] for name, place in places.items() if name not in state and place in by_place}
    keys = model.load_state_dict({**state, **tied}, strict=strict)
    return keys.missing_keys, keys.unexpected_keys


publish(globals())
