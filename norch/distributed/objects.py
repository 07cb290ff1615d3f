"""Collectives on objects that pickle can pickle. Pickles of other ranks are trusted: all ranks run one program."""

from __future__ import annotations

from typing import Any

from .._recording import unseen
from ..errors import ArgumentError
from .process_group import ProcessGroup, group_of

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]


def _begin(name: str, group: Any) -> ProcessGroup:
    found = group_of(group, name)
    unseen(f"{name} talks to other processes")
    found._compare(name)
    return found


def _fill(name: str, what: str, objects: Any, found: list[Any]) -> None:
    if not isinstance(objects, list) or len(objects) != len(found):
        given = len(objects) if isinstance(objects, list) else type(objects).__name__
        raise ArgumentError(f"{name}: {what} is a list of {len(found)}, not {given}")
    objects[:] = found


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Writes the obj of each rank into object_list, in the order of ranks."""
    found = _begin("all_gather_object", group)
    with found.watch("all_gather_object"):
        gathered = found.comm.allgather(obj)
    _fill("all_gather_object", "object_list", object_list, gathered)


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Writes into object_list what that of rank src has."""
    found = _begin("broadcast_object_list", group)
    with found.watch("broadcast_object_list"):
        given = found.comm.bcast(object_list, found._rank_of(src, "broadcast_object_list"))
    _fill("broadcast_object_list", "object_list", object_list, given)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None) -> None:
    """Writes the obj of each rank into the object_gather_list of rank dst; the others give None."""
    found = _begin("gather_object", group)
    with found.watch("gather_object"):
        gathered = found.comm.gather(obj, found._rank_of(dst, "gather_object"))
    if gathered is not None:
        _fill("gather_object", "object_gather_list", object_gather_list, gathered)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int = 0,
    group: Any = None,
) -> None:  # fmt: skip
    """Writes into scatter_object_output_list[0] this rank's object of the input list of rank src."""
    found = _begin("scatter_object_list", group)
    root = found._rank_of(src, "scatter_object_list")
    given = scatter_object_input_list if found.rank() == root else None
    if found.rank() == root and (not isinstance(given, list) or len(given) != found.size()):
        raise ArgumentError(
            f"scatter_object_list: the list of rank {src} has an object for each of {found.size()} ranks"
        )
    if not scatter_object_output_list:
        raise ArgumentError("scatter_object_list: scatter_object_output_list has room for one object")
    with found.watch("scatter_object_list"):
        scatter_object_output_list[0] = found.comm.scatter(given, root)
