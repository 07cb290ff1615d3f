"""Reads what torch.save wrote: state dicts, optimizers' states, checkpoints of both.

Such a file is a zip of `NAME/data.pkl`, a pickle in which each storage is a number, and `NAME/data/NUMBER`, its bytes.
The pickle names functions and classes of PyTorch; those that make tensors, sizes, devices and dtypes are answered here.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

from ._source import Source
from ._unpickler import CALLS, Refusal, RestrictedUnpickler, placed
from .device import device as Device  # noqa: N812
from .dtype import BY_NAME, DTYPES
from .dtype import dtype as DType  # noqa: N812
from .nn.parameter import Parameter
from .storage import PIECE, Storage, read_from
from .tensor import Size, Tensor

# What torch.FloatStorage and the like hold.
STORAGES = {
    "DoubleStorage": BY_NAME["float64"],
    "FloatStorage": BY_NAME["float32"],
    "HalfStorage": BY_NAME["float16"],
    "BFloat16Storage": BY_NAME["bfloat16"],
    "LongStorage": BY_NAME["int64"],
    "IntStorage": BY_NAME["int32"],
    "ShortStorage": BY_NAME["int16"],
    "CharStorage": BY_NAME["int8"],
    "ByteStorage": BY_NAME["uint8"],
    "BoolStorage": BY_NAME["bool"],
    "ComplexFloatStorage": BY_NAME["complex64"],
    "ComplexDoubleStorage": BY_NAME["complex128"],
}


class Typed(Storage):
    """A storage, and the dtype that it was written as."""

    __slots__ = ("dtype",)

    def __init__(self, elements: Tensor, dtype: DType):
        super().__init__(elements)
        self.dtype = dtype


def _tensor(storage: Typed, offset: int, shape: Any, strides: Any, requires_grad: bool, *_: Any) -> Tensor:
    return storage.seen_as(storage.dtype, shape, strides, offset).requires_grad_(requires_grad)


def _parameter(data: Any, requires_grad: bool, hooks: Any, attributes: Any = None) -> Parameter:
    return _with_attributes(Parameter(data, requires_grad), attributes)


def _of_class(make: Any, cls: Any, arguments: Any, attributes: Any) -> Any:
    if make is not _tensor or cls is not Tensor:
        raise TypeError(f"{cls!r} made by {make!r}")
    return _with_attributes(_tensor(*arguments), attributes)


def _with_attributes(x: Any, attributes: Any) -> Any:
    if type(attributes) is dict:
        x.__dict__.update(attributes)
    return x


NAMES: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _of_class,
    ("torch", "Tensor"): Tensor,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch", "Size"): Size,
    ("torch", "device"): Device,
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
    **{("torch", dtype.name): dtype for dtype in DTYPES},
}


CALLS_HERE = {
    **CALLS,
    _tensor: (Typed, int, tuple, tuple, bool, object, object),
    _parameter: (Tensor, bool, object, object),
    _of_class: (object, type, tuple, object),
}


def _seekable(file: Any, source: Source, head: bytes) -> Any:
    """file, whose head has been read, as zipfile needs it: a copy in memory if the file cannot seek."""
    if hasattr(file, "seekable") and file.seekable():
        return file
    whole = io.BytesIO(head)
    whole.seek(len(head))
    while piece := source.read(PIECE):
        whole.write(piece)
    return whole


class Reader(RestrictedUnpickler):
    """Unpickles the data.pkl of such a file, whose head has been read. trusting: takes classes of other modules too."""

    calls = CALLS_HERE

    def __init__(self, file: Any, source: Source, head: bytes, device: Device | None, trusting: bool):
        file = _seekable(file, source, head)
        self.zip = zipfile.ZipFile(file)
        self.left = file.seek(0, io.SEEK_END)
        pickles = [name for name in self.zip.namelist() if name.endswith("data.pkl") and name.count("/") == 1]
        if len(pickles) != 1:
            raise ValueError("a zip file without the data.pkl of torch.save")
        self.folder = pickles[0].removesuffix("data.pkl")
        if f"{self.folder}byteorder" in self.zip.namelist() and self.zip.read(self.entry("byteorder")) != b"little":
            raise ValueError("written by a big-endian machine")
        super().__init__(Source(io.BytesIO(self.zip.read(self.entry("data.pkl")))), device, [])
        self.trusting = trusting
        self.by_key: dict[str, Storage] = {}

    def entry(self, name: str) -> zipfile.ZipInfo:
        """A part of the file. Together they have no more bytes than the file: none is compressed, none read twice."""
        found = self.zip.getinfo(f"{self.folder}{name}")
        if found.compress_type != zipfile.ZIP_STORED:
            raise Refusal(
                f"load: {found.filename} is compressed, which torch.save does not do; unpack and pack it anew"
            )
        self.left -= found.file_size
        if self.left < 0:
            raise ValueError(f"{found.filename} and others have more bytes than the file")
        return found

    def find_class(self, module: str, name: str) -> Any:
        found = NAMES.get((module, name))
        if found is not None:
            return found
        if module.partition(".")[0] == "torch":
            raise Refusal(
                f"load: the file wants {module}.{name}; what comes over are dense tensors of norch's dtypes, "
                "parameters, numbers, strings and containers. Of a module, save the state_dict()"
            )
        return pickle._Unpickler.find_class(self, module, name) if self.trusting else super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """A storage. Tensors that name the same one share it."""
        kind, dtype, key, _, _ = pid
        if kind != "storage" or dtype not in DTYPES:
            raise ValueError(f"neither a storage nor a dtype: {kind!r} of {dtype!r}")
        if key not in self.by_key:
            entry = self.entry(f"data/{key}")
            with self.zip.open(entry) as file:
                self.by_key[key] = placed(self.device, read_from(file, entry.file_size))
        return Typed(self.by_key[key].elements, dtype)

    def build(self) -> None:
        """The _metadata of a state dict, versions of PyTorch's modules, is passed over."""
        if type(self.stack[-2]) is OrderedDict:
            self.stack.pop()
        elif self.trusting:
            pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]
        else:
            super().build()
