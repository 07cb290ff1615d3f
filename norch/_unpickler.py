"""Unpicklers of files that hold tensors: one makes tensors, numbers, strings and containers only, the other trusts."""

from __future__ import annotations

import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from typing import Any, ClassVar

from .device import device as Device  # noqa: N812
from .storage import Storage, restored
from .tensor import Tensor

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


class Refusal(pickle.UnpicklingError):
    """What a file asks for is not done."""


class TrustingUnpickler(pickle.Unpickler):
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
