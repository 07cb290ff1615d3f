"""What test_differ.py runs on each rank: ranks that call different collectives, or step DistributedDataParallel in
another order than once forward, once backward."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import norch
import norch.distributed as dist
from norch import nn
from norch.nn.parallel import DistributedDataParallel


def refused(call: Callable[[], Any], *words: str) -> None:
    """The call raises an Error with these words on this rank."""
    try:
        call()
    except norch.Error as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(f"rank {dist.get_rank()}: no error with {words}")


def collectives() -> None:
    """Shapes, dtypes, operations, roots, counts and functions that differ: an Error on all ranks that says what each
    calls, after which they go on."""
    me, n = dist.get_rank(), dist.get_world_size()
    odd = int(me == n - 1)  # the rank that differs

    def x(size: int = 3, dtype: Any = norch.float32) -> norch.Tensor:
        return norch.ones(size, dtype=dtype)

    other = (norch.float32, norch.float64)[odd]
    alike = (norch.float32, norch.int32)[odd]  # as many bytes
    kept = x(3 + odd)
    for call in (
        lambda: dist.all_reduce(kept),
        lambda: dist.all_reduce(x(dtype=other)),
        lambda: dist.all_reduce(x(dtype=alike)),
        lambda: dist.all_reduce(x(), ("sum", "max")[odd]),
        lambda: dist.all_reduce(norch.ones(2, 3) if odd else norch.ones(3, 2)),
        lambda: dist.all_reduce(norch.ones(2, 2).t() if odd else norch.ones(4)),  # not contiguous on one rank
        lambda: dist.all_reduce(x(3 + odd, norch.float16)),
        lambda: dist.broadcast(x(3 + odd), 0),
        lambda: dist.broadcast(x(dtype=alike), 0),
        lambda: dist.broadcast(x(), odd),
        lambda: dist.reduce(x(3 + odd), 0),
        lambda: dist.reduce(x(), odd),
        lambda: dist.reduce(x(), 0, ("sum", "min")[odd]),
        lambda: dist.all_gather([x(3 + odd) for _ in range(n)], x(3 + odd)),
        lambda: dist.all_gather([x(dtype=alike) for _ in range(n)], x(dtype=alike)),
        lambda: dist.all_gather_into_tensor(x(n * (3 + odd)), x(3 + odd)),
        lambda: dist.reduce_scatter(x(3 + odd), [x(3 + odd) for _ in range(n)]),
        lambda: dist.reduce_scatter(x(), [x() for _ in range(n)], ("sum", "max")[odd]),
        lambda: dist.reduce_scatter_tensor(x(3 + odd), x(n * (3 + odd))),
        lambda: dist.all_to_all([x(dtype=alike) for _ in range(n)], [x(dtype=alike) for _ in range(n)]),
        lambda: dist.gather(x(3 + odd), [x(3 + odd) for _ in range(n)] if me == 0 else None),
        lambda: dist.gather(x(dtype=alike), [x() for _ in range(n)] if me == 0 else None),
        lambda: dist.scatter(x(3 + odd), [x(3 + odd) for _ in range(n)] if me == 0 else None),
        lambda: dist.barrier() if odd else dist.broadcast(x(), 0),
        lambda: dist.all_reduce(x()) if odd else dist.broadcast(x(), 0),
    ):
        refused(call, "the ranks do not call the same", "rank 0: ", f"rank {n - 1}: ")
    assert kept.tolist() == [1.0] * (3 + odd)
    parts = [x(3) for _ in range(n)]
    refused(
        lambda: dist.all_to_all([x(3 + odd) for _ in range(n)], parts),
        f"all_to_all: rank 0 sends 3 elements to rank {n - 1}, which expects 4",
    )
    sizes = [2 + (rank == me) for rank in range(n)]  # sizes that differ, and fit
    out = [norch.empty(3 if rank == me else 2) for rank in range(n)]
    dist.all_to_all(out, [norch.full((size,), float(me)) for size in sizes])
    assert [part.tolist() for part in out] == [[float(r)] * (3 if r == me else 2) for r in range(n)]
    dist.all_reduce(y := x())
    assert y.tolist() == [float(n)] * 3


def begun() -> None:
    """The same of calls that are not waited for: wait() raises."""
    n = dist.get_world_size()
    odd = int(dist.get_rank() == n - 1)
    work = dist.all_reduce(norch.ones(4), async_op=True)
    assert work is not None and work.wait()
    work = dist.all_reduce(norch.ones(4 + odd), async_op=True)
    assert work is not None
    refused(work.wait, "the ranks do not call the same", "(4,)", "(5,)")
    assert work.is_completed()  # it has failed, and is over
    outs = [norch.empty(2 + odd) for _ in range(n)]
    work = dist.all_to_all(outs, [norch.ones(2) for _ in range(n)], async_op=True)
    assert work is not None
    refused(work.wait, f"rank 0 sends 2 elements to rank {n - 1}, which expects 3")


def messages() -> None:
    """A message of other elements than the tensor raises where it is received, and the next one comes."""
    me = dist.get_rank()
    if me == 0:
        for dtype, count in ((norch.int32, 3), (norch.float32, 2), (norch.float32, 4), (norch.float64, 3)) * 2:
            dist.send(norch.ones(count, dtype=dtype), 1)
            dist.send(norch.full((3,), 7.0), 1)
    elif me == 1:
        for i in range(8):
            kind, words = [
                (norch.DTypeError, "3 elements of norch.int32 came for a tensor of shape (3,) and norch.float32"),
                (norch.ShapeError, "2 elements came for a tensor of shape (3,)"),
                (norch.ShapeError, "4 elements came for a tensor of shape (3,)"),
                (norch.DTypeError, "3 elements of norch.float64 came"),
            ][i % 4]
            x = norch.zeros(3)
            if i < 4:
                refused(lambda x=x: dist.recv(x, 0), words)
            elif i in (4, 5):
                refused(dist.irecv(x, 0).wait, words)
            else:
                refused(lambda x=x: dist.recv(x), words)
            assert dist.recv(x, 0) == 0 and x.tolist() == [7.0] * 3
            assert issubclass(kind, norch.Error)


class Two(nn.Module):
    """Two layers, one of which may be left out or called twice."""

    def __init__(self) -> None:
        super().__init__()
        norch.manual_seed(0)
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Any, way: str = "ab") -> Any:
        for name in way:
            x = getattr(self, name)(x).tanh()
        return x


def batch(rank: int, step: int) -> Any:
    return norch.arange(6.0).reshape(2, 3).sin() * (rank + 1) + step


def gradients(model: nn.Module) -> list[Any]:
    return [None if p.grad is None else p.grad.tolist() for p in model.parameters()]


def mean_of(losses: Callable[[nn.Module, int], None], model: nn.Module) -> list[Any]:
    """What all ranks should have: the mean of the gradients that each would have alone."""
    n, found = dist.get_world_size(), []
    for rank in range(n):
        alone = Two()
        alone.load_state_dict(model.state_dict())
        losses(alone, rank)
        found.append([norch.zeros(p.shape) if p.grad is None else p.grad for p in alone.parameters()])
    return [sum(parts[1:], parts[0]) / n for parts in zip(*found)]


def agrees(losses: Callable[[nn.Module, int], None], **options: Any) -> None:
    model = Two()
    wrapped = DistributedDataParallel(model, **options)
    expected = mean_of(losses, model)
    losses(wrapped, dist.get_rank())
    for p, other in zip(model.parameters(), expected, strict=True):
        assert p.grad is not None and norch.allclose(p.grad, other, atol=1e-6), (p.grad, other)
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, gradients(model))
    assert all(one == everyone[0] for one in everyone)


def orders() -> None:
    """Forwards and backwards in any order are averaged."""

    def two_and_two(m: Any, r: int) -> None:
        a, b = m(batch(r, 0)), m(batch(r, 1))
        a.sum().backward()
        b.square().sum().backward()

    def reversed_order(m: Any, r: int) -> None:
        a, b = m(batch(r, 0)), m(batch(r, 1))
        b.square().sum().backward()
        a.sum().backward()

    def together(m: Any, r: int) -> None:
        (m(batch(r, 0)).sum() + m(batch(r, 1)).square().sum()).backward()

    def twice(m: Any, r: int) -> None:
        loss = m(batch(r, 0)).sum()
        loss.backward(retain_graph=True)
        loss.backward()

    def three(m: Any, r: int) -> None:
        outs = [m(batch(r, step)) for step in range(3)]
        for out in outs:
            out.sum().backward()
        m(batch(r, 3)).sum().backward()

    def shared(m: Any, r: int) -> None:
        m(batch(r, 0), "aabab").sum().backward()

    def accumulated(m: Any, r: int) -> None:
        no_sync = getattr(m, "no_sync", norch.enable_grad)
        with no_sync():
            m(batch(r, 0)).sum().backward()
            m(batch(r, 1)).sum().backward()
        m(batch(r, 2)).sum().backward()

    def recomputed(m: Any, r: int) -> None:
        inner = m.module if isinstance(m, DistributedDataParallel) else m
        way = inner.forward
        inner.forward = lambda x, *_: norch.utils.checkpoint.checkpoint(way, x, use_reentrant=False)
        m(batch(r, 0)).sum().backward()

    def outputs_of_many_kinds(m: Any, r: int) -> None:
        inner = m.module if isinstance(m, DistributedDataParallel) else m
        way = inner.forward
        inner.forward = lambda x: {"y": [way(x)], "n": 3}
        first, second = m(batch(r, 0)), m(batch(r, 1))
        first["y"][0].sum().backward()
        second["y"][0].sum().backward()

    for losses in (two_and_two, reversed_order, together, twice, three, shared, accumulated, recomputed):
        agrees(losses)
        agrees(losses, find_unused_parameters=True)
        agrees(losses, bucket_cap_mb=1e-5)
    agrees(outputs_of_many_kinds)
    agrees(two_and_two, static_graph=True)


def sets() -> None:
    """Parameters that are frozen, unfrozen, added and unused."""
    me, n = dist.get_rank(), dist.get_world_size()

    def step(m: Any, r: int, way: str = "ab") -> None:
        for p in m.parameters():
            p.grad = None
        m(batch(r, 0), way).sum().backward()

    model = Two()
    model.a.weight.requires_grad_(False)
    wrapped = DistributedDataParallel(model)
    for change in (
        lambda m: m.a.weight.requires_grad_(True),
        lambda m: m.b.requires_grad_(False),
        lambda m: m.b.requires_grad_(True),
        lambda m: setattr(m, "b", nn.Linear(3, 3)),
        lambda m: m.requires_grad_(False).a.requires_grad_(True),
    ):
        norch.manual_seed(me)
        change(model)
        step(wrapped, me)
        alone = Two()
        alone.load_state_dict(model.state_dict())
        flags = [p.requires_grad for p in model.parameters()]
        means = mean_of(lambda m, r: step(m, r), model)
        for p, mean, flag in zip(model.parameters(), means, flags, strict=True):
            assert (p.grad is not None) == flag and (not flag or norch.allclose(p.grad, mean, atol=1e-6))
    everyone: list[Any] = [None] * n
    dist.all_gather_object(everyone, [p.tolist() for p in model.parameters()])
    assert all(one == everyone[0] for one in everyone)

    frozen = DistributedDataParallel(Two())
    frozen.module.requires_grad_(False)
    assert not frozen(batch(me, 0)).requires_grad
    agrees(lambda m, r: m(batch(r, 0), "ab" if r else "a").sum().backward(), find_unused_parameters=True)

    other = DistributedDataParallel(Two())
    (other.module.a if me == n - 1 else other.module.b).weight.requires_grad_(False)  # as many elements
    refused(lambda: step(other, me), "the ranks do not call the same", "bucket 0 of 3 parameters")


def more_backwards() -> None:
    """One rank calls backward() once more after a forward: its average meets that of the others' next step."""
    me, n = dist.get_rank(), dist.get_world_size()
    wrapped = DistributedDataParallel(Two())
    loss = wrapped(batch(me, 0)).sum()
    loss.backward(retain_graph=True)
    if me == n - 1:
        refused(loss.backward, "the ranks do not call the same", "average 2 after a forward")
    else:
        refused(lambda: wrapped(batch(me, 1)).sum().backward(), "average 2 after a forward")


if __name__ == "__main__":
    dist.init_process_group("mpi", timeout=60)
    globals()[sys.argv[1]]()
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} is done", flush=True)
    dist.destroy_process_group()
