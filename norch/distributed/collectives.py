"""Collectives on tensors. Each rank of the group calls the same one, with tensors of the same shapes and dtypes. If MPI
moves them and ranks differ, all ranks raise an Error (agreement.py).

Elements are passed to MPI or NCCL in memory, without pickling (transfer.py). float16 and bfloat16 are added in float32.
Names and arguments are those of torch.distributed. src and dst are ranks in the world, also for a group; group_src and
group_dst are ranks in the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..errors import ShapeError
from ..tensor import Tensor
from .process_group import GroupMember, group_of
from .rendezvous import meet
from .transfer import Bytes, Call, Joined, Numbers, Work, checked
from .watch import Note

__all__ = [
    "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "gather", "monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "scatter",
]  # fmt: skip


class ReduceOp:
    """How all_reduce() and similar collectives combine elements. AVG: the sum divided by the number of ranks, for
    floating-point dtypes.

    >>> x = norch.tensor([2.0])
    >>> norch.distributed.all_reduce(x, op=norch.distributed.ReduceOp.AVG)
    """

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "product", "min", "max"
    BAND, BOR, BXOR, PREMUL_SUM = "band", "bor", "bxor", "premul_sum"  # by name only: collectives refuse them
    RedOpType = str


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combines the tensors of all ranks, in place. All ranks get the same bits.

    >>> x = norch.ones(2)
    >>> norch.distributed.all_reduce(x)
    >>> x[0].item() == norch.distributed.get_world_size()
    True
    """
    link = None if async_op else getattr(GroupMember.WORLD if group is None else group, "direct", None)
    if link is not None and link.all_reduce(tensor, op):
        return None
    call = Call("all_reduce", group, async_op, tensor, op)
    x = Numbers(call, tensor, op)
    return call("Allreduce", call.link.in_place, x.spec, x.op, done=[x])


def all_reduce_as(note: Note, tensor: Tensor, op: Any, group: Any) -> Work:
    """Begins an all_reduce() that ranks with another note do not share."""
    call = Call("all_reduce", group, True, tensor, op, note)
    x = Numbers(call, tensor, op)
    return call.begun("Allreduce", call.link.in_place, x.spec, x.op, done=[x])


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copies the tensor of rank src into the tensor of each rank.

    >>> x = norch.ones(2) * norch.distributed.get_rank()
    >>> norch.distributed.broadcast(x, src=0)
    >>> x
    tensor([0., 0.])
    """
    call = Call("broadcast", group, async_op, tensor)
    root, x = call.root(src, group_src), Bytes(call, tensor)
    return call("Bcast", x.spec, root, done=[x])


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Combines the tensors of all ranks into the tensor of rank dst, in place. The tensors of other ranks do not
    change.

    >>> x = norch.ones(2)
    >>> norch.distributed.reduce(x, dst=0)  # on rank 0 the number of ranks
    """
    call = Call("reduce", group, async_op, tensor, op)
    root, x = call.root(dst, group_dst), Numbers(call, tensor, op)
    if call.group.rank() == root:
        return call("Reduce", call.link.in_place, x.spec, x.op, root, done=[x])
    return call("Reduce", x.spec, None, x.op, root)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Writes the tensor of each rank into tensor_list, in the order of ranks. Ranks may have different shapes, if the
    tensors in the list have them too.

    >>> found = [norch.empty(2) for _ in range(norch.distributed.get_world_size())]
    >>> norch.distributed.all_gather(found, norch.ones(2))
    >>> found[0]
    tensor([1., 1.])
    """
    call = Call("all_gather", group, async_op, tensor, shapes=False)
    call.check_list("tensor_list", tensor_list, tensor)
    if tensor_list[call.group.rank()].numel() != tensor.numel():
        shapes = tuple(tensor_list[call.group.rank()].shape), tuple(tensor.shape)
        raise ShapeError("all_gather: the list has room for shape {} of this rank, whose tensor is {}".format(*shapes))
    x, out = Bytes(call, tensor), Joined(call, tensor_list)
    return call("Allgatherv", x.spec, out.spec_by_rank, done=[out])


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all ranks to output_tensor, concatenated along the first axis or stacked along a new
    one.

    >>> found = norch.empty(norch.distributed.get_world_size(), 2)
    >>> norch.distributed.all_gather_into_tensor(found, norch.ones(2))
    >>> found[0]
    tensor([1., 1.])
    """
    call = Call("all_gather_into_tensor", group, async_op, input_tensor)
    call.check_parts(output_tensor, input_tensor)
    x, out = Bytes(call, input_tensor), Bytes(call, output_tensor)
    return call("Allgather", x.spec, out.parts(call.group), done=[out])


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combines the lists of all ranks, and writes the part with this rank's number into output.

    >>> part, parts = norch.empty(2), [norch.ones(2) for _ in range(norch.distributed.get_world_size())]
    >>> norch.distributed.reduce_scatter(part, parts)
    """
    call = Call("reduce_scatter", group, async_op, output, op, shapes=False)
    call.check_list("input_list", input_list, output)
    if input_list[call.group.rank()].numel() != output.numel():
        raise ShapeError(
            f"reduce_scatter: shape {tuple(input_list[call.group.rank()].shape)} does not fit into "
            f"{tuple(output.shape)}"
        )
    x, out = Numbers(call, Joined(call, input_list).whole, op), Numbers(call, output, op)
    return call("Reduce_scatter", x.spec, out.spec, [y.numel() for y in input_list], x.op, done=[out])


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combines the inputs of all ranks, and writes the part with this rank's number into output.

    >>> part, parts = norch.empty(2), norch.ones(2 * norch.distributed.get_world_size())
    >>> norch.distributed.reduce_scatter_tensor(part, parts)
    """
    call = Call("reduce_scatter_tensor", group, async_op, output, op)
    call.check_parts(input, output)
    x, out = Numbers(call, input, op), Numbers(call, output, op)
    return call("Reduce_scatter_block", x.parts(call.group), out.spec, x.op, done=[out])


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Sends tensor i of the input list to rank i, and writes the tensor that rank i sends into tensor i of the output
    list.

    >>> size = norch.distributed.get_world_size()
    >>> found, given = [norch.empty(1) for _ in range(size)], [norch.tensor([float(to)]) for to in range(size)]
    >>> norch.distributed.all_to_all(found, given)  # on rank 2 each is 2
    """
    first = input_tensor_list[0] if input_tensor_list else None
    call = Call("all_to_all", group, async_op, first, shapes=False)
    call.check_list("output_tensor_list", output_tensor_list, first)
    call.check_list("input_tensor_list", input_tensor_list, output_tensor_list[0])
    x, out = Joined(call, input_tensor_list), Joined(call, output_tensor_list)
    return call("Alltoallv", x.spec_by_rank, out.spec_by_rank, done=[out])


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """all_to_all() of parts of input and output along their first axis. The split sizes are lists, or None for equal
    parts.

    >>> given = norch.arange(norch.distributed.get_world_size())
    >>> found = norch.empty_like(given)
    >>> norch.distributed.all_to_all_single(found, given)  # on rank 2 each is 2
    """
    ranks = group_of(group, "all_to_all_single").size()
    parts, into = _split(input, input_split_sizes, ranks), _split(output, output_split_sizes, ranks)
    return all_to_all(into, parts, group, async_op)


def _split(x: Tensor, sizes: Sequence[int] | None, count: int) -> list[Tensor]:
    rows = checked(x, "all_to_all_single").shape[0] if x.dim() else 0
    counts = [rows // count] * count if sizes is None else list(sizes)
    if len(counts) != count or sum(counts) != rows or min(counts) < 0:
        described = f"{counts} rows" if sizes is not None else f"{count} equal parts"
        raise ShapeError(f"all_to_all_single: shape {tuple(x.shape)} is not made of {described} for {count} ranks")
    return list(x.detach().split(counts))


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Writes the tensors of all ranks into the gather_list of rank dst, 0 by default. gather_list is None on other
    ranks.

    >>> rank, size = norch.distributed.get_rank(), norch.distributed.get_world_size()
    >>> found = [norch.empty(2) for _ in range(size)] if rank == 0 else None
    >>> norch.distributed.gather(norch.ones(2), found, dst=0)
    """
    call = Call("gather", group, async_op, tensor)
    root = call.root(dst, group_dst, 0)
    x = Bytes(call, tensor)
    listed = call.one_list("gather_list", gather_list, root, tensor)
    if listed is None:
        return call("Gather", x.spec, None, root)
    out = Joined(call, listed)
    return call("Gather", x.spec, out.parts(call.group), root, done=[out])


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Writes the part with this rank's number of the scatter_list of rank src, 0 by default, into tensor. scatter_list
    is None on other ranks.

    >>> rank, size = norch.distributed.get_rank(), norch.distributed.get_world_size()
    >>> part, parts = norch.empty(1), [norch.tensor([float(to)]) for to in range(size)]
    >>> norch.distributed.scatter(part, parts if rank == 0 else None, src=0)
    >>> part.item() == rank
    True
    """
    call = Call("scatter", group, async_op, tensor)
    root, out = call.root(src, group_src, 0), Bytes(call, tensor)
    listed = call.one_list("scatter_list", scatter_list, root, tensor)
    return call(
        "Scatter", None if listed is None else Joined(call, listed).parts(call.group), out.spec, root, done=[out]
    )


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits until all ranks have called it.

    >>> norch.distributed.barrier()
    """
    return Call("barrier", group, async_op).anywhere()("Barrier")


def monitored_barrier(
    group: Any = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """barrier() that ends no process. If ranks do not call it within timeout (by default the group's), rank 0 of the
    group raises an Error that names the first of them, or all of them with wait_all_ranks. The ranks that called it
    raise an Error too. ArgumentError for a group without MPI.

    >>> norch.distributed.monitored_barrier(timeout=10)
    """
    meet(group_of(group, "monitored_barrier"), timeout, wait_all_ranks)
