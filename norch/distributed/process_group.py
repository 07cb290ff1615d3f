"""Process groups: the ranks that take part in a collective. A rank is one process; all ranks are the world."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

from .._package.recording import unseen
from ..errors import ArgumentError, DeviceError, Error
from . import mpi, nccl
from .watch import Watch, described, end_all_on_failure, end_this, seconds_of

__all__ = [
    "GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group",
    "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "new_group",
]  # fmt: skip


class ProcessGroup:
    """Ranks that communicate. init_process_group() and new_group() make groups.

        ranks    the numbers of the ranks in the world, in the order of the group
        comm     the MPI communicator, or without MPI an object with its interface
        links    {"cpu" or "cuda": the transport of tensors of such devices}
        direct   the link for calls that are not first compared with those of other ranks

    >>> norch.distributed.new_group([0])
    ProcessGroup(backend='mpi', ranks=[0])
    """

    def __init__(self, comm: Any, ranks: Sequence[int], watch: Watch, links: dict[str, Any], check: bool) -> None:
        self.comm, self.ranks, self.watch, self.links = comm, tuple(ranks), watch, links
        self.position = {rank: at for at, rank in enumerate(self.ranks)}
        self.checks = comm.Dup() if check else None  # a communicator to compare the next calls of ranks
        self.calls = self.meetings = 0
        link = None if check else links.get("cpu")
        self.direct = link if isinstance(link, mpi.Link) else None  # for calls that are not compared

    def rank(self) -> int:
        """The number of this process in the group."""
        return int(self.comm.rank)

    def size(self) -> int:
        """The number of processes in the group."""
        return int(self.comm.size)

    def name(self) -> str:
        """ "mpi", "nccl", or "cpu:mpi,cuda:nccl"."""
        kinds = {device: "nccl" if isinstance(link, nccl.Link) else "mpi" for device, link in self.links.items()}
        if len(set(kinds.values())) == 1:
            return next(iter(kinds.values()))
        return ",".join(f"{device}:{kind}" for device, kind in kinds.items())

    def _link_of(self, x: Any, name: str) -> Any:
        """The link for a tensor, or for a call without one (None). DeviceError if the group has no link for the
        device.
        """
        device = "cpu" if x is None else x.device.type
        if x is None and device not in self.links:
            device = "cuda"
        if device not in self.links:
            raise DeviceError(
                f"{name}: a tensor on {x.device}, in a group of NCCL, which takes those of CUDA devices; "
                "backend='cpu:gloo,cuda:nccl' takes both"
            )
        return self.links[device]

    def _together(self, name: str) -> AbstractContextManager[None]:
        """A context whose sends and receives start as one call."""
        link = self.links.get("cuda")
        if not isinstance(link, nccl.Link):
            return nullcontext()
        unseen(f"{name} gives NCCL several calls as one")
        return link.together(name)

    def _rank_of(self, rank: int, name: str) -> int:
        """The number in the group of a process with this number in the world. ArgumentError if the process is not in
        the group.
        """
        at = self.position.get(rank) if type(rank) is int else None
        if at is None:
            raise ArgumentError(f"{name}: rank {rank!r} is not in the group of the ranks {list(self.ranks)}")
        return at

    def _compare(self, *operation: Any) -> None:
        """Raises an Error on every rank if ranks are about to run different collectives (NORCH_DISTRIBUTED_DEBUG=1)."""
        if self.checks is None:
            return
        self.calls += 1
        calls = self.watch.run(operation, self.checks.allgather, (self.calls, described(operation)))
        if any(call != calls[0] for call in calls):
            each = "; ".join(f"rank {rank}: {call}" for rank, (_, call) in zip(self.ranks, calls, strict=True))
            raise Error(f"{operation[0]}: the ranks do not call the same, call {self.calls}: {each}")

    def _free(self) -> None:
        """Frees the communicators."""
        self.direct = None
        for link in set(self.links.values()):
            link.free()
        for comm in (self.checks, self.comm):
            if comm is not None:
                comm.Free()

    def __repr__(self) -> str:
        return f"ProcessGroup(backend={self.name()!r}, ranks={list(self.ranks)})"


class GroupMember:
    """new_group() returns GroupMember.NON_GROUP_MEMBER to processes that are not in the group.

    >>> group = norch.distributed.new_group([0])  # on each rank
    >>> group is norch.distributed.GroupMember.NON_GROUP_MEMBER  # True where the rank is not 0
    False
    """

    NON_GROUP_MEMBER = object()
    WORLD: ProcessGroup | None = None  # the group of all, between init_process_group() and destroy_process_group()


class group:  # noqa: N801  (PyTorch's name)
    """`group.WORLD` is None, the group of all ranks.

    >>> norch.distributed.barrier(group=norch.distributed.group.WORLD)
    """

    WORLD = None


_groups: list[ProcessGroup] = []


def is_available() -> bool:
    """True. is_mpi_available() returns whether MPI is installed.

    >>> norch.distributed.is_available()
    True
    """
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py and an MPI are installed. The call initializes MPI.

    >>> norch.distributed.is_mpi_available()
    True
    """
    try:
        mpi.mpi()
    except ImportError:
        return False
    return True


def is_gloo_available() -> bool:
    """The same as is_mpi_available(), because the backend "gloo" means MPI.

    >>> norch.distributed.is_gloo_available()
    True
    """
    return is_mpi_available()


def is_nccl_available() -> bool:
    """Whether NCCL's library is installed.

    >>> backend = "nccl" if norch.cuda.is_available() and norch.distributed.is_nccl_available() else "mpi"
    """
    try:
        nccl.nccl()
    except ImportError:
        return False
    return True


def is_initialized() -> bool:
    """Whether init_process_group() has been called.

    >>> norch.distributed.is_initialized()
    True
    """
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
    """Starts the world of all processes that `mpiexec` or `srun` has started. An exception that nobody catches ends all
    ranks.

    backend is "mpi" or None, or "gloo", which most programs for CPUs request and which means MPI. "nccl" moves tensors
    of CUDA devices, and no others; "cpu:gloo,cuda:nccl" moves both. init_method is None, "env://", or "file://" and a
    path that all ranks see. With an MPI launcher, MPI finds the addresses. Without one, RANK and WORLD_SIZE (or rank
    and world_size) are enough for "nccl", whose id travels through the file. device_id is the CUDA device of this
    process (nccl.local_device()). timeout, in seconds or as a timedelta, is the time after which a collective that
    waits for other ranks ends all of them; the default is 30 minutes. world_size and rank, and the environment's
    WORLD_SIZE and RANK, must agree with MPI. Other options are accepted and ignored.

    Error if it was called before; ImportError without MPI, or NCCL; DeviceError without a CUDA device for "nccl".

    >>> norch.distributed.init_process_group("mpi")
    """
    name = "init_process_group"
    if is_initialized():
        raise Error(f"{name}: called before; destroy_process_group() ends what it started")
    kinds = _backends(backend)
    seconds = seconds_of(timeout, name)
    method = init_method or "env://"
    path = method.removeprefix("file://") if method.startswith("file://") else None
    if (path is None and method != "env://") or path == "":
        raise ArgumentError(
            f"{name}: init_method is None, 'env://' or 'file:///a/path', not {init_method!r}: norch opens no port, and "
            "MPI's launcher connects the processes"
        )
    if "mpi" in kinds.values() or (mpi.is_launched() and (path is None or is_mpi_available())):
        comm = mpi.world()
        for option, argument, actual in (("world_size", world_size, comm.size), ("rank", rank, comm.rank)):
            if argument not in (-1, actual):
                hint = "" if mpi.is_launched() else "; start the program with `mpiexec -n N python ...` or `srun`"
                raise Error(f"{name}: {option} is {argument}, but MPI says {actual}{hint}")
        watch = Watch(seconds, comm.rank, mpi.abort, mpi.mpi().Exception)
        end_all_on_failure(comm.size, comm.rank, mpi.abort)

        def device() -> int:
            return nccl.local_device(_local_rank(comm), device_id)

        with watch.ends_on_failure():
            GroupMember.WORLD = _of_mpi(comm.Dup(), range(comm.size), watch, kinds, device)
    else:
        size, me = _from_environment(world_size, rank)
        if size > 1 and path is None:
            raise ArgumentError(
                f"{name}: {size} processes and no launcher of MPI: they find each other through "
                "init_method='file:///a/path', a file that all of them see; or start them with "
                "`mpiexec -n N python ...` or `srun`"
            )
        local = os.environ.get("LOCAL_RANK") or os.environ.get("SLURM_LOCALID") or str(me)
        index = nccl.local_device(int(local) if local.isdecimal() else me, device_id)
        ident = nccl.id_through_file(str(path), size, me, seconds)
        watch = Watch(seconds, me, end_this)
        with watch.ends_on_failure():
            link = nccl.Link(ident, size, me, index, watch)
        end_all_on_failure(size, me, end_this)
        GroupMember.WORLD = _noted(ProcessGroup(nccl.Objects(link), range(size), watch, {"cuda": link}, _debugs()))
        if size > 1 and me == 0:
            os.remove(str(path))  # all ranks have joined


def _backends(backend: str | None) -> dict[str, str]:
    """The backend for each type of device: "mpi" or "nccl"."""
    parts = "mpi" if backend is None else backend
    if not isinstance(parts, str):
        raise TypeError(f"init_process_group: backend must be a str, not {type(backend).__name__}")
    kinds: dict[str, str] = {}
    for part in parts.lower().split(","):
        device, _, name = part.rpartition(":")
        if name not in ("mpi", "gloo", "nccl") or device not in ("", "cpu", "cuda"):
            raise ArgumentError(
                "init_process_group: backend is 'mpi', 'gloo', which means MPI, 'nccl', or 'cpu:gloo,cuda:nccl', "
                f"not {backend!r}"
            )
        if name == "nccl":
            if device == "cpu":
                raise DeviceError(
                    "init_process_group: NCCL takes tensors of CUDA devices; backend='gloo' those of the CPU"
                )
            kinds["cuda"] = "nccl"
        else:
            kinds["cpu"] = "mpi"
            kinds.setdefault("cuda", "mpi")
    return kinds


def _from_environment(size: int, rank: int) -> tuple[int, int]:
    """World size and rank, from the arguments or from WORLD_SIZE and RANK. A process without either is a world of one.
    ArgumentError for values that are no numbers, or that do not fit each other.
    """
    numbers = []
    for argument, key, alone in ((size, "WORLD_SIZE", 1), (rank, "RANK", 0)):
        text = os.environ.get(key, "")
        if text and not text.isdecimal():
            raise ArgumentError(f"init_process_group: {key} is {text!r}, and must be a number")
        wanted = int(text) if text else None
        if argument != -1 and wanted not in (None, argument):
            raise Error(f"init_process_group: {key.lower()} is {argument}, but {key} of the environment is {wanted}")
        numbers.append(argument if argument != -1 else wanted if wanted is not None else alone)
    if not 0 <= numbers[1] < numbers[0]:
        raise ArgumentError(f"init_process_group: rank {numbers[1]} of a world of {numbers[0]}")
    return numbers[0], numbers[1]


def _debugs() -> bool:
    return os.environ.get("NORCH_DISTRIBUTED_DEBUG", "0") not in ("", "0")


def _noted(process_group: ProcessGroup) -> ProcessGroup:
    _groups.append(process_group)
    return process_group


def _of_mpi(comm: Any, ranks: Sequence[int], watch: Watch, kinds: dict[str, str], device: Any) -> ProcessGroup:
    """A group over an MPI communicator. device() returns the index of this rank's CUDA device."""
    link: Any = mpi.Link(comm, ranks, watch)
    links: dict[str, Any] = {place: link for place, kind in kinds.items() if kind == "mpi"}
    if kinds.get("cuda") == "nccl":
        found = device()
        ident = comm.bcast(nccl.unique_id() if comm.rank == 0 else None)
        links["cuda"] = nccl.Link(ident, comm.size, comm.rank, found, watch)
    return _noted(ProcessGroup(comm, ranks, watch, links, _debugs()))


def _local_rank(comm: Any) -> int:
    """The number of this process among the processes on its machine."""
    local = comm.Split_type(mpi.mpi().COMM_TYPE_SHARED)
    try:
        return int(local.rank)
    finally:
        local.Free()


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group, or all groups if it is None. MPI ends with the process; until then a new world may be initialized.

    >>> group = norch.distributed.new_group([0])
    >>> norch.distributed.destroy_process_group(group)
    """
    found = group_of(group, "destroy_process_group")
    ended = list(_groups) if found is GroupMember.WORLD else [found]
    if found is GroupMember.WORLD:
        GroupMember.WORLD = None
    for member in ended:
        _groups.remove(member)
        member._free()
        if member.watch not in [other.watch for other in _groups]:
            member.watch.end()


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | float | None = None,
    backend: str | None = None,
    pg_options: Any = None,
) -> Any:
    """A group of some ranks, or of all for None. Every process calls it. Processes that are not in the group get
    GroupMember.NON_GROUP_MEMBER. timeout is that of init_process_group(), by default the world's. The backend is the
    world's. ArgumentError for ranks that do not exist, or occur twice.

    >>> group = norch.distributed.new_group([0])
    >>> norch.distributed.get_world_size(group)
    1
    """
    everyone = group_of(None, "new_group")
    if backend is not None:
        _backends(backend)
    seconds = seconds_of(timeout, "new_group", everyone.watch.timeout)
    try:
        chosen = list(everyone.ranks) if ranks is None else sorted(ranks)
    except TypeError:
        raise TypeError(f"new_group: ranks is a list of numbers, not {ranks!r}") from None
    if len(set(chosen)) != len(chosen) or not set(chosen) <= set(everyone.ranks) or not chosen:
        raise ArgumentError(f"new_group: ranks are numbers of 0 to {everyone.size() - 1}, each once, not {ranks}")
    everyone._compare("new_group", chosen)
    of_cuda: Any = everyone.links.get("cuda")
    if isinstance(everyone.comm, nccl.Objects):
        of_ranks = everyone.comm.allgather(nccl.unique_id() if everyone.rank() == chosen[0] else None)
        if everyone.rank() not in chosen:
            return GroupMember.NON_GROUP_MEMBER
        watch = everyone.watch.with_timeout(seconds)
        link = nccl.Link(of_ranks[chosen[0]], len(chosen), chosen.index(everyone.rank()), of_cuda.device.index, watch)
        return _noted(ProcessGroup(nccl.Objects(link), chosen, watch, {"cuda": link}, _debugs()))
    of_group = everyone.comm.Get_group().Incl(chosen)
    comm = everyone.comm.Create(of_group)
    of_group.Free()
    if comm == mpi.mpi().COMM_NULL:
        return GroupMember.NON_GROUP_MEMBER
    kinds = {place: "nccl" if isinstance(link, nccl.Link) else "mpi" for place, link in everyone.links.items()}
    watch = everyone.watch.with_timeout(seconds)
    return _of_mpi(comm, chosen, watch, kinds, lambda: of_cuda.device.index)


def group_of(group: Any, name: str) -> ProcessGroup:
    """The group, or the group of all ranks for None. Error before init_process_group(), or if this process is not in
    it.
    """
    found = GroupMember.WORLD if group is None else group
    if found is None:
        raise Error(f"{name}: call norch.distributed.init_process_group() first")
    if found is GroupMember.NON_GROUP_MEMBER:
        raise ArgumentError(f"{name}: this process is not in the group")
    if not isinstance(found, ProcessGroup) or found not in _groups:
        raise ArgumentError(f"{name}: {group!r} is not a group that stands")
    return found


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in the group; -1 if it is not in it.

    >>> if norch.distributed.get_rank() == 0:
    ...     print("said once")
    said once
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else group_of(group, "get_rank").rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes in the group; -1 if this process is not in it.

    >>> share = 64 // norch.distributed.get_world_size()
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else group_of(group, "get_world_size").size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """ "mpi", "nccl", or "cpu:mpi,cuda:nccl".

    >>> norch.distributed.get_backend()
    'mpi'
    """
    return group_of(group, "get_backend").name()


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The numbers in the world of the group's processes.

    >>> norch.distributed.get_process_group_ranks()
    [0]
    """
    return list(group_of(group, "get_process_group_ranks").ranks)


def get_group_rank(group: ProcessGroup | None, global_rank: int) -> int:
    """The number in the group of the process that has the number global_rank in the world.

    >>> group = norch.distributed.new_group([0])
    >>> norch.distributed.get_group_rank(group, 0)
    0
    """
    return group_of(group, "get_group_rank")._rank_of(global_rank, "get_group_rank")


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """The number in the world of the process that has the number group_rank in the group.

    >>> group = norch.distributed.new_group([0])
    >>> norch.distributed.get_global_rank(group, 0)
    0
    """
    ranks = group_of(group, "get_global_rank").ranks
    if not 0 <= group_rank < len(ranks):
        raise ArgumentError(f"get_global_rank: rank {group_rank} of a group of {len(ranks)}")
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process among the processes on its machine, by which it chooses a GPU. fallback_rank is not
    needed.

    >>> if norch.cuda.is_available():
    ...     norch.cuda.set_device(norch.distributed.get_node_local_rank())
    """
    everyone = group_of(None, "get_node_local_rank")
    if isinstance(everyone.comm, nccl.Objects):
        hosts = everyone.comm.allgather(socket.gethostname())
        return hosts[: everyone.rank()].count(hosts[everyone.rank()])
    return _local_rank(everyone.comm)
