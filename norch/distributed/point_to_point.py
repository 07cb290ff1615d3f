"""send() and recv(): tensors from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..tensor import Tensor
from .process_group import group_of
from .transfer import Bytes, Call, Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Sends tensor to rank dst, which receives it by recv(); returns when the tensor may be written to again."""
    call, to = _to_other("send", group, dst, group_dst)
    call("Send", Bytes(call, tensor).spec, to, tag)


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Nonblocking send()."""
    call, to = _to_other("isend", group, dst, group_dst)
    return call.begun("Send", Bytes(call, tensor).spec, to, tag)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Writes into tensor what rank src sends (None: any rank), and returns the number of the sender. ShapeError where
    the message has another number of bytes than the tensor. With NCCL tags are not compared, and src is required."""
    call, source = _to_other("recv", group, src, group_src)
    x = Bytes(call, tensor)
    status, source = call.link.status(), call.link.any_source("recv") if source < 0 else source
    call("Recv", x.spec, source, tag, status)
    sender, came = call.link.sender(status, source)
    if came not in (None, x.host.numel() * x.host.dtype.itemsize):
        raise ShapeError(f"recv: {came} bytes came for a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}")
    x.finish()
    return call.group.ranks[sender]


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Nonblocking recv()."""
    call, source = _to_other("irecv", group, src, group_src)
    x = Bytes(call, tensor)
    return call.begun("Recv", x.spec, call.link.any_source("irecv") if source < 0 else source, tag, done=[x])


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
    """Starts all operations, with NCCL as one call, so that their order does not matter; returns a Work for each.
    ArgumentError for none, or of several groups."""
    if not p2p_op_list or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ArgumentError("batch_isend_irecv: takes a list of P2POp, one or more")
    groups = [group_of(one.group, "batch_isend_irecv") for one in p2p_op_list]
    if any(one is not groups[0] for one in groups):
        raise ArgumentError("batch_isend_irecv: all of them are of one group")
    with groups[0]._together("batch_isend_irecv"):
        return [one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer) for one in p2p_op_list]
