"""Reads and writes files of torch.save: state dicts, states of optimizers, checkpoints of both.

Such a file is a zip of `NAME/data.pkl`, a pickle in which each storage is a number, and `NAME/data/NUMBER`, its bytes.
_files/pytorch_legacy.py reads those that are no zip, and _files/torchscript.py the zips of torch.jit.save.
The pickle names functions and classes of PyTorch; those that make tensors, sizes, devices and dtypes are answered here,
and written for what norch has in their place. PyTorch is imported for neither.
"""

from __future__ import annotations

import codecs
import io
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

from .._binding.library import lib
from .._package import left_out
from .._tensor.copying import rebuilt_compressed, rebuilt_sparse
from ..device import device as Device  # noqa: N812
from ..dtype import BY_NAME, DTYPES
from ..dtype import dtype as DType  # noqa: N812
from ..nn.parameter import Parameter
from ..ops.composed.type_properties import TYPES
from ..ops.create import empty_strided
from ..storage import PIECE, Storage, read_from
from ..tensor import Size, Tensor
from .mapping import MappedSource, Mapping
from .placement import Chosen, placed
from .source import Source
from .unpickler import ALLOWED, CALLS, Refusal, RestrictedUnpickler, shown

LOCAL = struct.Struct("<4s22xHH")  # the local header of an entry: signature, sizes of its name and its extra field

# What torch.FloatStorage and the like hold.
STORAGES = {f"{kind}Storage": BY_NAME[dtype] for dtype, kind in TYPES.items()}


class Typed(Storage):
    """A storage, and the dtype as which it was written. turned has copies of it whose elements have another sign."""

    __slots__ = ("dtype", "turned")

    def __init__(self, elements: Tensor, dtype: DType, turned: dict[Any, Turned] | None = None):
        super().__init__(elements)
        self.dtype, self.turned = dtype, turned


class Turned:
    """A copy of a storage, with the elements conjugated or negated: the memory of those tensors of a file that PyTorch
    conjugates or negates only when they are read."""

    def __init__(self, storage: Storage, dtype: DType, conjugates: bool, negates: bool):
        self.of, self.storage, self.dtype = storage.elements, Storage(storage.elements.clone()), dtype
        self.conjugates, self.negates = conjugates, negates
        self.turn()

    def turn(self) -> None:
        self.storage.elements.copy_(self.of)
        elements = self.storage.seen_as(self.dtype, (self.storage.nbytes() // self.dtype.itemsize,), (1,), 0)
        if self.conjugates:
            elements.imag.neg_()
        if self.negates:
            elements.neg_()


def _turned(storage: Any, metadata: Any) -> Storage:
    """The storage of a tensor, by PyTorch's notes about it."""
    notes = metadata if type(metadata) is dict else {}
    how = notes.get("conj") is True, notes.get("neg") is True
    if how == (False, False):
        return storage.untyped()
    copies = getattr(storage, "turned", {})  # of a pickle: not shared
    if copies is None:
        raise ValueError("a conjugated or negated tensor over a part of a storage")
    key = (storage.dtype, *how)
    if key not in copies:
        copies[key] = Turned(storage.untyped(), storage.dtype, *how)
    return copies[key].storage


def _tensor(
    storage: Any, offset: int, shape: Any, strides: Any, requires_grad: bool, hooks: Any = None, metadata: Any = None
) -> Tensor:
    return _turned(storage, metadata).seen_as(storage.dtype, shape, strides, offset).requires_grad_(requires_grad)


def _tensor_of_bytes(
    storage: Any,
    offset: int,
    shape: Any,
    strides: Any,
    requires_grad: bool,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor whose storage has no dtype: PyTorch writes those of float8, uint16 and other newer dtypes so."""
    return _tensor(Typed(storage.elements, dtype), offset, shape, strides, requires_grad, hooks, metadata)


def _meta(dtype: Any, shape: Any, strides: Any, requires_grad: bool) -> Tensor:
    return empty_strided(shape, strides, dtype=dtype, device="meta").requires_grad_(requires_grad)


def _first_tensor(storage: Any, offset: int, shape: Any, strides: Any) -> Tensor:
    return storage.untyped().seen_as(storage.dtype, shape, strides, offset)


def _parameter(data: Any, requires_grad: bool, hooks: Any) -> Parameter:
    return Parameter(data, requires_grad)


def _parameter_with_state(data: Any, requires_grad: bool, hooks: Any, attributes: Any) -> Parameter:
    return _with_attributes(Parameter(data, requires_grad), attributes)


def _of_class(make: Any, cls: Any, arguments: Any, attributes: Any) -> Any:
    if make not in (_tensor, _meta) or cls is not Tensor:
        raise TypeError(f"{shown(cls)} made by {shown(make)}")
    return _with_attributes(make(*arguments), attributes)


def _with_attributes(x: Any, attributes: Any) -> Any:
    if type(attributes) is dict:
        x.__dict__.update(attributes)
    return x


def _layout(name: str) -> Any:
    return import_module("norch.compat.placeholders").layout(name.rpartition(".")[2])


def sparse(layout: Any, data: Any) -> Any:
    """A sparse tensor from its parts, which are checked."""
    if (axis := compressed_axis(layout)) is not None:
        first, second, values, size = data
        return rebuilt_compressed(first, second, values, size, axis, False)
    indices, values, size, is_coalesced = (*data, False)[:4]
    return rebuilt_sparse(indices, values, size, is_coalesced, False)


def compressed_axis(layout: Any) -> int | None:
    """0 for sparse_csr, 1 for sparse_csc, None for sparse_coo."""
    for axis, name in enumerate(("sparse_csr", "sparse_csc")):
        if layout is _layout(name):
            return axis
    if layout is not _layout("sparse_coo"):
        raise NotImplementedError(f"a tensor of the layout {layout}")
    return None


NAMES: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_bytes,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _meta,
    ("torch._utils", "_rebuild_tensor"): _first_tensor,  # before PyTorch 0.4
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter_with_state,
    ("torch._utils", "_rebuild_sparse_tensor"): sparse,
    ("torch.serialization", "_get_layout"): _layout,
    ("torch._tensor", "_rebuild_from_type_v2"): _of_class,
    ("torch", "Tensor"): Tensor,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch", "Size"): Size,
    ("torch", "device"): Device,
    ("torch.storage", "UntypedStorage"): BY_NAME["uint8"],
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
    **{("torch", dtype.name): dtype for dtype in DTYPES},
}


CALLS_HERE = {
    **CALLS,
    _tensor: (Typed, int, tuple, tuple, bool, object, object),
    _tensor_of_bytes: (Typed, int, tuple, tuple, bool, object, DType, object),
    _meta: (DType, tuple, tuple, bool),
    _first_tensor: (Typed, int, tuple, tuple),
    _parameter: (Tensor, bool, object),
    _parameter_with_state: (Tensor, bool, object, object),
    _of_class: (object, type, tuple, object),
    sparse: (object, tuple),
    _layout: (str,),
}


# ---- reading -------------------------------------------------------------------------------------------------------


def _seekable(file: Any, source: Source, head: bytes) -> Any:
    """file, whose head has been read, as zipfile needs it: a copy in memory if the file cannot seek."""
    if hasattr(file, "seekable") and file.seekable():
        return file
    whole = io.BytesIO(head)
    whole.seek(len(head))
    while piece := source.read(PIECE):
        whole.write(piece)
    return whole


def _counterpart(module: str, name: str) -> Any:
    """norch's class or function of a name of PyTorch, or None."""
    module = {"torch._C._VariableFunctions": "torch"}.get(module, module)
    placeholders = import_module("norch.compat.placeholders")
    try:
        holder = placeholders.imported(module[6:]) if module != "torch" else import_module("norch")
    except ImportError:
        return None
    found = getattr(holder, name, None)
    return None if placeholders.is_placeholder(found) else found


def _lacking(module: str, name: str) -> str | None:
    """The dtype of a name of PyTorch, if norch has none like it."""
    if (module, name) == ("torch._utils", "_rebuild_qtensor"):
        return "a quantised tensor, of torch.qint8, torch.quint8 or torch.qint32"
    if module == "torch" and left_out.reason(module, name) in import_module("norch.compat.placeholders").KINDS:
        return f"the dtype torch.{name}"
    return None


class TorchUnpickler(RestrictedUnpickler):
    """An unpickler that resolves the names of PyTorch, and makes tensors of typed storages. With trusting it also
    resolves classes of other modules.
    """

    calls = CALLS_HERE

    def __init__(self, file: Source, where: Device | Chosen | None, trusting: bool):
        super().__init__(file, where, [])
        self.encoding = "utf-8"  # of strings of Python 2
        self.trusting = trusting

    def find_class(self, module: str, name: str) -> Any:
        found = NAMES.get((module, name))
        if found is _of_class and self.trusting:
            return import_module("norch.compat.pickles")._rebuild_from_type_v2
        if found is not None:
            return found
        if module.partition(".")[0] == "torch":
            if (path := f"{module}.{name}") in ALLOWED:
                return ALLOWED[path]
            if self.trusting and (found := _counterpart(module, name)) is not None:
                return found
            if (lacking := _lacking(module, name)) is not None:
                raise Refusal(f"load: the file has {lacking}, which norch lacks")
            trust = "" if self.trusting else ", or if you trust the file, pass weights_only=False"
            raise Refusal(
                f"load: the file names {module}.{name}; what comes over are dense tensors of norch's dtypes, "
                f"parameters, numbers, strings and containers. Of a module, save the state_dict(){trust}"
            )
        return pickle._Unpickler.find_class(self, module, name) if self.trusting else super().find_class(module, name)

    def build(self) -> None:
        if self.trusting:
            pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]
        else:
            super().build()


class Archive:
    """The zip of such a file. The head of the file has been read."""

    def __init__(self, file: Any, source: Source, head: bytes):
        file = _seekable(file, source, head)
        self.mapping = source.mapping if isinstance(source, MappedSource) else None
        self.zip = zipfile.ZipFile(file)
        self.left = file.seek(0, io.SEEK_END)
        self.names = set(self.zip.namelist())
        pickles = [name for name in self.zip.namelist() if name.endswith("data.pkl") and name.count("/") == 1]
        if len(pickles) != 1:
            raise ValueError("a zip file without the data.pkl of torch.save")
        self.folder = pickles[0].removesuffix("data.pkl")
        if self.has("byteorder") and self.read("byteorder") != b"little":
            raise ValueError("written by a big-endian machine")

    def has(self, name: str) -> bool:
        return f"{self.folder}{name}" in self.names

    def entry(self, name: str) -> zipfile.ZipInfo:
        """A part of the file. Together they have no more bytes than the file: none is compressed, none read twice."""
        found = self.zip.getinfo(f"{self.folder}{name}")
        if found.compress_type != zipfile.ZIP_STORED:
            raise Refusal(
                f"load: {found.filename} is compressed, which torch.save does not do; save it again without compression"
            )
        self.left -= found.file_size
        if self.left < 0:
            raise ValueError(f"{found.filename} and others have more bytes than the file")
        return found

    def read(self, name: str) -> bytes:
        return self.zip.read(self.entry(name))

    def storage(self, name: str) -> Storage:
        """The bytes of an entry: mapped if the file is mapped and they are aligned, else read and checked."""
        entry = self.entry(name)
        if self.mapping is not None:
            storage = self.mapping.storage(_start(self.mapping, entry), entry.file_size)
            if storage is not None:
                return storage
        with self.zip.open(entry) as file:
            return read_from(file, entry.file_size)


class Reader(TorchUnpickler):
    """Unpickles an entry of the archive, whose storages lie in a folder of it."""

    def __init__(
        self,
        archive: Archive,
        where: Device | Chosen | None,
        trusting: bool,
        name: str = "data.pkl",
        folder: str = "data",
    ):
        super().__init__(Source(io.BytesIO(archive.read(name))), where, trusting)
        self.archive, self.storage_folder = archive, folder
        self.by_key: dict[str, Storage] = {}
        self.turned: dict[str, dict[Any, Turned]] = {}

    def persistent_load(self, pid: Any) -> Any:
        """A storage. Tensors that name the same one share it."""
        kind, dtype, key, location, _ = pid
        if kind != "storage" or dtype not in DTYPES or type(key) is not str or type(location) is not str:
            of = f"{shown(dtype)}, {shown(key)} on {shown(location)}"
            raise ValueError(f"neither a storage nor a dtype: {shown(kind)} of {of}")
        if key not in self.by_key:
            storage = self.archive.storage(f"{self.storage_folder}/{key}")
            self.by_key[key] = placed(self.where, storage, location)
        return Typed(self.by_key[key].elements, dtype, self.turned.setdefault(key, {}))


def _start(mapping: Mapping, entry: zipfile.ZipInfo) -> int:
    """The position in the file of the bytes of an entry, after its local header, name and extra field."""
    header = mapping.bytes[entry.header_offset : entry.header_offset + LOCAL.size]
    signature, name, extra = LOCAL.unpack(header)
    if signature != b"PK\3\4":
        raise ValueError(f"{entry.filename} is not where the directory of the file says")
    return entry.header_offset + LOCAL.size + name + extra


# ---- writing -------------------------------------------------------------------------------------------------------

FOLDER = "archive"
FIELD = struct.Struct("<2sH")  # of an extra field: its kind and its size
ALIGNMENT = 64  # of the bytes of each storage in the file, as torch.save has it
STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}
NAME_OF = {
    _tensor: ("torch._utils", "_rebuild_tensor_v2"),
    _meta: ("torch._utils", "_rebuild_meta_tensor_no_storage"),
    _parameter: ("torch._utils", "_rebuild_parameter"),
    _parameter_with_state: ("torch._utils", "_rebuild_parameter_with_state"),
    _of_class: ("torch._tensor", "_rebuild_from_type_v2"),
    sparse: ("torch._utils", "_rebuild_sparse_tensor"),
    _layout: ("torch.serialization", "_get_layout"),
    Tensor: ("torch", "Tensor"),
    Size: ("torch", "Size"),
    Device: ("torch", "device"),
    OrderedDict: ("collections", "OrderedDict"),
    Counter: ("collections", "Counter"),
    codecs.encode: ("_codecs", "encode"),
    bytearray: ("__builtin__", "bytearray"),  # the names of Python 2, as the protocol 2 has them
    complex: ("__builtin__", "complex"),
    set: ("__builtin__", "set"),
}


class _Kind:
    """The class of PyTorch's storages of a dtype, as the pickle names it."""

    def __init__(self, dtype: DType):
        self.dtype = dtype


KINDS = {dtype: _Kind(dtype) for dtype in STORAGES.values()}


class _Stored:
    """A storage in a zip, with its key. reference is its form in the pickle."""

    def __init__(self, storage: Storage, dtype: DType, key: str):
        self.storage, self.dtype = storage, dtype
        self.size = storage.nbytes() // dtype.itemsize * dtype.itemsize
        self.reference = ("storage", KINDS[dtype], key, "cpu", self.size // dtype.itemsize)

    def write_to(self, file: Any) -> None:
        """Writes whole elements, without the last bytes of a storage if they are no whole element."""
        Storage(lib.norch_slice(self.storage.elements, 0, 0, self.size, 1)).write_to(file)


def rebuild_call(x: Any, storage_of: Callable[[Tensor], Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A tensor as a call of the function by which PyTorch makes one. storage_of: returns
    the argument for its storage."""
    if x._in_coordinates:
        return sparse, (x.layout, x._parts())
    cls, attributes, grad = type(x), vars(x), x.requires_grad
    hooks: OrderedDict[Any, Any] = OrderedDict()  # which are not saved
    make: Callable[..., Any] = _tensor
    how: tuple[Any, ...]
    if issubclass(cls, Parameter):
        make, how = _parameter, (x.detach(), grad, hooks)
    elif x.is_meta:
        make, how = _meta, (x.dtype, tuple(x.shape), x.stride(), grad)
    else:
        if any(step < 0 for step in x.stride()):  # which PyTorch does not have
            x = x.detach().clone()
        how = (storage_of(x), x.storage_offset(), tuple(x.shape), x.stride(), grad, hooks)
    if cls is Parameter and attributes:
        return _parameter_with_state, (*how, attributes)
    return (_of_class, (make, cls, how, attributes)) if attributes or cls not in (Tensor, Parameter) else (make, how)


class _Pickler(pickle._Pickler):  # that in Python, as the one in C looks names up before it writes them
    """Pickles objects that torch.load(weights_only=True) accepts. Keeps the storages that it finds."""

    dispatch: ClassVar[dict[type, Callable[[Any, Any], None]]]
    write: Callable[[bytes], Any]
    memoize: Callable[[Any], None]

    def __init__(self, memory: io.BytesIO):
        super().__init__(memory, protocol=2)
        self.stored: dict[Storage, _Stored] = {}

    def persistent_id(self, obj: Any) -> Any:
        return obj.reference if type(obj) is _Stored else None

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in (Tensor, Parameter) or getattr(obj, "_in_coordinates", False) is True:
            return rebuild_call(obj, self.storage_of)
        if kind is Size:
            return Size, (tuple(obj),)
        if kind.__name__ == "Layout" and kind.__module__.endswith("compat.placeholders"):
            return _layout, (f"torch.{obj.name}",)
        if kind is bytes:
            return codecs.encode, (obj.decode("latin1"), "latin1")
        if kind in self.dispatch or kind in (OrderedDict, Counter, Device, complex, _Stored):
            return NotImplemented
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        more = "save its state_dict()" if hasattr(obj, "state_dict") else "convert it first"
        raise pickle.PicklingError(
            f"save: format='torch': {name} is no tensor, number, string or container that torch.load() takes; {more}"
        )

    def storage_of(self, x: Tensor) -> _Stored:
        storage = x.untyped_storage()
        stored = self.stored.setdefault(storage, _Stored(storage, x.dtype, str(len(self.stored))))
        if stored.dtype is not x.dtype:
            raise pickle.PicklingError(
                f"save: format='torch' has no form for tensors of {stored.dtype} and {x.dtype} that share their memory"
            )
        return stored

    def save_global(self, obj: Any, name: Any = None) -> None:
        if obj not in NAME_OF:
            called = f"{obj.__module__}.{obj.__qualname__}"
            raise pickle.PicklingError(f"save: format='torch': torch.load() does not take {called}")
        self.name(obj, NAME_OF[obj])

    def name(self, obj: Any, name: tuple[str, str]) -> None:
        """Writes a name of PyTorch for obj."""
        self.write(pickle.GLOBAL + "{}\n{}\n".format(*name).encode())
        self.memoize(obj)


_Pickler.dispatch = {
    **{kind: pickle._Pickler.dispatch[kind] for kind in (type(None), bool, int, float, str, bytearray, tuple, list)},
    **{kind: pickle._Pickler.dispatch[kind] for kind in (dict, set)},
    **dict.fromkeys((type, type(_tensor), type(codecs.encode)), lambda self, obj: self.save_global(obj)),
    DType: lambda self, obj: self.name(obj, ("torch", obj.name)),
    _Kind: lambda self, obj: self.name(obj, ("torch", STORAGE_OF[obj.dtype])),
}


class Parts:
    """A file that torch.load() reads. PicklingError if obj holds something that torch.load() does not accept."""

    def __init__(self, obj: Any, kind: type[_Pickler] = _Pickler):
        memory = io.BytesIO()
        pickler = kind(memory)
        pickler.dump(obj)
        self.program, self.stored = memory.getvalue(), list(pickler.stored.values())

    def write_to(self, file: Any) -> None:
        counted: Any = _Counted(file)
        with zipfile.ZipFile(counted, "w") as archive:
            _add(archive, "data.pkl", len(self.program), lambda entry: entry.write(self.program))
            _add(archive, "byteorder", 6, lambda entry: entry.write(b"little"))
            for stored in self.stored:
                _add(archive, f"data/{stored.reference[2]}", stored.size, stored.write_to)
            _add(archive, "version", 2, lambda entry: entry.write(b"3\n"))


class _Counted:
    """A file to which zipfile writes in order; it may have write() only."""

    def __init__(self, file: Any):
        self.file, self.count = file, 0

    def write(self, data: Any) -> int:
        self.file.write(data)
        self.count += len(data)
        return len(data)

    def tell(self) -> int:
        return self.count

    def flush(self) -> None:
        pass


def _add(archive: zipfile.ZipFile, name: str, size: int, write_to: Callable[[Any], Any]) -> None:
    """An entry of the zip, not compressed, padded in its extra field so that its bytes are aligned."""
    info = zipfile.ZipInfo(f"{FOLDER}/{name}")
    info.file_size, large = size, size >= 1 << 30
    start = archive.start_dir + LOCAL.size + len(info.filename) + FIELD.size + (20 if large else 0)  # sizes of 64 bits
    info.extra = FIELD.pack(b"FB", -start % ALIGNMENT) + b"Z" * (-start % ALIGNMENT)  # as torch.save pads
    with archive.open(info, "w", force_zip64=large) as entry:
        write_to(entry)
