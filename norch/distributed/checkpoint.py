"""Checkpoints that all ranks write together, and any number of ranks reads.

A checkpoint is a folder: an index, and files that norch.save wrote, a part each. save() writes new parts beside those
that are there, then puts a new index in the place of the old one, in one step of the file system, and removes all
other parts: a process that is killed at any moment leaves a whole checkpoint, the old one or the new one.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from .. import serialization
from .._exports import publish
from ..autograd import no_grad
from ..errors import ArgumentError, Error, ShapeError
from ..tensor import Tensor
from .process_group import ProcessGroup, group_of, is_initialized

__all__ = ["load", "save"]
publish(globals())

_INDEX = "index.norch"
_Path = tuple[Any, ...]  # the keys that lead to a value in nested dicts


def save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str], process_group: Any = None) -> None:
    """Writes nested dicts to the folder checkpoint_id, which all ranks see. All ranks call it.

    A value that several ranks have is the same on all, and is written by one of them, so that each writes about as
    many bytes; what differs has a key of its own, as f"random state of {rank}". A value that has state_dict(), as
    modules, optimizers and schedules do, is written as that; of a ZeroRedundancyOptimizer each rank writes its part.
    Works without a process group, too. An error of one rank is raised on all ranks, and the old checkpoint stays.

    >>> save({"model": model, "optimizer": optimizer, "epoch": 3}, checkpoint_id="last")  # doctest: +SKIP
    """
    group = _group(process_group, "checkpoint.save")
    folder = os.fspath(checkpoint_id)
    values = _flat({key: _state_of(value) for key, value in state_dict.items()})
    of_ranks = _exchange(group, {path: _size(value) for path, value in values.items()}, "checkpoint.save")
    me = group.rank() if group else 0
    writers = _shared_out(of_ranks)
    number = _exchange(group, _next_number(folder), "checkpoint.save")[0]
    part = f"part_{number}_{me}.norch"
    failed = None
    try:
        os.makedirs(folder, exist_ok=True)
        mine = {path: value for path, value in values.items() if writers[path] == me}
        serialization.save(mine, os.path.join(folder, part))
    except Exception as error:  # noqa: BLE001  (the other ranks wait for this one's answer)
        failed = f"{type(error).__name__}: {error}"
    _raise_any(group, failed)
    if me == 0:
        names = [f"part_{number}_{rank}.norch" for rank in range(len(of_ranks))]
        index = {"number": number, "parts": names, "where": {path: names[rank] for path, rank in writers.items()}}
        try:
            serialization.save(index, os.path.join(folder, _INDEX))
            for name in os.listdir(folder):
                if name.startswith("part_") and name not in names:
                    with contextlib.suppress(OSError):
                        os.remove(os.path.join(folder, name))
        except Exception as error:  # noqa: BLE001
            failed = f"{type(error).__name__}: {error}"
    _raise_any(group, failed)


def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str], process_group: Any = None) -> None:
    """Reads what save() wrote into state_dict, in place: tensors are written to, other values replaced, and values
    that have load_state_dict() get all that was saved of them.

    Each rank reads by itself. Error where the folder has no checkpoint, or not all of the keys; ShapeError where a
    tensor has another shape. Nothing is changed then, but by load_state_dict() of values that come before.
    """
    folder = os.fspath(checkpoint_id)
    where: dict[_Path, str] = _index(folder)["where"]
    parts = _Parts(folder, where)
    objects = {key: value for key, value in state_dict.items() if hasattr(value, "load_state_dict")}
    wanted = _flat({key: value for key, value in state_dict.items() if key not in objects})
    found = {path: parts.read(path) for path in wanted}
    for path, value in wanted.items():
        if isinstance(value, Tensor) and value.shape != (shape := getattr(found[path], "shape", None)):
            raise ShapeError(f"checkpoint.load: {_name(path)} has shape {tuple(value.shape)}, and was saved as {shape}")
    states = {key: parts.read_all(key) for key in objects}
    for path, value in wanted.items():
        if isinstance(value, Tensor):
            with no_grad():
                value.copy_(found[path])
        else:
            owner = state_dict
            for key in path[:-1]:
                owner = owner[key]
            owner[path[-1]] = found[path]
    for key, state in states.items():
        objects[key].load_state_dict(state)


class _Parts:
    """The parts of a checkpoint, each read when it is first needed."""

    def __init__(self, folder: str, where: dict[_Path, str]) -> None:
        self.folder, self.where = folder, where
        self.loaded: dict[str, dict[_Path, Any]] = {}

    def read(self, path: _Path) -> Any:
        if path not in self.where:
            raise Error(f"checkpoint.load: {_name(path)} was not saved in {self.folder}")
        part = self.where[path]
        if part not in self.loaded:
            self.loaded[part] = serialization.load(os.path.join(self.folder, part))
        return self.loaded[part][path]

    def read_all(self, key: str) -> Any:
        """The nested dict that was saved at a key."""
        paths = [path for path in self.where if path[0] == key]
        if not paths:
            raise Error(f"checkpoint.load: {key!r} was not saved in {self.folder}")
        made: dict[Any, Any] = {}
        for path in paths:
            owner = made
            for step in path[:-1]:
                owner = owner.setdefault(step, {})
            owner[path[-1]] = self.read(path)
        return made[key]


def _group(group: Any, name: str) -> ProcessGroup | None:
    return group_of(group, name) if group is not None or is_initialized() else None


def _exchange(group: ProcessGroup | None, thing: Any, name: str) -> list[Any]:
    """The things of all ranks."""
    if group is None:
        return [thing]
    with group.watch(name):
        return list(group.comm.allgather(thing))


def _raise_any(group: ProcessGroup | None, failed: str | None) -> None:
    for rank, error in enumerate(_exchange(group, failed, "checkpoint.save")):
        if error is not None:
            raise Error(f"checkpoint.save: rank {rank} failed: {error}")


def _state_of(value: Any) -> Any:
    part = getattr(value, "_state_dict_of_rank", None) or getattr(value, "state_dict", None)
    return part() if part is not None else value


def _flat(tree: dict[Any, Any], path: _Path = ()) -> dict[_Path, Any]:
    found: dict[_Path, Any] = {}
    for key, value in tree.items():
        if not isinstance(key, (str, int)):
            raise ArgumentError(f"checkpoint.save: keys are texts or integers, not {key!r} in {_name(path)}")
        found.update(_flat(value, (*path, key)) if isinstance(value, dict) and value else {(*path, key): value})
    return found


def _name(path: _Path) -> str:
    return repr(".".join(map(str, path)))


def _size(value: Any) -> int:
    return value.numel() * value.dtype.itemsize if isinstance(value, Tensor) else 8


def _shared_out(of_ranks: list[dict[_Path, int]]) -> dict[_Path, int]:
    """Which rank writes a value: of those that have it the one that has least to write. The same on all ranks."""
    loads = [0] * len(of_ranks)
    sizes = {path: size for sizes in reversed(of_ranks) for path, size in sizes.items()}
    writers = {}
    for path in sorted(sizes, key=lambda path: (-sizes[path], tuple(map(str, path)))):
        rank = min((r for r, has in enumerate(of_ranks) if path in has), key=lambda r: loads[r])
        writers[path] = rank
        loads[rank] += sizes[path]
    return writers


def _next_number(folder: str) -> int:
    """The number of a checkpoint that has no file in the folder yet, be it one that was never finished."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    used = [name.split("_")[1] for name in names if name.startswith("part_")]
    return 1 + max((int(number) for number in used if number.isdigit()), default=0)


def _index(folder: str) -> Any:
    path = os.path.join(folder, _INDEX)
    if not os.path.exists(path):
        raise Error(f"checkpoint.load: {folder} has no checkpoint: there is no {_INDEX}")
    return serialization.load(path)
