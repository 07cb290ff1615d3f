"""Collectives on objects that pickle can pickle. Pickles of other ranks are trusted: all ranks run one program."""

from __future__ import annotations

from typing import Any

from .._recording import unseen
from ..errors import ArgumentError
from .process_group import ProcessGroup, group_of
from .transfer import root_of

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


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Writes into object_list what that of rank src has, 0 by default."""
    found = _begin("broadcast_object_list", group)
    with found.watch("broadcast_object_list"):
        given = found.comm.bcast(object_list, root_of(found, "broadcast_object_list", src, group_src, 0))
    _fill("broadcast_object_list", "object_list", object_list, given)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Writes the obj of each rank into the object_gather_list of rank dst, 0 by default; the others give None."""
    found = _begin("gather_object", group)
    root = root_of(found, "gather_object", dst, group_dst, 0)
    with found.watch("gather_object"):
        gathered = found.comm.gather(obj, root)
    if gathered is not None:
        _fill("gather_object", "object_gather_list", object_gather_list, gathered)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Writes into scatter_object_output_list[0] this rank's object of the input list of rank src, 0 by
    default."""
    found = _begin("scatter_object_list", group)
    root = root_of(found, "scatter_object_list", src, group_src, 0)
    given = scatter_object_input_list if found.rank() == root else None
    if found.rank() == root and (not isinstance(given, list) or len(given) != found.size()):
        raise ArgumentError(
            f"scatter_object_list: the list of rank {found.ranks[root]} has an object for each of {found.size()} ranks"
        )
    if not scatter_object_output_list:
        raise ArgumentError("scatter_object_list: scatter_object_output_list has room for one object")
    with found.watch("scatter_object_list"):
        scatter_object_output_list[0] = found.comm.scatter(given, root)
