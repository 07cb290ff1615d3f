"""The devices to which load() moves the storages of a file, by map_location, which programs pass in four forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..device import device as Device
from ..storage import Storage


class Chosen:
    """A function, or a dict of locations, chooses for each storage. A file of torch.save says where each was, as "cpu"
    or "cuda:0"; of other files all were on the CPU."""

    def __init__(self, choose: Any):
        self.choose = choose
        self.error: Exception | None = None  # of the function: of the caller, not of the file

    def __call__(self, storage: Storage, location: str) -> Storage:
        if isinstance(self.choose, Mapping):
            return placed(Device(self.choose[location]), storage) if location in self.choose else storage
        try:
            return self._checked(self.choose(storage, location), storage)
        except Exception as error:
            self.error = error
            raise

    def _checked(self, moved: Any, storage: Storage) -> Storage:
        moved = storage if moved is None else moved.untyped() if hasattr(moved, "untyped") else moved
        if not isinstance(moved, Storage):
            raise TypeError(f"load: map_location returned a {type(moved).__name__}, not a storage or None")
        if moved.nbytes() != storage.nbytes():
            raise ValueError(f"load: map_location returned {moved.nbytes()} bytes for a storage of {storage.nbytes()}")
        return moved


def destination(map_location: Any) -> Device | Chosen | None:
    """The second argument of placed(), made from the argument of load()."""
    if map_location is None:
        return None
    if isinstance(map_location, bytes):
        map_location = map_location.decode()
    chosen = isinstance(map_location, Mapping) or (callable(map_location) and not isinstance(map_location, Device))
    return Chosen(map_location) if chosen else Device(map_location)


def placed(where: Device | Chosen | None, storage: Storage, location: str = "cpu") -> Storage:
    """The storage moves, not its tensors one by one: so they go on sharing it."""
    if where is None:
        return storage
    return where(storage, location) if isinstance(where, Chosen) else storage.to(where)
