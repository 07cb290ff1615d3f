"""Checkpoints that all ranks write together, and any number of ranks reads.

A checkpoint is a folder: an index, and files that norch.save wrote, a part each. save() writes new parts beside those
of the previous checkpoint, then replaces the index atomically by a new one, and removes all
other parts. So a process that is killed at any moment leaves a complete checkpoint, the old one or the new one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .. import serialization
from .._package.exports import publish
from ..autograd import no_grad
from ..errors import ArgumentError, Error, ShapeError
from ..tensor import Tensor
from .process_group import ProcessGroup, group_of, is_initialized

__all__ = ["load", "save"]
publish(globals())

T = TypeVar("T")

_INDEX = "index.norch"
_Path = tuple[Any, ...]  # the keys that lead to a value in nested dicts


def save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str], process_group: Any = None) -> None:
    """Writes nested dicts to the folder checkpoint_id, which all ranks see. All ranks call it. It works without a
    process group, too.

    A value that several ranks have must be the same on all. One of them writes it, so that all ranks write about the
    same number of bytes. A value that differs between ranks needs a key of its rank, such as f"random state of {rank}".
    A value that has state_dict(), as modules, optimizers and schedules do, is written as its state dict; each rank
    writes its part of a ZeroRedundancyOptimizer. An error of one rank is raised on all ranks, and the old checkpoint
    stays.

    >>> import tempfile
    >>> model, folder = norch.nn.Linear(2, 1), tempfile.TemporaryDirectory()
    >>> save({"model": model, "epoch": 3}, checkpoint_id=folder.name)
    >>> folder.cleanup()
    """
    group = _group(process_group, "checkpoint.save")
    folder = os.fspath(checkpoint_id)
    values = _together(group, lambda: _flat(state_dict, _state_of))
    of_ranks = _exchange(group, {path: _size(value) for path, value in values.items()}, "checkpoint.save")
    me = group.rank() if group else 0
    writers = _shared_out(of_ranks)
    number = _exchange(group, _next_number(folder), "checkpoint.save")[0]
    names = [f"part_{number}_{rank}.norch" for rank in range(len(of_ranks))]

    def write_part() -> None:
        os.makedirs(folder, exist_ok=True)
        mine = {path: value for path, value in values.items() if writers[path] == me}
        serialization.save(mine, os.path.join(folder, names[me]))

    def write_index() -> None:
        index = {"number": number, "parts": names, "where": {path: names[rank] for path, rank in writers.items()}}
        serialization.save(index, os.path.join(folder, _INDEX))
        for name in os.listdir(folder):
            if name.startswith("part_") and name not in names:
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(folder, name))

    _together(group, write_part)
    _together(group, write_index if me == 0 else lambda: None)


def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str], process_group: Any = None) -> None:
    """Reads what save() wrote into state_dict, in place: tensors are written to, other values replaced, and values that
    have load_state_dict() get everything that was saved of them.

    Each rank reads by itself. Error if the folder has no checkpoint, or not all of the keys; ShapeError if a tensor has
    another shape. Then nothing has changed, except by load_state_dict() of earlier values.

    >>> import tempfile
    >>> folder, state = tempfile.TemporaryDirectory(), {"model": norch.nn.Linear(2, 1), "epoch": 0}
    >>> save({"model": norch.nn.Linear(2, 1), "epoch": 3}, checkpoint_id=folder.name)
    >>> load(state, checkpoint_id=folder.name)
    >>> state["epoch"]
    3
    >>> folder.cleanup()
    """
    folder = os.fspath(checkpoint_id)
    where: dict[_Path, str] = _index(folder)["where"]
    parts = _Parts(folder, where)
    values = _flat(state_dict)
    objects = {path: value for path, value in values.items() if hasattr(value, "load_state_dict")}
    wanted = {path: value for path, value in values.items() if path not in objects}
    loaded = {path: parts.read(path) for path in wanted}
    for path, value in wanted.items():
        if isinstance(value, Tensor) and value.shape != (shape := getattr(loaded[path], "shape", None)):
            raise ShapeError(f"checkpoint.load: {_name(path)} has shape {tuple(value.shape)}, and was saved as {shape}")
    states = {path: parts.read_all(path) for path in objects}
    for path, value in wanted.items():
        if isinstance(value, Tensor):
            with no_grad():
                value.copy_(loaded[path])
        else:
            owner = state_dict
            for key in path[:-1]:
                owner = owner[key]
            owner[path[-1]] = loaded[path]
    for path, state in states.items():
        objects[path].load_state_dict(state)


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

    def read_all(self, at: _Path) -> Any:
        """The nested dict that was saved at a path."""
        paths = [path for path in self.where if path[: len(at)] == at]
        if not paths:
            raise Error(f"checkpoint.load: {_name(at)} was not saved in {self.folder}")
        objects: dict[Any, Any] = {}
        for path in paths:
            owner = objects
            for step in path[:-1]:
                owner = owner.setdefault(step, {})
            value = self.read(path)
            if isinstance(value, dict):  # an empty one: another rank may have saved entries of it
                owner.setdefault(path[-1], {})
            else:
                owner[path[-1]] = value
        for step in at:
            objects = objects[step]
        return objects


def _group(group: Any, name: str) -> ProcessGroup | None:
    return group_of(group, name) if group is not None or is_initialized() else None


def _exchange(group: ProcessGroup | None, value: Any, name: str) -> list[Any]:
    """The objects of all ranks, in the order of ranks."""
    if group is None:
        return [value]
    return list(group.watch.run((name,), group.comm.allgather, value))


def _together(group: ProcessGroup | None, step: Callable[[], T]) -> T:
    """Calls step() on all ranks. If it fails on one rank, all raise an Error, so that none waits for the failed one."""
    container: Any = None
    failure: Exception | None = None
    try:
        container = step()
    except Exception as error:  # noqa: BLE001
        failure = error
    text = f"{type(failure).__name__}: {failure}" if failure else None
    for rank, of_rank in enumerate(_exchange(group, text, "checkpoint.save")):
        if of_rank is not None:
            raise Error(f"checkpoint.save: rank {rank} failed: {of_rank}") from failure
    return cast("T", container)


def _state_of(value: Any) -> Any:
    part = getattr(value, "_state_dict_of_rank", None) or getattr(value, "state_dict", None)
    return part() if part is not None else value


def _flat(tree: dict[Any, Any], state_of: Callable[[Any], Any] = lambda x: x, path: _Path = ()) -> dict[_Path, Any]:
    """The values of nested dicts by their paths, each as state_of() makes it."""
    if not isinstance(tree, dict):
        raise TypeError(f"checkpoint: state_dict is a dict, not {type(tree).__name__}")
    leaves: dict[_Path, Any] = {}
    for key, value in tree.items():
        if not isinstance(key, (str, int)):
            raise ArgumentError(f"checkpoint: keys are texts or integers, not {key!r} in {_name(path)}")
        value = state_of(value)  # noqa: PLW2901
        inner = (*path, key)
        leaves.update(_flat(value, state_of, inner) if isinstance(value, dict) and value else {inner: value})
    return leaves


def _name(path: _Path) -> str:
    return repr(".".join(map(str, path)))


def _size(value: Any) -> int:
    return value.numel() * value.dtype.itemsize if isinstance(value, Tensor) else 8


def _shared_out(of_ranks: list[dict[_Path, int]]) -> dict[_Path, int]:
    """The rank that writes each value: of those that have it, the one with the fewest bytes to write so far. All ranks
    compute the same."""
    loads = [0] * len(of_ranks)
    sizes = {path: size for sizes in reversed(of_ranks) for path, size in sizes.items()}
    writers = {}
    for path in sorted(sizes, key=lambda path: (-sizes[path], tuple(map(str, path)))):
        rank = min((r for r, has in enumerate(of_ranks) if path in has), key=lambda r: loads[r])
        writers[path] = rank
        loads[rank] += sizes[path]
    return writers


def _next_number(folder: str) -> int:
    """A number that no file in the folder has, not even one of an unfinished checkpoint."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    used = [name.split("_")[1] for name in names if name.startswith("part_")]
    return 1 + max((int(number) for number in used if number.isdigit()), default=0)


def _index(folder: str) -> Any:
    path = os.path.join(folder, _INDEX)
    if not os.path.exists(path):
        raise Error(f"checkpoint.load: {folder} has no checkpoint: there is no {_INDEX}")
    index = serialization.load(path)
    if not isinstance(index, dict) or not isinstance(index.get("where"), dict):
        raise Error(f"checkpoint.load: {path} is no index of checkpoint.save()")
    return index
