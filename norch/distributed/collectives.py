"""Collectives on tensors. Each rank of the group calls the same one, with tensors of the same shapes and dtypes.

Elements go to MPI as they lie in memory, without pickling. What is not contiguous, or lies on a CUDA device, goes
through a copy on the host. float16 and bfloat16 are added in float32. Names and arguments are those of
torch.distributed; src and dst are numbers in the world, also in a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._buffers import memory_of
from .._recording import unseen
from ..autograd import no_grad
from ..dtype import bfloat16, bool_, float16, uint8
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ops.create import empty
from ..tensor import Tensor
from . import mpi
from .process_group import ProcessGroup, group_of

__all__ = [
    "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "gather", "irecv", "isend", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "scatter", "send",
]  # fmt: skip


class ReduceOp:
    """How all_reduce() and its kin combine elements. AVG: the sum by the number of ranks, of floating-point dtypes."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "product", "min", "max"


_MPI_OPS = {"sum": "SUM", "avg": "SUM", "product": "PROD", "min": "MIN", "max": "MAX"}
_BOOL_OPS = {"sum": "MAX", "max": "MAX", "product": "MIN", "min": "MIN"}  # or, and


_abandoned: list[Work] = []  # that nobody has waited for, and nobody can: MPI still reads or writes their memory


class Work:
    """A call that goes on. Tensors that it reads or writes must stay as they are until wait() has returned. One that
    is dropped goes on nevertheless."""

    def __init__(self, request: Any, finish: Callable[[], None], group: ProcessGroup, what: str) -> None:
        self._request, self._finish, self._group, self._what = request, finish, group, what
        self._done = False

    def is_completed(self) -> bool:
        """Whether all is done; asking lets MPI go on. What is done is written into the tensors."""
        if not self._done:
            with self._group.watch(self._what):
                completed = self._request.Test()
            if completed:
                self._complete()
        return self._done

    def wait(self, timeout: Any = None) -> bool:
        """Waits until all is done: True. timeout is that of init_process_group()."""
        if not self._done:
            with self._group.watch(self._what):
                self._request.Wait()
            self._complete()
        return True

    def __del__(self) -> None:
        if not self._done:
            _abandoned.append(self)

    def _complete(self) -> None:
        self._done = True
        self._finish()


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combines the tensors of all ranks, in place, the same bits on each.

    >>> norch.distributed.all_reduce(x)  # doctest: +SKIP
    """
    call = _Call("all_reduce", group, async_op, tensor, op)
    x = call.numbers(tensor, op)
    return call("Allreduce", mpi.mpi().IN_PLACE, x.spec, x.op, done=[x])


def broadcast(tensor: Tensor, src: int, group: Any = None, async_op: bool = False) -> Work | None:
    """Gives all ranks the tensor of rank src, in place."""
    call = _Call("broadcast", group, async_op, tensor, src)
    x = call.bytes(tensor)
    return call("Bcast", x.spec, call.group._rank_of(src, call.name), done=[x])


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combines the tensors of all ranks into that of rank dst, in place. Those of the others stay as they are."""
    call = _Call("reduce", group, async_op, tensor, op, dst)
    x, root = call.numbers(tensor, op), call.group._rank_of(dst, call.name)
    if call.group.rank() == root:
        return call("Reduce", mpi.mpi().IN_PLACE, x.spec, x.op, root, done=[x])
    return call("Reduce", x.spec, None, x.op, root)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Writes the tensor of each rank into tensor_list, which stands in the order of ranks. Ranks may have other shapes
    than this one's, if the list has them too."""
    call = _Call("all_gather", group, async_op, tensor, shapes=False)
    call.check_list("tensor_list", tensor_list, tensor)
    if tensor_list[call.group.rank()].numel() != tensor.numel():
        shapes = tuple(tensor_list[call.group.rank()].shape), tuple(tensor.shape)
        raise ShapeError("all_gather: the list has room for shape {} of this rank, whose tensor is {}".format(*shapes))
    x, out = call.bytes(tensor), _Joined(tensor_list)
    return call("Allgatherv", x.spec, out.spec_by_rank, done=[out])


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all ranks one behind the other into output_tensor, along the first axis or a new one."""
    call = _Call("all_gather_into_tensor", group, async_op, input_tensor)
    call.check_parts(output_tensor, input_tensor)
    x, out = call.bytes(input_tensor), call.bytes(output_tensor)
    return call("Allgather", x.spec, out.parts(call.group), done=[out])


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combines the lists of all ranks, and writes into output the part with this rank's number."""
    call = _Call("reduce_scatter", group, async_op, output, op, shapes=False)
    call.check_list("input_list", input_list, output)
    if input_list[call.group.rank()].numel() != output.numel():
        raise ShapeError(
            f"reduce_scatter: shape {tuple(input_list[call.group.rank()].shape)} does not fit into "
            f"{tuple(output.shape)}"
        )
    x, out = call.numbers(_Joined(input_list).whole, op), call.numbers(output, op)
    return call("Reduce_scatter", x.spec, out.spec, [y.numel() for y in input_list], x.op, done=[out])


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combines the inputs of all ranks, and writes into output the part with this rank's number."""
    call = _Call("reduce_scatter_tensor", group, async_op, output, op)
    call.check_parts(input, output)
    x, out = call.numbers(input, op), call.numbers(output, op)
    return call("Reduce_scatter_block", x.parts(call.group), out.spec, x.op, done=[out])


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Sends the tensor i of a list to rank i, and writes what comes from rank i into the tensor i of the other list."""
    call = _Call("all_to_all", group, async_op, shapes=False)
    call.check_list("output_tensor_list", output_tensor_list, input_tensor_list[0] if input_tensor_list else None)
    call.check_list("input_tensor_list", input_tensor_list, output_tensor_list[0])
    x, out = _Joined(input_tensor_list), _Joined(output_tensor_list)
    return call("Alltoallv", x.spec_by_rank, out.spec_by_rank, done=[out])


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """all_to_all() of the parts of input along its first axis into those of output; the sizes of the parts, or None
    for equal ones."""
    ranks = group_of(group, "all_to_all_single").size()
    parts, into = _split(input, input_split_sizes, ranks), _split(output, output_split_sizes, ranks)
    return all_to_all(into, parts, group, async_op)


def _split(x: Tensor, sizes: Sequence[int] | None, count: int) -> list[Tensor]:
    rows = _checked(x, "all_to_all_single").shape[0] if x.dim() else 0
    given = [rows // count] * count if sizes is None else list(sizes)
    if len(given) != count or sum(given) != rows or min(given) < 0:
        what = f"{given} rows" if sizes is not None else f"{count} equal parts"
        raise ShapeError(f"all_to_all_single: shape {tuple(x.shape)} is not made of {what} for {count} ranks")
    return list(x.detach().split(given))


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int = 0, group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Writes the tensors of all ranks into the gather_list of rank dst; the others give None."""
    call = _Call("gather", group, async_op, tensor, dst)
    root = call.group._rank_of(dst, call.name)
    x = call.bytes(tensor)
    listed = call.one_list("gather_list", gather_list, root, tensor)
    if listed is None:
        return call("Gather", x.spec, None, root)
    out = _Joined(listed)
    return call("Gather", x.spec, out.parts(call.group), root, done=[out])


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int = 0, group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Writes into tensor the part, with this rank's number, of the scatter_list of rank src; the others give None."""
    call = _Call("scatter", group, async_op, tensor, src)
    root, out = call.group._rank_of(src, call.name), call.bytes(tensor)
    listed = call.one_list("scatter_list", scatter_list, root, tensor)
    return call("Scatter", None if listed is None else _Joined(listed).parts(call.group), out.spec, root, done=[out])


def send(tensor: Tensor, dst: int, group: Any = None, tag: int = 0) -> None:
    """Sends tensor to rank dst, which receives it by recv(); waits until it may be written to again."""
    call, to = _to_other("send", group, dst)
    call("Send", call.bytes(tensor).spec, to, tag)


def isend(tensor: Tensor, dst: int, group: Any = None, tag: int = 0) -> Work:
    """send() that goes on while the program does."""
    call, to = _to_other("isend", group, dst)
    return call.begun("Isend", call.bytes(tensor).spec, to, tag)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0) -> int:
    """Writes into tensor what rank src sends, None: whichever rank does; the number of the sender. ShapeError where
    another number of bytes comes than the tensor has."""
    call, source = _to_other("recv", group, src)
    x, status = call.bytes(tensor), mpi.mpi().Status()
    call("Recv", x.spec, source, tag, status, done=[])
    if (came := status.Get_count(mpi.mpi().BYTE)) != x.host.numel() * x.host.dtype.itemsize:
        raise ShapeError(f"recv: {came} bytes came for a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}")
    x.finish()
    return call.group.ranks[status.Get_source()]


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0) -> Work:
    """recv() that goes on while the program does."""
    call, source = _to_other("irecv", group, src)
    x = call.bytes(tensor)
    return call.begun("Irecv", x.spec, source, tag, done=[x])


def _to_other(name: str, group: Any, rank: int | None) -> tuple[_Call, int]:
    call = _Call(name, group, False, compare=False)
    other = mpi.mpi().ANY_SOURCE if rank is None else call.group._rank_of(rank, name)
    if other == call.group.rank():
        raise ArgumentError(f"{name}: rank {rank} is this process")
    return call, other


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits until all ranks have come here."""
    return _Call("barrier", group, async_op)("Barrier")


# ---- a call, and tensors as MPI takes them -------------------------------------------------------


class _Call:
    """One call of a collective by this rank, checked, and compared with those of the others where that is asked for."""

    def __init__(
        self, name: str, group: Any, async_op: bool, *arguments: Any, shapes: bool = True, compare: bool = True
    ) -> None:
        self.name, self.async_op, self.group = name, async_op, group_of(group, name)
        unseen(f"{name} talks to other processes")
        words = [name, *("async" for _ in range(bool(async_op)))]
        for x in arguments:
            if not isinstance(x, Tensor):
                words.append(f"by {x}" if isinstance(x, str) else f"rank {x}")
            else:
                words.append(f"of {tuple(x.shape)} {x.dtype}" if shapes else f"of {x.dtype}")
        self.what = " ".join(words)
        if compare:
            self.group._compare(self.what)

    def __call__(self, method: str, *arguments: Any, done: Sequence[Any] = ()) -> Work | None:
        if self.async_op:
            return self.begun("I" + method.lower(), *arguments, done=done)
        with self.group.watch(self.what):
            getattr(self.group.comm, method)(*arguments)
        for x in done:
            x.finish()
        return None

    def begun(self, method: str, *arguments: Any, done: Sequence[Any] = ()) -> Work:
        """The same, going on: the Work has what there is to wait for, and holds the memory that is read or written."""

        def finish() -> None:
            for x in done:
                x.finish()

        _abandoned[:] = [work for work in _abandoned if not work.is_completed()]
        with self.group.watch(self.what):
            request = getattr(self.group.comm, method)(*arguments)
        return Work(request, finish, self.group, self.what)

    def numbers(self, x: Tensor, op: Any) -> _Numbers:
        """x as MPI computes with it."""
        return _Numbers(x, op, self.name, self.group.size())

    def bytes(self, x: Tensor) -> _Bytes:
        """x as MPI moves it."""
        return _Bytes(_checked(x, self.name))

    def check_list(self, what: str, tensors: Any, like: Tensor | None) -> None:
        """ArgumentError unless it is a tensor for each rank, of the dtype of `like`."""
        if not isinstance(tensors, (list, tuple)) or len(tensors) != self.group.size():
            given = len(tensors) if isinstance(tensors, (list, tuple)) else type(tensors).__name__
            raise ArgumentError(f"{self.name}: {what} has a tensor for each of {self.group.size()} ranks, not {given}")
        for x in tensors:
            if _checked(x, self.name).dtype != (found := _checked(like, self.name).dtype):
                raise DTypeError(f"{self.name}: {what} has a tensor of {x.dtype} beside one of {found}")

    def one_list(self, what: str, tensors: Any, root: int, like: Tensor) -> Sequence[Tensor] | None:
        """The list, on the rank that has one; its tensors have as many elements as `like`."""
        if self.group.rank() != root:
            if tensors:
                raise ArgumentError(f"{self.name}: only rank {self.group.ranks[root]} has a {what}")
            return None
        self.check_list(what, tensors, like)
        for x in tensors:
            if x.numel() != like.numel():
                raise ShapeError(f"{self.name}: shapes {tuple(x.shape)} and {tuple(like.shape)} differ")
        return list(tensors)

    def check_parts(self, whole: Tensor, part: Tensor) -> None:
        """ShapeError unless `whole` is a `part` for each rank."""
        if _checked(whole, self.name).dtype != _checked(part, self.name).dtype:
            raise DTypeError(f"{self.name}: dtypes {whole.dtype} and {part.dtype} differ")
        if whole.numel() != part.numel() * self.group.size():
            raise ShapeError(
                f"{self.name}: shape {tuple(whole.shape)} is not one of {tuple(part.shape)} for each of "
                f"{self.group.size()} ranks"
            )


def _checked(x: Any, name: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a Tensor, not {type(x).__name__}")
    return x


def _on_host(x: Tensor) -> Tensor:
    return x if x.is_contiguous() and not x.is_cuda else x.detach().cpu().contiguous()


class _Host:
    """A tensor as MPI takes it: contiguous, on the host. finish() writes what came into the tensor."""

    def __init__(self, x: Tensor, host: Tensor, datatype: Any) -> None:
        self.x, self.host, self.datatype = x, host, datatype
        self.spec = [memory_of(host, host.dtype.itemsize), host.numel(), datatype]

    def parts(self, group: ProcessGroup) -> list[Any]:
        """The same as equal parts, one a rank: MPI counts the elements of a part."""
        return [self.spec[0], self.host.numel() // group.size(), self.datatype]

    def finish(self) -> None:
        """Writes into the tensor what MPI has written."""
        if self.host._data == self.x._data and not self.x.is_cuda:
            self.x._bump()
        else:
            with no_grad():
                self.x.detach().copy_(self.host.reshape(self.x.shape))


class _Bytes(_Host):
    """A tensor whose elements move as they are."""

    def __init__(self, x: Tensor) -> None:
        host = _on_host(x)
        super().__init__(x, host, mpi.byte_type(host.dtype))


class _Numbers(_Host):
    """A tensor whose elements are combined."""

    def __init__(self, x: Tensor, op: Any, name: str, ranks: int) -> None:
        how = op.lower() if isinstance(op, str) else None
        if how not in _MPI_OPS:
            raise ArgumentError(f"{name}: op is one of ReduceOp.{', '.join(_MPI_OPS).upper()}, not {op!r}")
        is_bool = _checked(x, name).dtype is bool_
        if how == "avg" and x.dtype.kind not in "fc":
            raise DTypeError(f"{name}: {x.dtype} has no average")
        if how in ("min", "max") and x.dtype.is_complex:
            raise DTypeError(f"{name}: {x.dtype} has no order")
        host = _on_host(x)
        if is_bool:
            host = host.view(uint8)
        elif x.dtype in (float16, bfloat16):
            host = host.float()
        super().__init__(x, host, mpi.number_type(host.dtype, name))
        self.op = getattr(mpi.mpi(), (_BOOL_OPS if is_bool else _MPI_OPS)[how])
        self.divisor = ranks if how == "avg" else 1

    def finish(self) -> None:
        """Writes into the tensor what MPI has written, an average as the sum by the number of ranks."""
        if self.divisor != 1:
            self.host.div_(self.divisor)
        super().finish()


class _Joined(_Host):
    """Tensors one behind the other, a rank's each."""

    def __init__(self, xs: Sequence[Tensor]) -> None:
        self.xs = xs
        whole = empty(sum(x.numel() for x in xs), dtype=xs[0].dtype)
        super().__init__(whole, whole, mpi.byte_type(whole.dtype))
        self.whole, self.counts = whole, [x.numel() for x in xs]
        self.pieces = whole.split(self.counts)
        for part, x in zip(self.pieces, xs, strict=True):
            part.copy_(x.detach().reshape(-1))
        self.spec_by_rank = [self.spec[0], self.counts, self.datatype]

    def finish(self) -> None:
        """Writes to the tensors what MPI has written."""
        with no_grad():
            for part, x in zip(self.pieces, self.xs, strict=True):
                x.detach().copy_(part.reshape(x.shape))
