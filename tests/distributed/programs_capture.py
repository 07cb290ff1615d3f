"""What test_distributed_capture.py runs on each rank: collectives in a captured function."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from programs import BACKEND, raises, same, start

import norch
import norch.distributed as dist
from norch import nn, optim
from norch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    """Dropout draws random numbers, batch norm has buffers that are broadcast, a parameter is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 3)
        self.scale, self.drop = nn.Parameter(norch.ones(1)), nn.Dropout(0.2)

    def forward(self, x: norch.Tensor) -> norch.Tensor:
        return self.last(self.drop(self.norm(self.first(x)).tanh()) * self.scale) * self.scale


def trained(captured: bool, dtype: Any = norch.float32, **options: Any) -> list[norch.Tensor]:
    """Losses, and what is left, of 20 steps."""
    me, n = dist.get_rank(), dist.get_world_size()
    norch.manual_seed(1)
    model = DistributedDataParallel(Net().to(dtype), bucket_cap_mb=0.0002, **options)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    assert len(model._reducer.buckets) > 1

    def step(x: norch.Tensor, y: norch.Tensor) -> norch.Tensor:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        return mean

    if captured:
        step = norch.capture(step)
    norch.manual_seed(10 + me)  # each rank has dropout and data of its own
    losses = []
    for _ in range(20):
        losses.append(step(norch.randn(8, 6, dtype=dtype), norch.randint(3, (8,))))
        schedule.step()
    if captured:
        assert step.recordings() == 1
        assert sum(name == "host call" for name, *_ in step.program.calls()) > 2 * len(model._reducer.buckets)
    every = [norch.empty_like(losses[-1]) for _ in range(n)]
    dist.all_gather(every, losses[-1])
    assert all(norch.equal(one, every[0]) for one in every)
    return [*losses, *(p.detach() for p in model.parameters()), *(p.grad for p in model.parameters()), *model.buffers()]


def training() -> None:
    """A captured step under DistributedDataParallel is the eager one, bit for bit."""
    for options in ({}, {"dtype": norch.bfloat16}, {"static_graph": True}):
        eager, captured = trained(False, **options), trained(True, **options)
        assert len(eager) == len(captured) and all(map(norch.equal, eager, captured)), options


def collectives() -> None:
    """Each collective in a captured function, on arguments that lie elsewhere each time."""
    me, n = dist.get_rank(), dist.get_world_size()

    def each(x: norch.Tensor, half: norch.Tensor) -> tuple[Any, ...]:
        total, first = x * 2, x.clone()
        dist.all_reduce(total)
        dist.all_reduce(half)  # an argument is written to
        dist.broadcast(first, n - 1)
        parts = [norch.empty_like(x) for _ in range(n)]
        dist.all_gather(parts, x)
        out = norch.empty(n, *x.shape)
        dist.all_gather_into_tensor(out, x.t().contiguous().t())
        mine = norch.empty_like(x)
        dist.reduce_scatter_tensor(mine, out + 1)
        swapped = [norch.empty_like(x) for _ in range(n)]
        dist.all_to_all(swapped, list((out * (me + 1)).unbind()))
        work = dist.all_reduce(most := x + 0, dist.ReduceOp.MAX, async_op=True)
        square = x * x
        work.wait()
        got, right = norch.zeros_like(x), (me + 1) % n
        if BACKEND == "gloo":
            ops = [dist.P2POp(dist.isend, square, right), dist.P2POp(dist.irecv, got, (me - 1) % n)]
            for one in dist.batch_isend_irecv(ops):
                one.wait()
        dist.barrier()
        return total, first, norch.stack(parts), out, mine, norch.stack(swapped), most, got

    captured, kept = norch.capture(each), []
    for i in range(8):
        x = norch.arange(6.0).reshape(2, 3) + 10 * me + i
        kept.append(x)  # so that the next one lies elsewhere
        halves = [norch.full((3,), me + 0.5 + i, dtype=norch.float16) for _ in range(2)]
        expected, got = each(x, halves[0]), captured(x, halves[1])
        assert all(map(norch.equal, expected, got)), i
        assert norch.equal(*halves)
    assert captured.recordings() == 1
    same(got[0], sum((norch.arange(6.0).reshape(2, 3) + 10 * r + 7) * 2 for r in range(n)).tolist())


def refused() -> None:
    """What cannot be captured, and what a replay meets."""
    me = dist.get_rank()
    x = norch.ones(3)

    def leaves_it(x: norch.Tensor) -> norch.Tensor:
        dist.all_reduce(y := x * 1, async_op=True)
        return y

    step = norch.capture(leaves_it)
    step(x)
    raises(norch.CaptureError, "goes on after it", lambda: step(x))

    def asks(x: norch.Tensor) -> None:
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            pass

    step = norch.capture(asks)
    step(x)
    raises(norch.CaptureError, "whether a collective is complete", lambda: step(x))
    dist.barrier()

    def objects(x: norch.Tensor) -> None:
        dist.all_gather_object([None] * dist.get_world_size(), 1)

    step = norch.capture(objects)
    step(x)
    raises(norch.CaptureError, "all_gather_object talks to other processes", lambda: step(x))

    model = DistributedDataParallel(nn.Linear(3, 1, bias=False))
    compiled = norch.compile(model)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(6):
            model.zero_grad()
            compiled(norch.full((1, 3), me + 1.0)).sum().backward()
            assert model.module.weight.grad.tolist() == [[1.5] * 3]  # averaged
    assert any("compile the module inside of it" in str(one.message) for one in told)
    inside = DistributedDataParallel(norch.compile(nn.Linear(3, 1, bias=False)))
    for _ in range(6):
        inside.zero_grad()
        inside(norch.full((1, 3), me + 1.0)).sum().backward()
        assert next(inside.parameters()).grad.tolist() == [[1.5] * 3]
    assert inside.module.forward.recordings() == 1

    pair = dist.new_group([0, 1])
    step = norch.capture(lambda x: dist.all_reduce(x, group=pair))
    for _ in range(4):
        step(y := norch.ones(3))
        same(y, [2.0] * 3)
    dist.destroy_process_group(pair)
    raises(norch.ArgumentError, "is not a group that stands", lambda: step(norch.ones(3)))


if __name__ == "__main__":
    start(timeout=60)
    globals()[sys.argv[1]](*sys.argv[2:])
    print(f"rank {dist.get_rank()} is done")
