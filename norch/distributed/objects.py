"""Collectives on objects that pickle can pickle. Pickles of other ranks are trusted: all ranks run one program."""

from __future__ import annotations

from typing import Any

from .._package.recording import unseen
from ..errors import ArgumentError
from .process_group import ProcessGroup, group_of
from .transfer import root_of

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]


def _begin(name: str, group: Any) -> ProcessGroup:
    members = group_of(group, name)
    unseen(f"{name} talks to other processes")
    members._compare(name)
    return members


def _fill(name: str, argument: str, objects: Any, found: list[Any]) -> None:
    if not isinstance(objects, list) or len(objects) != len(found):
        got = len(objects) if isinstance(objects, list) else type(objects).__name__
        raise ArgumentError(f"{name}: {argument} is a list of {len(found)}, not {got}")
    objects[:] = found


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Writes the obj of each rank into object_list, in the order of ranks.

    >>> found = [None] * norch.distributed.get_world_size()
    >>> norch.distributed.all_gather_object(found, {"loss": 0.5})
    >>> found[0]
    {'loss': 0.5}
    """
    name = "all_gather_object"
    members = _begin(name, group)
    _fill(name, "object_list", object_list, members.watch.run((name,), members.comm.allgather, obj))


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Copies the object_list of rank src, 0 by default, into the list of each rank.

    >>> objects = [{"epoch": 3}] if norch.distributed.get_rank() == 0 else [None]
    >>> norch.distributed.broadcast_object_list(objects, src=0)
    >>> objects
    [{'epoch': 3}]
    """
    name = "broadcast_object_list"
    members = _begin(name, group)
    root = root_of(members, name, src, group_src, 0)
    _fill(name, "object_list", object_list, members.watch.run((name,), members.comm.bcast, object_list, root))


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Writes the obj of each rank into the object_gather_list of rank dst, 0 by default. object_gather_list is None on
    other ranks.

    >>> rank, size = norch.distributed.get_rank(), norch.distributed.get_world_size()
    >>> norch.distributed.gather_object("done", [None] * size if rank == 0 else None, dst=0)
    """
    name = "gather_object"
    members = _begin(name, group)
    gathered = members.watch.run((name,), members.comm.gather, obj, root_of(members, name, dst, group_dst, 0))
    if gathered is not None:
        _fill(name, "object_gather_list", object_gather_list, gathered)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Writes into scatter_object_output_list[0] this rank's object of the input list of rank src, 0 by
    default.

    >>> found = [None]
    >>> parts = [f"part {to}" for to in range(norch.distributed.get_world_size())]
    >>> norch.distributed.scatter_object_list(found, parts, src=0)
    >>> found == [f"part {norch.distributed.get_rank()}"]
    True
    """
    name = "scatter_object_list"
    members = _begin(name, group)
    root = root_of(members, name, src, group_src, 0)
    objects = scatter_object_input_list if members.rank() == root else None
    if members.rank() == root and (not isinstance(objects, list) or len(objects) != members.size()):
        raise ArgumentError(
            f"{name}: the list of rank {members.ranks[root]} has an object for each of {members.size()} ranks"
        )
    if not scatter_object_output_list:
        raise ArgumentError(f"{name}: scatter_object_output_list has room for one object")
    scatter_object_output_list[0] = members.watch.run((name,), members.comm.scatter, objects, root)
