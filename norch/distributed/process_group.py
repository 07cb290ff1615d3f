"""Process groups: who takes part in a collective. One process is one rank; all of them are the world."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..errors import ArgumentError, DeviceError, Error
from . import mpi

__all__ = [
    "GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group",
    "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "new_group",
]  # fmt: skip

DEFAULT_TIMEOUT = 1800.0  # seconds, as PyTorch's


class ProcessGroup:
    """Ranks that compute together; made by init_process_group() and new_group().

    ranks: their numbers in the world, in the order of the group.
    """

    def __init__(self, comm: Any, ranks: Sequence[int], watch: mpi.Watch, check: bool) -> None:
        self.comm, self.ranks, self.watch = comm, tuple(ranks), watch
        self.position = {rank: at for at, rank in enumerate(self.ranks)}
        self.checks = comm.Dup() if check else None  # what ranks are about to call is compared on a channel of its own
        self.calls = 0

    def rank(self) -> int:
        """The number of this process in the group."""
        return int(self.comm.rank)

    def size(self) -> int:
        """How many processes take part."""
        return int(self.comm.size)

    def name(self) -> str:
        """ "mpi"."""
        return "mpi"

    def _rank_of(self, rank: int, name: str) -> int:
        """The number in the group of a process by its number in the world. ArgumentError if it is none of them."""
        at = self.position.get(rank) if type(rank) is int else None
        if at is None:
            raise ArgumentError(f"{name}: rank {rank!r} is not in the group of the ranks {list(self.ranks)}")
        return at

    def _compare(self, what: str) -> None:
        """Error on every rank where ranks are about to run different collectives (NORCH_DISTRIBUTED_DEBUG=1)."""
        self.calls += 1
        if self.checks is None:
            return
        with self.watch(what):
            calls = self.checks.allgather((self.calls, what))
        if any(call != calls[0] for call in calls):
            each = "; ".join(f"rank {rank}: {call}" for rank, (_, call) in zip(self.ranks, calls, strict=True))
            raise Error(f"{what.partition(' ')[0]}: the ranks do not call the same, call {self.calls}: {each}")

    def _free(self) -> None:
        """Gives the communicators back to MPI."""
        for comm in (self.checks, self.comm):
            if comm is not None:
                comm.Free()

    def __repr__(self) -> str:
        return f"ProcessGroup(backend='mpi', ranks={list(self.ranks)})"


class GroupMember:
    """What new_group() returns to processes that are not of the group."""

    NON_GROUP_MEMBER = object()
    WORLD: ProcessGroup | None = None  # the group of all, between init_process_group() and destroy_process_group()


class group:  # noqa: N801  (PyTorch's name)
    """`group.WORLD`: None, which stands for the group of all."""

    WORLD = None


_groups: list[ProcessGroup] = []


def is_available() -> bool:
    """True: the module is here. Whether MPI is, is_mpi_available() tells."""
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py and an MPI are installed. Asking starts MPI."""
    try:
        mpi.mpi()
    except ImportError:
        return False
    return True


def is_gloo_available() -> bool:
    """As is_mpi_available(): the backend "gloo" means MPI."""
    return is_mpi_available()


def is_nccl_available() -> bool:
    """False: tensors on CUDA devices go over the host and MPI."""
    return False


def is_initialized() -> bool:
    """Whether init_process_group() has been called."""
    return GroupMember.WORLD is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Starts the world of all processes that `mpiexec` or `srun` has started.

    backend: "mpi" or None; "gloo", which most programs for CPUs ask for, means MPI. DeviceError for "nccl". "cpu:gloo"
    and the like are taken for the CPU's part. init_method: None or "env://"; addresses are MPI's affair. timeout:
    seconds, or a timedelta, after which a collective that waits for other ranks ends all of them (30 minutes).
    world_size, rank: must be what MPI says, where they are given; so must WORLD_SIZE and RANK of the environment.
    An exception that nobody catches ends all ranks. Error if it was called before; ImportError without MPI. The other
    options are taken, and change nothing.

    >>> norch.distributed.init_process_group("mpi")  # doctest: +SKIP
    """
    if is_initialized():
        raise Error("init_process_group: called before; destroy_process_group() ends what it started")
    _check_backend(backend)
    if init_method not in (None, "env://"):
        raise ArgumentError(
            f"init_process_group: init_method is None or 'env://', not {init_method!r}: "
            "MPI's launcher connects the processes"
        )
    comm = mpi.world()
    for what, given, found in (("world_size", world_size, comm.size), ("rank", rank, comm.rank)):
        if given not in (-1, found):
            raise Error(f"init_process_group: {what} is {given}, but MPI says {found}")
    seconds = (
        timeout.total_seconds() if isinstance(timeout, timedelta) else DEFAULT_TIMEOUT if timeout is None else timeout
    )
    watch = mpi.Watch(float(seconds), comm.rank)
    mpi.end_all_on_failure()
    GroupMember.WORLD = _made(comm.Dup(), range(comm.size), watch)


def _check_backend(backend: str | None) -> None:
    parts = "mpi" if backend is None else backend
    if not isinstance(parts, str):
        raise TypeError(f"init_process_group: backend must be a str, not {type(backend).__name__}")
    for part in parts.lower().split(","):
        device, _, name = part.rpartition(":")
        if name == "nccl" and device in ("", "cpu"):
            raise DeviceError(
                "init_process_group: NCCL is not supported; backend='mpi' moves tensors of CUDA devices over the host"
            )
        if name not in ("mpi", "gloo", "nccl"):
            raise ArgumentError(f"init_process_group: backend is 'mpi' or 'gloo', which means MPI, not {backend!r}")


def _made(comm: Any, ranks: Sequence[int], watch: mpi.Watch) -> ProcessGroup:
    made = ProcessGroup(comm, ranks, watch, os.environ.get("NORCH_DISTRIBUTED_DEBUG", "0") not in ("", "0"))
    _groups.append(made)
    return made


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group; None: all of them. MPI itself ends with the process, and may be initialized anew until then."""
    found = group_of(group, "destroy_process_group")
    ended = list(_groups) if found is GroupMember.WORLD else [found]
    if found is GroupMember.WORLD:
        found.watch.end()
        GroupMember.WORLD = None
    for one in ended:
        _groups.remove(one)
        one._free()


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | float | None = None,
    backend: str | None = None,
    pg_options: Any = None,
) -> Any:
    """A group of some of the ranks, None: of all. Every process calls it, also those that are none of them, which get
    GroupMember.NON_GROUP_MEMBER. ArgumentError for ranks that do not exist, or stand twice.

    timeout is the world's, and backend MPI in any case.
    """
    everyone = group_of(None, "new_group")
    _check_backend(backend)
    chosen = list(everyone.ranks) if ranks is None else sorted(ranks)
    if len(set(chosen)) != len(chosen) or not set(chosen) <= set(everyone.ranks) or not chosen:
        raise ArgumentError(f"new_group: ranks are numbers of 0 to {everyone.size() - 1}, each once, not {ranks}")
    everyone._compare(f"new_group of {chosen}")
    of_group = everyone.comm.Get_group().Incl(chosen)
    comm = everyone.comm.Create(of_group)
    of_group.Free()
    return GroupMember.NON_GROUP_MEMBER if comm == mpi.mpi().COMM_NULL else _made(comm, chosen, everyone.watch)


def group_of(group: Any, name: str) -> ProcessGroup:
    """The group, None: that of all. Error before init_process_group(), or if this process is not in it."""
    found = GroupMember.WORLD if group is None else group
    if found is None:
        raise Error(f"{name}: call norch.distributed.init_process_group() first")
    if found is GroupMember.NON_GROUP_MEMBER:
        raise ArgumentError(f"{name}: this process is not in the group")
    if not isinstance(found, ProcessGroup) or found not in _groups:
        raise ArgumentError(f"{name}: {group!r} is not a group that stands")
    return found


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in the group; -1 if it is not in it."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else group_of(group, "get_rank").rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes the group has; -1 if this one is not in it."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else group_of(group, "get_world_size").size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """ "mpi"."""
    return group_of(group, "get_backend").name()


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The numbers in the world of the group's processes."""
    return list(group_of(group, "get_process_group_ranks").ranks)


def get_group_rank(group: ProcessGroup | None, global_rank: int) -> int:
    """The number in the group of the process that has the number global_rank in the world."""
    return group_of(group, "get_group_rank")._rank_of(global_rank, "get_group_rank")


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """The number in the world of the process that has the number group_rank in the group."""
    ranks = group_of(group, "get_global_rank").ranks
    if not 0 <= group_rank < len(ranks):
        raise ArgumentError(f"get_global_rank: rank {group_rank} of a group of {len(ranks)}")
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process among those of its machine: which GPU it takes. fallback_rank is not needed."""
    everyone = group_of(None, "get_node_local_rank")
    local = everyone.comm.Split_type(mpi.mpi().COMM_TYPE_SHARED)
    try:
        return int(local.rank)
    finally:
        local.Free()
