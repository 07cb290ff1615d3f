"""Plain pickles of tensors (pickle.dump, joblib) as PyTorch has them: read and written where `torch` means norch.

A tensor is a call of torch._utils._rebuild_tensor_v2, and its storage a file of torch.save(), as before PyTorch 1.6, in
a call of torch.storage._load_from_bytes. A storage that several tensors share is pickled once. multiprocessing sends
the bytes by norch's own way, through shared memory.
"""

from __future__ import annotations

import io
import pickle
import sys
from functools import partial
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

import norch

from .._files import pytorch, pytorch_legacy
from ..serialization import MAGIC
from ..storage import Storage
from ..tensor import Tensor, adopt
from .placeholders import layout
from .typed_storage import TypedStorage

_rebuild_tensor_v2: Any = pytorch.NAMES["torch._utils", "_rebuild_tensor_v2"]
_rebuild_tensor: Any = pytorch.NAMES["torch._utils", "_rebuild_tensor"]
_rebuild_meta_tensor_no_storage: Any = pytorch.NAMES["torch._utils", "_rebuild_meta_tensor_no_storage"]
_rebuild_parameter: Any = pytorch.NAMES["torch._utils", "_rebuild_parameter"]
_rebuild_parameter_with_state: Any = pytorch.NAMES["torch._utils", "_rebuild_parameter_with_state"]

MACHINE = {
    "protocol_version": pytorch_legacy.VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    """A tensor of a subclass, or with attributes."""
    made = func(*args)
    if type(made) is not new_type:
        made = adopt(new_type, made.detach()).requires_grad_(made.requires_grad)
    if hasattr(new_type, "__setstate__"):
        made.__setstate__(state)
        return made
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(made, name, value)
    return made


def _load_from_bytes(b: bytes) -> Any:
    """The storage in a file of torch.save() that is part of a pickle."""
    made = norch.load(io.BytesIO(b), weights_only=False)
    return TypedStorage(wrap_storage=made, dtype=made.dtype) if isinstance(made, pytorch.Typed) else made


def _get_layout(name: str) -> Any:
    """A layout, by its text."""
    return layout(name.rpartition(".")[2])


# ---- writing -------------------------------------------------------------------------------------------------------

for (_module, _name), _function in pytorch.NAMES.items():  # by which a pickle finds them
    if isinstance(_function, FunctionType):
        _function.__module__, _function.__qualname__ = _module, _name

_stored: WeakValueDictionary[Storage, TypedStorage] = WeakValueDictionary()  # what is being pickled


class _Seen(TypedStorage):
    """A storage, as a further dtype, that another one is pickled for."""

    __slots__ = ("first",)
    first: TypedStorage

    def __reduce_ex__(self, protocol: Any) -> Any:
        held: Any = _Bytes(self.first)
        return partial(TypedStorage, wrap_storage=held, dtype=self.dtype, _internal=True), ()


class _Bytes:
    """The bytes of a storage that is pickled."""

    def __init__(self, storage: TypedStorage):
        self.storage = storage

    def __reduce__(self) -> Any:
        return getattr, (self.storage, "_untyped_storage")


def _stored_of(x: Any) -> TypedStorage:
    """The storage of a tensor: the same object for all that share it, so that a pickle has it once."""
    reduction = sys.modules.get("multiprocessing.reduction")
    if reduction is not None:
        for cls in (TypedStorage, _Seen):
            reduction.ForkingPickler.register(cls, _sent)
    storage = x.untyped_storage()
    first = _stored.get(storage)
    if first is None:
        first = _stored[storage] = TypedStorage(wrap_storage=storage, dtype=x.dtype)
    if first.dtype is x.dtype:
        return first
    seen = _Seen(wrap_storage=storage, dtype=x.dtype)
    seen.first = first
    return seen


def reduce_tensor(x: Any, protocol: Any) -> Any:
    """Tensor.__reduce_ex__."""
    if type(x).__reduce__ is not Tensor.__reduce__:  # of a class that has its own way
        return x.__reduce__()
    make, how = pytorch.taken_apart(x, _stored_of)
    return (_rebuild_from_type_v2 if make is pytorch._of_class else make), how


def reduce_storage(stored: TypedStorage, protocol: Any) -> Any:
    """TypedStorage.__reduce_ex__."""
    file = io.BytesIO()
    for part in (MAGIC, pytorch_legacy.VERSION, MACHINE):
        pickle.dump(part, file, 2)
    held: Any = pytorch._Stored(stored.untyped(), stored.dtype, "0")
    held.reference += (None,)  # it is no view of another storage
    pytorch._Pickler(file).dump(held)
    pickle.dump(["0"], file, 2)
    file.write(pytorch_legacy.COUNT.pack(held.size // stored.element_size()))
    held.write_to(file)
    return _load_from_bytes, (file.getvalue(),)


def _sent(stored: TypedStorage) -> Any:
    return _received, (stored.untyped(), stored.dtype)


def _received(storage: Storage, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


_rebuild_from_type_v2.__module__, _load_from_bytes.__module__ = "torch._tensor", "torch.storage"
