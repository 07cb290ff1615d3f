"""DistributedDataParallel: the same model on every rank, each with its own part of the batch.

Gradients are averaged in buckets (Li et al., PyTorch Distributed, VLDB 2020, section 3.2). A hook on each parameter
notes that its gradient is ready. When all gradients of a bucket are ready, it is summed over the ranks while backward
continues. Gradients are ready from the last layer to the first, so buckets take parameters in that order.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from .._package.recording import here, unseen
from ..autograd import is_grad_enabled, no_grad
from ..autograd.record import gradient_edge
from ..autograd.targets import reachable
from ..compat.pytree import tree_leaves
from ..dtype import int32
from ..errors import ArgumentError, Error, ShapeError
from ..nn.module import Module
from ..ops.create import empty, zeros
from ..tensor import Tensor
from . import collectives
from .process_group import ProcessGroup, group_of
from .watch import Note

_MIB = 1 << 20
_FIRST_BUCKET = _MIB  # bytes: small, so that the first sum begins early


def check_one_device(name: str, device_ids: Sequence[Any] | None) -> None:
    """ArgumentError for several device_ids."""
    if device_ids is not None and len(device_ids) > 1:
        raise ArgumentError(f"{name}: a module runs on one device, not on {len(device_ids)}: {list(device_ids)}")


class DistributedDataParallel(Module):
    """Calls module, and in backward() averages the gradients of its parameters over all ranks. The averages are the
    same on all ranks, bit for bit. At construction, rank 0 broadcasts its parameters and buffers.

    Each backward() through the outputs of a forward is averaged, in any order, also where several forwards come first.
    Parameters may be frozen, unfrozen and added between steps, on all ranks; a parameter that is added is broadcast.
    Where ranks average other parameters, or one of them calls backward() more often, all ranks raise an Error.

    broadcast_buffers       rank 0 broadcasts its buffers before each forward in training
    bucket_cap_mb           how many MiB of gradients are averaged at a time
    find_unused_parameters  parameters that the outputs do not depend on have a gradient of 0. False: the next forward
                            raises an Error that names them
    static_graph            unused parameters are searched in the first forward only
    device_ids              one device at most; likewise output_device

    The state dict has PyTorch's keys, "module.weight". PyTorch's other options are accepted and have no effect.

    >>> model = norch.nn.parallel.DistributedDataParallel(norch.nn.Linear(2, 1))
    >>> model(norch.ones(3, 2)).sum().backward()  # the mean of the gradients of all ranks
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        name = "DistributedDataParallel"
        check_one_device(name, device_ids)
        bucket_bytes = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MIB)
        if bucket_bytes <= 0:
            raise ArgumentError(f"{name}: bucket_cap_mb is {bucket_cap_mb}, and must be positive")
        if not any(p.requires_grad for p in module.parameters()):
            raise Error(f"{name}: no parameter of the module requires a gradient")
        self.init_sync = init_sync
        self.module = module
        self.process_group = group_of(process_group, name)
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters or static_graph
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self._check_same(module)
        if init_sync:
            self._broadcast([*module.parameters(), *module.buffers()])
        self._bucket_bytes = bucket_bytes
        self._make_reducer()

    def _make_reducer(self) -> None:
        self._parameters_then = [(p, p.requires_grad) for p in self.module.parameters()]
        named = [(key, p) for key, p in self.module.named_parameters() if p.requires_grad]
        self._reducer = _Reducer(
            named, self.process_group, self._bucket_bytes, self.find_unused_parameters, self.static_graph
        )
        self._unused: list[int] | None = None  # of a static graph, once it is known

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: without the group and the hooks; a copy belongs to the group of all ranks and sets
        its own hooks."""
        if self.process_group is not group_of(None, "DistributedDataParallel"):
            raise Error("DistributedDataParallel: a model of another group than that of all ranks cannot be copied")
        left_out = ("process_group", "_reducer", "_unused", "_parameters_then")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = group_of(None, "DistributedDataParallel")
        self._make_reducer()

    def _state_dict_of_rank(self) -> dict[str, Any]:
        """What checkpoint.save() writes on this rank: buffers of rank 0 only, which the next forward broadcasts."""
        state = self.state_dict()
        if self.process_group.rank() != 0:
            for name, _ in self.named_buffers():
                state.pop(name, None)
        return state

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What module returns."""
        if here.trace is not None and here.trace.is_joint:
            unseen("DistributedDataParallel averages gradients of what it calls; compile the module inside of it")
        averages = is_grad_enabled() and self.require_backward_grad_sync
        if averages:
            self._renew_reducer()
            averages = bool(self._reducer.parameters)
        if averages and self.training and self.broadcast_buffers:
            self._broadcast(list(self.module.buffers()))
        if averages:
            self._reducer.check_finished()
        outputs = self.module(*inputs, **kwargs)
        if averages:  # a further forward without a backward between changes nothing
            unused: Sequence[int] = ()
            if self.find_unused_parameters:
                if not self.static_graph or self._unused is None:
                    self._unused = self._reducer.unused_by(outputs)
                unused = self._unused
            self._reducer.forwarded(outputs, unused)
        return outputs

    def _renew_reducer(self) -> None:
        """Makes another reducer where parameters were frozen, unfrozen, added or replaced since it was made."""
        then, now = self._parameters_then, list(self.module.parameters())
        if len(then) == len(now) and all(p is q and p.requires_grad is grad for p, (q, grad) in zip(now, then)):
            return
        self._reducer.check_finished()
        earlier = {id(p) for p, _ in then}
        self._reducer.close()
        self._make_reducer()
        if self.init_sync:
            self._broadcast([p for p in now if id(p) not in earlier])

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which gradients accumulate without communication; the first backward of a forward after it
        averages their sums.

        >>> model = norch.nn.parallel.DistributedDataParallel(norch.nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     model(norch.ones(3, 2)).sum().backward()
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _check_same(self, module: Module) -> None:
        mine = [(key, tuple(p.shape), str(p.dtype)) for key, p in module.named_parameters()]
        all_of = self.process_group
        of_ranks = all_of.watch.run(("DistributedDataParallel",), all_of.comm.allgather, mine)
        for rank, theirs in zip(all_of.ranks, of_ranks, strict=True):
            for first, other in zip(of_ranks[0], theirs):
                if first != other:
                    raise ShapeError(
                        f"DistributedDataParallel: parameter {first[0]!r} of rank {all_of.ranks[0]} is "
                        f"{first[2]} {first[1]}; on rank {rank}, {other[0]!r} is {other[2]} {other[1]}"
                    )
            if len(theirs) != len(of_ranks[0]):
                raise ShapeError(
                    f"DistributedDataParallel: {len(of_ranks[0])} parameters on rank {all_of.ranks[0]}, "
                    f"{len(theirs)} on rank {rank}"
                )

    def _broadcast(self, tensors: list[Tensor]) -> None:
        for x in tensors:
            collectives.broadcast(x.detach(), self.process_group.ranks[0], self.process_group)


class _Bucket:
    """Some parameters of one dtype and device, and the buffer in which their gradients are summed."""

    def __init__(self, indices: list[int], parameters: list[Tensor]) -> None:
        self.indices, self.parameters = indices, parameters
        sizes = [p.numel() for p in parameters]
        self.buffer = empty(sum(sizes), dtype=parameters[0].dtype, device=parameters[0].device)
        self.parts = [part.view(p.shape) for part, p in zip(self.buffer.split(sizes), parameters, strict=True)]
        self.missing = set(indices)
        self.work: collectives.Work | None = None


class _Reducer:
    """Averages gradients bucket by bucket. Sums begin in the order of the buckets, which is the same on all ranks."""

    def __init__(
        self,
        named: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        bucket_bytes: int,
        counts_unused: bool,
        is_static: bool,
    ) -> None:
        self.names, self.parameters = [name for name, _ in named], [p for _, p in named]
        self.group, self.counts_unused, self.is_static = group, counts_unused, is_static
        self.somewhere: set[int] | None = None  # parameters that have had a gradient on any rank
        self.buckets = [_Bucket(at, [self.parameters[i] for i in at]) for at in self._grouped(bucket_bytes)]
        self.bucket_of = {i: bucket for bucket in self.buckets for i in bucket.indices}
        self.averages = False
        self.begun = 0  # the number of buckets whose sums have started
        self.used: set[int] = set()  # parameters whose gradients are in their buckets
        self.part_of = {i: part for b in self.buckets for i, part in zip(b.indices, b.parts, strict=True)}
        ready = weakref.WeakMethod(self._ready)  # the hooks of the parameters must not keep this object alive
        self.handles = [
            p.register_post_accumulate_grad_hook(partial(_tell, ready, i)) for i, p in enumerate(self.parameters)
        ]
        self.done = 0  # averages since the last forward
        text = ", ".join(f"{name} {tuple(p.shape)}" for name, p in named)
        self.layout = f"{len(named)} parameters of DistributedDataParallel ({zlib.crc32(text.encode()):08x})"

    def _grouped(self, bucket_bytes: int) -> list[list[int]]:
        """The indices of the parameters, from the last to the first, divided into buckets."""
        groups: list[list[int]] = []
        kind, left = None, 0
        for i, p in reversed(list(enumerate(self.parameters))):
            of = p.dtype, p.device
            size = p.numel() * p.dtype.itemsize
            if of != kind or size > left:
                left = bucket_bytes if groups else min(_FIRST_BUCKET, bucket_bytes)
                groups.append([])
            groups[-1].append(i)
            kind, left = of, left - size
        return groups

    def close(self) -> None:
        """Leaves the parameters, to another reducer."""
        self.averages = False
        for handle in self.handles:
            handle.remove()

    def forwarded(self, outputs: Any, unused: Sequence[int]) -> None:
        """A forward is done: the next backward is averaged, and so is each other one that passes through outputs."""
        self.done = 0
        self.begin(unused)

        def entered(_: Any) -> None:
            if not self.averages:
                self.begin(unused)

        for x in tree_leaves(outputs):
            if isinstance(x, Tensor) and x.requires_grad and not x.is_leaf:
                x.register_hook(entered)

    def begin(self, unused: Sequence[int]) -> None:
        """Waits for the gradients of all parameters but those that are unused."""
        self._begin()
        if self.counts_unused:
            self.skip(unused)

    def _begin(self) -> None:
        self.averages, self.begun = True, 0
        self.used.clear()
        for bucket in self.buckets:
            bucket.missing, bucket.work = set(bucket.indices), None

    def check_finished(self) -> None:
        """Raises an Error if the last backward did not give all gradients."""
        lacking = [self.names[i] for bucket in self.buckets for i in sorted(bucket.missing)]
        if self.averages and self.used and lacking:
            self.averages = False
            more = ", ..." if len(lacking) > 10 else ""
            raise Error(
                f"DistributedDataParallel: {len(lacking)} parameters got no gradient in the last backward(), so that "
                f"the gradients of their buckets were not averaged: {', '.join(lacking[:10])}{more}; "
                "find_unused_parameters=True counts them as 0"
            )

    def unused_by(self, outputs: Any) -> list[int]:
        """The parameters that the tensors in outputs do not depend on."""
        roots = [node for x in tree_leaves(outputs) if isinstance(x, Tensor) and (node := gradient_edge(x)) is not None]
        used = {None, *reachable(roots)}
        return [i for i, p in enumerate(self.parameters) if gradient_edge(p) not in used]

    def skip(self, unused: Sequence[int]) -> None:
        """Marks parameters that will get no gradient as ready."""
        for i in unused:
            self.bucket_of[i].missing.discard(i)
            self.part_of[i].zero_()
        self._sum_what_is_there()

    def _ready(self, i: int) -> None:
        """The hook that backward calls when the gradient of parameter i is complete."""
        if not self.averages:
            return
        bucket = self.bucket_of[i]
        if i not in bucket.missing:
            raise Error(
                f"DistributedDataParallel: {self.names[i]} got two gradients after one forward; call the model "
                "again before the next backward()"
            )
        bucket.missing.discard(i)
        self.used.add(i)
        with no_grad():
            self.part_of[i].copy_(self.parameters[i].grad)  # type: ignore[arg-type]
        self._sum_what_is_there()

    def _sum_what_is_there(self) -> None:
        for bucket in self.buckets[: self.begun]:
            if bucket.work is not None:
                bucket.work._go_on()
        while self.begun < len(self.buckets) and not self.buckets[self.begun].missing:
            bucket = self.buckets[self.begun]
            note = Note(f"as bucket {self.begun} of {self.layout}, average {self.done + 1} after a forward")
            bucket.work = collectives.all_reduce_as(note, bucket.buffer, collectives.ReduceOp.AVG, self.group)
            self.begun += 1
        if self.begun == len(self.buckets):
            self._finish()

    def _finish(self) -> None:
        """Waits for the sums of all buckets, and writes the averages to the gradients."""
        self.averages = False
        self.done += 1
        somewhere = self._used_somewhere()
        for bucket in self.buckets:
            assert bucket.work is not None
            bucket.work.wait()
            bucket.work = None
            with no_grad():
                for i in somewhere.intersection(bucket.indices):
                    p, average = self.parameters[i], self.part_of[i]
                    if p.grad is None:
                        p.grad = average.clone()
                    else:
                        p.grad.copy_(average)

    def _used_somewhere(self) -> set[int]:
        """The parameters that have a gradient on any rank."""
        if not self.counts_unused:
            return self.used
        if self.is_static and self.somewhere is not None:
            return self.somewhere
        counts = zeros(len(self.parameters), dtype=int32, device=self.parameters[0].device)
        for i in self.used:
            counts[i] = 1
        collectives.all_reduce(counts, group=self.group)
        self.somewhere = {i for i, count in enumerate(counts.tolist()) if count}
        return self.somewhere


def _tell(ready: weakref.WeakMethod[Any], i: int, _: Tensor) -> None:
    note = ready()
    if note is not None:
        note(i)
