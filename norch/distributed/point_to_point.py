"""send() and recv(): tensors from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import DTYPES
from ..errors import ArgumentError, DTypeError, Error, ShapeError
from ..tensor import Tensor
from .process_group import group_of
from .transfer import Bytes, Call, Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Sends tensor to rank dst, which receives it by recv(). Returns when the tensor may be written to again.

    >>> if norch.distributed.get_world_size() > 1 and norch.distributed.get_rank() == 0:
    ...     norch.distributed.send(norch.ones(2), dst=1)
    """
    call, to = _to_other("send", group, dst, group_dst)
    x = Bytes(call, tensor)
    call("Send", x.spec, *call.link.head(x.host), to, tag)


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Nonblocking send().

    >>> if norch.distributed.get_world_size() > 1 and norch.distributed.get_rank() == 0:
    ...     work = norch.distributed.isend(norch.ones(2), dst=1)
    ...     done = work.wait()
    """
    call, to = _to_other("isend", group, dst, group_dst)
    x = Bytes(call, tensor)
    return call.begun("Send", x.spec, *call.link.head(x.host), to, tag)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Writes the tensor that rank src (None: any rank) sends into tensor, and returns the rank of the sender.
    ShapeError if the message has another number of elements than the tensor, DTypeError if it has another dtype; MPI
    has then written the part that fits. With NCCL neither these nor tags are compared, and src is required.

    >>> if norch.distributed.get_rank() == 1:
    ...     sender = norch.distributed.recv(norch.empty(2), src=0)
    """
    call, source = _to_other("recv", group, src, group_src)
    x = Received(call, tensor)
    status, source = call.link.status(), call.link.any_source("recv") if source < 0 else source
    try:
        call("Recv", x.spec, *x.head, source, tag, status)
    except Error:
        x.check()
        raise
    x.finish()
    return call.group.ranks[call.link.sender(status, source)]


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Nonblocking recv().

    >>> if norch.distributed.get_rank() == 1:
    ...     x = norch.empty(2)
    ...     work = norch.distributed.irecv(x, src=0)
    ...     done = work.wait()  # x is not read before
    """
    call, source = _to_other("irecv", group, src, group_src)
    x = Received(call, tensor)
    source = call.link.any_source("irecv") if source < 0 else source
    return call.begun("Recv", x.spec, *x.head, source, tag, done=[x])


class Received(Bytes):
    """A tensor for a message. finish() compares it with the message."""

    def __init__(self, call: Call, x: Tensor) -> None:
        super().__init__(call, x)
        self.name, self.head = call.name, call.link.head(self.host)

    def check(self) -> None:
        """ShapeError or DTypeError if the message was of other elements."""
        for head in self.head:
            dtype, count = DTYPES[head[0]], head[1]
            mine = f"a tensor of shape {tuple(self.x.shape)} and {self.x.dtype}"
            if dtype is not self.host.dtype:
                raise DTypeError(f"{self.name}: {count} elements of {dtype} came for {mine}")
            if count != self.host.numel():
                raise ShapeError(f"{self.name}: {count} elements came for {mine}")

    def finish(self) -> None:
        self.check()
        super().finish()


def _to_other(name: str, group: Any, rank: int | None, in_group: int | None) -> tuple[Call, int]:
    """The call, and the number of the other rank in the group; -1: any, in recv() only."""
    call = Call(name, group, False, compare=False)
    if rank is None and in_group is None and name in ("recv", "irecv"):
        return call, -1
    other = call.root(rank, in_group)
    if other == call.group.rank():
        raise ArgumentError(f"{name}: rank {call.group.ranks[other]} is this process")
    return call, other


class P2POp:
    """isend or irecv of a tensor, for batch_isend_irecv(). ArgumentError for another function.

    >>> norch.distributed.P2POp(norch.distributed.isend, norch.ones(2), 1)
    P2POp(isend, shape (2,), peer 1)
    """

    def __init__(
        self, op: Callable[..., Work], tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ArgumentError(f"P2POp: op is isend or irecv, not {op!r}")
        self.op, self.tensor, self.peer = op, tensor, peer
        self.group, self.tag, self.group_peer = group, tag, group_peer

    def __repr__(self) -> str:
        peer = self.peer if self.peer is not None else f"{self.group_peer} of its group"
        return f"P2POp({self.op.__name__}, shape {tuple(self.tensor.shape)}, peer {peer})"


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Starts all operations, with NCCL as one call, so that their order does not matter. Returns a Work for each.
    ArgumentError for an empty list, and for operations of several groups.

    >>> dist, x = norch.distributed, norch.empty(2)
    >>> after, before = ((dist.get_rank() + step) % dist.get_world_size() for step in (1, -1))
    >>> if dist.get_world_size() > 1:  # a ring: each rank sends to the next one
    ...     pair = [dist.P2POp(dist.isend, norch.ones(2), after), dist.P2POp(dist.irecv, x, before)]
    ...     done = [work.wait() for work in dist.batch_isend_irecv(pair)]
    """
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ArgumentError("batch_isend_irecv: takes a list of P2POp, one or more")
    groups = [group_of(op.group, "batch_isend_irecv") for op in p2p_op_list]
    if any(other is not groups[0] for other in groups):
        raise ArgumentError("batch_isend_irecv: all of them are of one group")
    with groups[0]._together("batch_isend_irecv"):
        return [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
