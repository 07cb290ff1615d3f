"""The call of a collective on this rank: checks, contiguous tensors for the link, and Work for asynchronous calls.

A link is mpi.Link or nccl.Link. norch.capture records each call of a link as a host call, which a replay repeats
between the library calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._binding.library import lib
from .._package.recording import here, unseen
from .._tensor.handle import meta_of
from ..autograd import no_grad
from ..dtype import bfloat16, bool_, float16, float32, uint8
from ..errors import ArgumentError, DeviceError, DTypeError, Error, ShapeError
from ..ops.create import empty
from ..tensor import Tensor
from .process_group import ProcessGroup, group_of
from .watch import Note, described

_OPS = ("sum", "avg", "product", "min", "max")
_abandoned: list[Work] = []  # dropped without wait(): their memory is still read or written
_failed: list[Any] = []  # what calls that differ between ranks may still read or write


def _aside(step: Callable[[], Any]) -> Any:
    """Calls step() unrecorded: the link handles its events and streams itself."""
    return lib.norch_unobserved(step) if lib.norch_recording() else step()


class _Spec(list[Any]):
    """[memory, elements or those of each rank, datatype] of a tensor, as links take it."""

    host: Tensor


class _Replayed:
    """Calls that a replay has started and not yet waited for."""

    request: Any = None


class Work:
    """A nonblocking call. Tensors that it reads or writes must not be changed or read until wait() returns. A Work
    that is dropped still completes.

    >>> x = norch.ones(2)
    >>> work = norch.distributed.all_reduce(x, async_op=True)
    >>> done = work.wait()  # x is not touched before
    """

    def __init__(self, call: Call, request: Any, arguments: Sequence[Any], done: Sequence[Any]) -> None:
        self._call, self._request, self._arguments, self._to_finish = call, request, arguments, done
        self._replayed: _Replayed | None = None
        self._trace = here.trace  # of the recording in which it was started
        self._done = False

    def is_completed(self) -> bool:
        """Whether the call is complete; then the tensors have the results. The call lets MPI make progress."""
        if not self._done:
            unseen("Python asks whether a collective is complete")
            if self._at(lambda: self._call.link.test(self._call.operation, self._request)):
                self._complete()
        return self._done

    def wait(self, timeout: Any = None) -> bool:
        """Waits until the call is complete, and returns True. timeout is ignored: init_process_group() sets it. With
        NCCL the current stream waits, not the host."""
        if not self._done:
            link, operation = self._call.link, self._call.operation
            self._at(lambda: link.wait(operation, self._request))
            if here.trace is not None and self._replayed is not None and here.trace is self._trace:
                slot = self._replayed
                here.trace.unfinished.discard(self)
                self._call.record(
                    "wait", self._arguments, self._to_finish, lambda _: link.wait(operation, slot.request)
                )
            elif here.trace is not self._trace:
                unseen(f"{operation[0]} was begun outside of the function")
            self._complete()
        return True

    def _go_on(self) -> None:
        """Lets MPI make progress; a replay does so too."""
        if not self._done:
            link, operation = self._call.link, self._call.operation
            self._at(lambda: link.test(operation, self._request))
            if here.trace is not None and self._replayed is not None and here.trace is self._trace:
                slot = self._replayed
                self._call.record("test", (), (), lambda _: link.test(operation, slot.request))

    def _at(self, step: Callable[[], Any]) -> Any:
        """The result of a step. A call that has failed is over, and its memory is kept."""
        try:
            return _aside(step)
        except Error:
            self._done = True
            _failed.append((self._request, self._arguments, self._to_finish))
            raise

    def __del__(self) -> None:
        if not self._done:
            _abandoned.append(self)

    def _complete(self) -> None:
        self._done = True
        for x in self._to_finish:
            x.finish()
        self._arguments = self._to_finish = ()


class Call:
    """One call of a collective by this rank: checked and, with NORCH_DISTRIBUTED_DEBUG=1, compared with the other
    ranks'."""

    def __init__(
        self, name: str, group: Any, async_op: bool, *arguments: Any, shapes: bool = True, compare: bool = True
    ) -> None:
        self.name, self.async_op, self.group = name, async_op, group_of(group, name)
        self.link: Any = None  # that of the first tensor's device
        heads = [(meta_of(x) if shapes else x.dtype) if isinstance(x, Tensor) else x for x in arguments]
        heads = [x.lower() if type(x) is str else x for x in heads]
        self.operation: tuple[Any, ...] = (name, bool(async_op), *heads)  # it holds no memory
        if compare:
            self.group._compare(*self.operation)

    def __call__(self, method: str, *arguments: Any, done: Sequence[Any] = ()) -> Work | None:
        if self.async_op:
            return self.begun(method, *arguments, done=done)
        link, operation = self.link, self.operation
        if not lib.norch_recording():
            link.call(operation, method, *arguments)
        else:
            _aside(lambda: link.call(operation, method, *arguments))
            self.record(method, arguments, done, lambda tensors: link.call(operation, method, *tensors))
        for x in done:
            x.finish()
        return None

    def begun(self, method: str, *arguments: Any, done: Sequence[Any] = ()) -> Work:
        """Starts the call. The Work has the requests, and keeps the memory that is read or written."""
        _abandoned[:] = [work for work in _abandoned if not (here.trace is None and work.is_completed())]
        link, operation = self.link, self.operation
        work = Work(self, _aside(lambda: link.begin(operation, method, *arguments)), arguments, done)
        if lib.norch_recording():
            slot = work._replayed = _Replayed()

            def begin(tensors: Sequence[Any]) -> None:
                slot.request = link.begin(operation, method, *tensors)

            if self.record(f"begin {method}", arguments, done, begin):
                here.trace.unfinished.add(work)
        return work

    def record(
        self, step: str, arguments: Sequence[Any], done: Sequence[Any], run: Callable[[Sequence[Any]], Any]
    ) -> bool:
        """Adds run(arguments) to the recording in progress, to be called in each replay. False if there is none."""
        if here.trace is None or here.trace.is_joint:
            unseen(f"{self.name} talks to other processes")
            return False
        link, group, name = self.link, self.group, self.name
        specs = [x for x in arguments if isinstance(x, _Spec)]
        written = tuple(any(x.host is spec.host for spec in done) for x in specs)
        sizes = [x.host.numel() * x.host.dtype.itemsize for x in specs]
        # A spec without its memory: the recording must not keep the tensors, which a replay replaces.
        template = [list(x[1:]) if isinstance(x, _Spec) else None for x in arguments]
        plain = [None if isinstance(x, _Spec) else x for x in arguments]
        last: list[Any] = [None, None]  # addresses, and the arguments with them

        def again(addresses: tuple[int, ...]) -> None:
            group_of(group, name)
            if last[0] != addresses:
                buffers = iter([link.buffer(at, size) for at, size in zip(addresses, sizes, strict=True)])
                values = [
                    x if rest is None else [next(buffers), *rest] for x, rest in zip(plain, template, strict=True)
                ]
                last[:] = addresses, values
            run(last[1])

        here.trace.keep_alive.append(again)
        digest = f"{described(self.operation)} {step} {id(group)}"
        lib.norch_record_host_call(again, digest, tuple(x.host for x in specs), written)
        return True

    def on(self, x: Any) -> Any:
        """The link for a tensor; all tensors of a call go the same way."""
        link = self.group._link_of(checked(x, self.name), self.name)
        if self.link is None:
            self.link = link
        elif link is not self.link:
            raise DeviceError(f"{self.name}: its tensors lie on several devices, {x.device} among them")
        return link

    def anywhere(self) -> Call:
        """A call without tensors."""
        self.link = self.group._link_of(None, self.name)
        return self

    def root(self, rank: int | None, in_group: int | None, default: int | None = None) -> int:
        """The number in the group of a rank that is given by its number in the world, or by that in the group.
        ArgumentError for both, for neither where there is no default, and for a rank that is not in the group."""
        found = root_of(self.group, self.name, rank, in_group, default)
        self.operation = (*self.operation, Note(f"with rank {self.group.ranks[found]}"))
        return found

    def check_list(self, argument: str, tensors: Any, like: Tensor | None) -> None:
        """ArgumentError unless it is a tensor for each rank, of the dtype of `like`."""
        if not isinstance(tensors, (list, tuple)) or len(tensors) != self.group.size():
            got = len(tensors) if isinstance(tensors, (list, tuple)) else type(tensors).__name__
            raise ArgumentError(
                f"{self.name}: {argument} has a tensor for each of {self.group.size()} ranks, not {got}"
            )
        for x in tensors:
            if checked(x, self.name).dtype != (dtype := checked(like, self.name).dtype):
                raise DTypeError(f"{self.name}: {argument} has a tensor of {x.dtype} beside one of {dtype}")

    def one_list(self, argument: str, tensors: Any, root: int, like: Tensor) -> Sequence[Tensor] | None:
        """The list, on the rank that passes one, after checking that its tensors have as many elements as `like`."""
        if self.group.rank() != root:
            if tensors:
                raise ArgumentError(f"{self.name}: only rank {self.group.ranks[root]} has a {argument}")
            return None
        self.check_list(argument, tensors, like)
        for x in tensors:
            if x.numel() != like.numel():
                raise ShapeError(f"{self.name}: shapes {tuple(x.shape)} and {tuple(like.shape)} differ")
        return list(tensors)

    def check_parts(self, whole: Tensor, part: Tensor) -> None:
        """ShapeError unless `whole` is a `part` for each rank."""
        if checked(whole, self.name).dtype != checked(part, self.name).dtype:
            raise DTypeError(f"{self.name}: dtypes {whole.dtype} and {part.dtype} differ")
        if whole.numel() != part.numel() * self.group.size():
            raise ShapeError(
                f"{self.name}: shape {tuple(whole.shape)} is not one of {tuple(part.shape)} for each of "
                f"{self.group.size()} ranks"
            )


def checked(x: Any, name: str) -> Tensor:
    """x. TypeError unless it is a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a Tensor, not {type(x).__name__}")
    return x


def root_of(group: ProcessGroup, name: str, rank: int | None, in_group: int | None, default: int | None = None) -> int:
    """The result of Call.root()."""
    if rank is not None and in_group is not None:
        raise ArgumentError(f"{name}: a rank is named twice, as {rank} in the world and as {in_group} in the group")
    if in_group is None:
        if (rank := default if rank is None else rank) is None:
            raise ArgumentError(
                f"{name}: needs a rank: its number in the world, or group_src or group_dst in the group"
            )
        return group._rank_of(rank, name)
    if type(in_group) is not int or not 0 <= in_group < group.size():
        raise ArgumentError(f"{name}: rank {in_group!r} is not in a group of {group.size()}")
    return in_group


class _Host:
    """A tensor in the form that a link takes: contiguous, on the link's device. finish() copies the result back."""

    def __init__(self, x: Tensor, host: Tensor, datatype: Any, link: Any) -> None:
        self.x, self.host, self.datatype = x, host, datatype
        buffer = link.buffer(host._data_pointer, host.numel() * host.dtype.itemsize)
        self.spec = self._spec(buffer, host.numel())

    def parts(self, group: ProcessGroup) -> _Spec:
        """The spec for equal parts, one per rank, with the number of elements of a part."""
        return self._spec(self.spec[0], self.host.numel() // group.size())

    def _spec(self, buffer: Any, count: Any) -> _Spec:
        spec = _Spec((buffer, count, self.datatype))
        spec.host = self.host
        return spec

    def finish(self) -> None:
        """Copies the result into the tensor."""
        if self.host._address == self.x._address and self.host.is_cuda == self.x.is_cuda:
            self.x._bump()
        else:
            with no_grad():
                self.x.detach().copy_(self.host.reshape(self.x.shape))


class Bytes(_Host):
    """A tensor for a call that moves elements without arithmetic."""

    def __init__(self, call: Call, x: Tensor) -> None:
        link = call.on(x)
        host = link.placed(x, call.name)
        super().__init__(x, host, link.byte_type(host.dtype), link)


class Numbers(_Host):
    """A tensor for a call that combines elements."""

    def __init__(self, call: Call, x: Tensor, op: Any) -> None:
        name, link = call.name, call.on(x)
        how = op.lower() if isinstance(op, str) else None
        if how not in _OPS:
            raise ArgumentError(f"{name}: op is one of ReduceOp.{', '.join(_OPS).upper()}, not {op!r}")
        if how == "avg" and x.dtype.kind not in "fc":
            raise DTypeError(f"{name}: {x.dtype} has no average")
        if how in ("min", "max") and x.dtype.is_complex:
            raise DTypeError(f"{name}: {x.dtype} has no order")
        self.op = link.reduction(how, x.dtype, name)
        host = link.placed(x, name)
        if x.dtype is bool_:
            host = host.view(uint8)
        elif x.dtype in (float16, bfloat16):
            host = host.to(float32)
        elif x.dtype in link.widens:
            host = host.detach().to(link.widens[x.dtype])
        super().__init__(x, host, link.number_type(host.dtype, name), link)
        self.divisor = call.group.size() if link.divides(how) else 1

    def finish(self) -> None:
        """Copies the result into the tensor; divides a sum by the number of ranks for an average."""
        if self.divisor != 1:
            with no_grad():
                self.host.div_(self.divisor)
        super().finish()


class Joined(_Host):
    """Tensors, one per rank, for a call that moves them as one, concatenated."""

    def __init__(self, call: Call, xs: Sequence[Tensor]) -> None:
        self.xs = xs
        for x in xs:
            link = call.on(x)
        whole = empty(sum(x.numel() for x in xs), dtype=xs[0].dtype, device=link.device_for(xs[0]))
        super().__init__(whole, whole, link.byte_type(whole.dtype), link)
        self.whole, self.counts = whole, [x.numel() for x in xs]
        self.pieces = whole.split(self.counts)
        for part, x in zip(self.pieces, xs, strict=True):
            part.copy_(x.detach().reshape(-1))
        self.spec_by_rank = self._spec(self.spec[0], self.counts)

    def finish(self) -> None:
        """Copies the results into the tensors."""
        with no_grad():
            for part, x in zip(self.pieces, self.xs, strict=True):
                x.detach().copy_(part.reshape(x.shape))
