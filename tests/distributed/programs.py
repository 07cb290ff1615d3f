"""What test_distributed.py runs on each rank: `mpiexec -n 2 python programs.py NAME`. A failing assertion ends all."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import norch
import norch.distributed as dist
from norch import nn, optim
from norch.distributed.optim import ZeroRedundancyOptimizer
from norch.nn.parallel import DistributedDataParallel

SHAPES = [(), (0,), (5,), (3, 4), (2, 3, 65)]
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
BACKEND = os.environ.get("NORCH_TEST_BACKEND", "gloo")  # with "nccl" tensors are made on the CUDA device
OPS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}


def data(rank: int, shape: Any, dtype: str, salt: int = 0) -> Any:
    """The tensor of a rank, which every rank can make: whole numbers of 0 to 3."""
    numbers = np.random.default_rng([rank, salt]).integers(0, 4, shape)
    return norch.tensor(numbers.tolist(), dtype=getattr(norch, dtype)).reshape(shape)


def array(x: norch.Tensor) -> Any:
    return np.array(x.float().tolist() if x.dtype.is_floating_point else x.tolist()).reshape(x.shape)


def same(x: norch.Tensor, expected: Any) -> None:
    np.testing.assert_array_equal(array(x), np.asarray(expected))


def raises(kind: type[Exception], text: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}: {text}")


def reductions() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        for shape in SHAPES:
            all_of = [array(data(r, shape, dtype)) for r in range(n)]
            for name, combine in OPS.items():
                if dtype == "bool":
                    combine = {"sum": np.logical_or, "product": np.logical_and}.get(name, combine)
                expected = combine.reduce(all_of)
                x = data(me, shape, dtype)
                dist.all_reduce(x, name)
                same(x, expected)
                x = data(me, shape, dtype)
                dist.reduce(x, n - 1, getattr(dist.ReduceOp, name.upper()))
                same(x, expected if me == n - 1 else all_of[me])
                if shape and shape[0]:
                    whole = np.stack(
                        [combine.reduce([array(data(r, shape, dtype, k)) for r in range(n)]) for k in range(n)]
                    )
                    parts = [data(me, shape, dtype, k) for k in range(n)]
                    out = norch.empty(shape, dtype=getattr(norch, dtype))
                    dist.reduce_scatter(out, parts, name)
                    same(out, whole[me])
                    out = norch.empty(shape, dtype=getattr(norch, dtype))
                    dist.reduce_scatter_tensor(out, norch.stack(parts), name)
                    same(out, whole[me])
    x = norch.full((3,), me + 1.0, dtype=norch.float16)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    same(x, [(n + 1) / 2] * 3)
    halves = norch.full((2,), 2048.0 if me == 0 else 1.0, dtype=norch.float16)
    dist.all_reduce(halves)  # in float16 2048 + 1 is 2048
    same(halves, norch.tensor([2048.0 + (n - 1)] * 2).half().tolist())
    for dtype in (norch.complex64, norch.complex128) if BACKEND == "gloo" else ():  # CUDA has no kernels for them
        for op, expected in (("sum", [n * (n - 1) / 2 + n * 1j] * 3), ("avg", [(n - 1) / 2 + 1j] * 3)):
            z = norch.full((3,), me + 1j, dtype=dtype)
            dist.all_reduce(z, op)
            assert z.tolist() == expected

    w = norch.full((3,), float(me), requires_grad=True)
    dist.all_reduce(w, dist.ReduceOp.AVG)  # an average divides where the sum lies, which no graph records
    dist.all_reduce(y := (w * 2).half(), dist.ReduceOp.AVG)
    assert w.tolist() == [(n - 1) / 2] * 3 and w.grad_fn is None and y.tolist() == [n - 1.0] * 3
    link = dist.GroupMember.WORLD.direct
    if link is not None:
        assert link.all_reduce(x := norch.ones(2, 3), "sum") and link.all_reduce(y := norch.ones(2).byte(), "max")
        same(x, np.full((2, 3), n))
        same(y, [1, 1])
        of_more_calls = [x.t(), x[:, 1], x[:0], x.half(), x.bool(), x + 1j, [1.0]]
        assert not any(link.all_reduce(one, "sum") for one in of_more_calls)
        assert not link.all_reduce(x, "xor") and not link.all_reduce(x, ["sum"]) and not link.all_reduce(x.int(), "avg")


def movement() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        kind = getattr(norch, dtype)
        for shape in SHAPES:
            of_ranks = [array(data(r, shape, dtype)) for r in range(n)]
            x = data(me, shape, dtype)
            dist.broadcast(x, n - 1)
            same(x, of_ranks[n - 1])
            out = [norch.empty(shape, dtype=kind) for _ in range(n)]
            dist.all_gather(out, data(me, shape, dtype))
            for got, expected in zip(out, of_ranks):
                same(got, expected)
            out = [norch.empty(shape, dtype=kind) for _ in range(n)]
            dist.gather(data(me, shape, dtype), out if me == 0 else None)
            for got, expected in zip(out if me == 0 else [], of_ranks):
                same(got, expected)
            got = norch.empty(shape, dtype=kind)
            dist.scatter(got, [data(r, shape, dtype, 7) for r in range(n)] if me == n - 1 else None, src=n - 1)
            same(got, array(data(me, shape, dtype, 7)))
            whole = norch.empty((n, *shape), dtype=kind)
            dist.all_gather_into_tensor(whole, data(me, shape, dtype))
            same(whole, np.stack(of_ranks))
            out = [norch.empty(shape, dtype=kind) for _ in range(n)]
            dist.all_to_all(out, [data(me, shape, dtype, k) for k in range(n)])
            for r, got in enumerate(out):
                same(got, array(data(r, shape, dtype, me)))
            right, left = (me + 1) % n, (me - 1) % n
            sent = dist.isend(data(me, shape, dtype), right)
            got = norch.empty(shape, dtype=kind)
            assert dist.recv(got, left) == left
            sent.wait()
            same(got, of_ranks[left])
            if BACKEND == "gloo":  # NCCL begins one after the other, in which each rank would wait for the other
                work = dist.irecv(got := norch.empty(shape, dtype=kind), tag=3)
                dist.send(data(me, shape, dtype), right, tag=3)
                work.wait()
                same(got, of_ranks[left])
            receive = dist.P2POp(dist.irecv, got := norch.empty(shape, dtype=kind), left)
            for work in dist.batch_isend_irecv([receive, dist.P2POp(dist.isend, data(me, shape, dtype), right)]):
                work.wait()
            same(got, of_ranks[left])
    sizes = [r + 1 for r in range(n)]  # rank r has r + 1 rows for each
    rows = norch.full((n * (me + 1), 2), me)
    out = norch.empty(sum(sizes), 2, dtype=norch.int64)
    dist.all_to_all_single(out, rows, sizes, [me + 1] * n)
    same(out, np.repeat(np.arange(n), sizes)[:, None].repeat(2, 1))
    uneven = [norch.empty(r + 1) for r in range(n)]
    dist.all_gather(uneven, norch.full((me + 1,), float(me)))
    assert [x.tolist() for x in uneven] == [[float(r)] * (r + 1) for r in range(n)]
    dist.barrier()


def layouts() -> None:
    """Tensors that are not contiguous, views, leaves; async_op; the version counter of what is written."""
    me, n = dist.get_rank(), dist.get_world_size()
    whole = norch.zeros(4, 6)
    whole[:, ::2] = me + 1.0
    dist.all_reduce(whole[:, ::2])
    assert whole[:, ::2].eq(n * (n + 1) / 2).all() and whole[:, 1::2].eq(0).all()
    flipped = norch.arange(4.0).flip(0)
    work = dist.all_reduce(flipped, async_op=True)
    assert work is not None and work.wait() and work.is_completed() and work.wait()
    same(flipped, np.arange(4.0)[::-1] * n)
    for i in range(10):  # nobody keeps what isend returns, nor the tensor
        dist.isend(norch.full((300000,), float(i)), (me + 1) % n)
        norch.full((300000,), -1.0)
        dist.recv(got := norch.empty(300000), (me - 1) % n)
        assert got.eq(i).all(), i
    w = norch.full((2,), float(me), requires_grad=True)
    dist.broadcast(w, 0)
    assert w.tolist() == [0.0, 0.0] and w.grad_fn is None
    y = (w * 2).exp()
    dist.all_reduce(y.detach())  # what exp saved was written to
    try:
        y.sum().backward()
    except norch.Error as error:
        assert "changed in place" in str(error)
    else:
        raise AssertionError("backward used what all_reduce had changed")


def objects_and_groups() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    gathered: list[Any] = [None] * n
    dist.all_gather_object(gathered, {"rank": me, "x": norch.full((2,), float(me))})
    assert [one["rank"] for one in gathered] == list(range(n)) and gathered[1]["x"].tolist() == [1.0, 1.0]
    some: list[Any] = ["a", {"b": 1}] if me == 0 else [None, None]
    dist.broadcast_object_list(some, 0)
    assert some == ["a", {"b": 1}]
    out: list[Any] = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(n)] if me == 1 else None, src=1)
    assert out == [f"for {me}"]
    into: list[Any] | None = [None] * n if me == 1 else None
    dist.gather_object(me, into, dst=1)
    assert into is None or into == list(range(n))

    last = dist.new_group([n - 1])
    pair = dist.new_group([0, n - 1])
    assert (last is dist.GroupMember.NON_GROUP_MEMBER) == (me != n - 1)
    if me in (0, n - 1):
        x = norch.ones(2) * (me + 1)
        dist.all_reduce(x, group=pair)
        same(x, [n + 1.0] * 2)
        dist.broadcast(x := norch.full((1,), float(me)), n - 1, group=pair)
        assert x.item() == n - 1
        assert dist.get_rank(pair) == (0 if me == 0 else 1) and dist.get_process_group_ranks(pair) == [0, n - 1]
        assert dist.get_global_rank(pair, 1) == n - 1 and dist.get_group_rank(pair, n - 1) == 1
    else:
        assert dist.get_rank(pair) == -1
    assert 0 <= dist.get_node_local_rank() < n


class Convolutions(nn.Module):
    """Convolutions, batch norm in evaluation mode's statistics, and a parameter that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.scale = (
            nn.Conv2d(1, 4, 3, dtype=norch.float64),
            nn.Parameter(norch.ones(1, dtype=norch.float64)),
        )
        self.out = nn.Linear(4 * 36, 3, dtype=norch.float64)

    def forward(self, x: norch.Tensor) -> norch.Tensor:
        h = norch.relu(self.conv(x.reshape(-1, 1, 8, 8))) * self.scale
        return self.out(h.flatten(1)) * self.scale


class Attention(nn.Module):
    """A layer of a transformer on 8 tokens of 8 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, dtype=norch.float64)
        self.out = nn.Linear(8, 3, dtype=norch.float64)

    def forward(self, x: norch.Tensor) -> norch.Tensor:
        return self.out(self.layer(x.reshape(-1, 8, 8)).mean(1))


def perceptron() -> nn.Module:
    layers = [nn.Linear(64, 33, dtype=norch.float64), nn.Tanh(), nn.Linear(33, 3, dtype=norch.float64)]
    return nn.Sequential(*layers)


def training() -> None:
    """50 steps on parts of batches give what one process gives on the whole ones, and the same bits on all ranks."""
    me, n = dist.get_rank(), dist.get_world_size()
    for make in (perceptron, Convolutions, Attention):
        norch.manual_seed(me)  # rank 0's parameters are broadcast
        model = DistributedDataParallel(make(), bucket_cap_mb=0.002)
        norch.manual_seed(0)
        alone = make()
        steps = []
        for one in (alone, model):
            norch.manual_seed(5)
            optimizer = optim.AdamW(one.parameters(), lr=1e-3)
            losses = []
            for _ in range(50):
                x, y = norch.randn(4 * n, 64, dtype=norch.float64), norch.randint(3, (4 * n,))
                if one is model:
                    x, y = x[me::n], y[me::n]
                loss = nn.functional.cross_entropy(one(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            mean = norch.stack(losses)
            if one is model:
                dist.all_reduce(mean, dist.ReduceOp.AVG)
            steps.append(mean)
        norch.testing.assert_close(steps[1], steps[0], rtol=1e-6, atol=1e-9)
        for p, q in zip(alone.parameters(), model.parameters(), strict=True):
            norch.testing.assert_close(q, p, rtol=1e-6, atol=1e-9)
            every = [norch.empty_like(q) for _ in range(n)]
            dist.all_gather(every, q.detach())
            assert all(norch.equal(one, every[0]) for one in every)


def synchronized_norm() -> None:
    """SyncBatchNorm on parts of a batch is BatchNorm on the whole: outputs, statistics, gradients of x and weights."""
    me, n = dist.get_rank(), dist.get_world_size()
    for shape, make in (((4 * n, 3), nn.BatchNorm1d), ((2 * n + 1, 3, 4, 5), nn.BatchNorm2d)):
        norch.manual_seed(3)
        x, g = norch.randn(shape, dtype=norch.float64), norch.randn(shape, dtype=norch.float64)
        part = slice(me, None, n)
        whole, mine = make(3, dtype=norch.float64), make(3, dtype=norch.float64)
        sync = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(mine))[0]
        assert type(sync) is nn.SyncBatchNorm and sync.weight is mine.weight
        of_whole, of_part = x.clone().requires_grad_(), x[part].clone().requires_grad_()
        for _ in range(2):
            expected, got = whole(of_whole), sync(of_part)
        norch.testing.assert_close(got, expected[part])
        norch.testing.assert_close(sync.running_mean, whole.running_mean)
        norch.testing.assert_close(sync.running_var, whole.running_var)
        assert sync.num_batches_tracked == 2
        (expected * g).sum().backward()
        (got * g[part]).sum().backward()
        norch.testing.assert_close(of_part.grad, of_whole.grad[part])
        dist.all_reduce(sync.weight.grad)
        norch.testing.assert_close(sync.weight.grad, whole.weight.grad)
        sync.eval()
        whole.eval()
        norch.testing.assert_close(sync(x), whole(x))


def divided_optimizer() -> None:
    """ZeroRedundancyOptimizer steps as the optimizer itself does; its state goes on in that, and with other ranks."""
    me, n = dist.get_rank(), dist.get_world_size()

    def model() -> nn.Module:
        norch.manual_seed(0)
        return perceptron()

    def step(model: nn.Module, optimizer: Any, seed: int) -> None:
        norch.manual_seed(seed)
        optimizer.zero_grad()
        model(norch.randn(8, 64, dtype=norch.float64)).square().mean().backward()
        optimizer.step()

    alone, together = model(), model()
    plain = optim.AdamW(alone.parameters(), lr=1e-2)
    divided = ZeroRedundancyOptimizer(together.parameters(), optim.AdamW, lr=1e-2)
    schedules = [optim.lr_scheduler.StepLR(one, 2, 0.5) for one in (plain, divided)]
    for seed in range(5):
        for one, optimizer, schedule in zip((alone, together), (plain, divided), schedules, strict=True):
            step(one, optimizer, seed)
            schedule.step()
    assert all(norch.equal(p, q) for p, q in zip(alone.parameters(), together.parameters(), strict=True))
    held: list[Any] = [None] * n
    dist.all_gather_object(held, len(divided.state))
    assert sum(held) == 4 and max(held) < 4, held
    assert all(p.grad is not None for p in together.parameters())

    try:
        divided.state_dict()
    except norch.Error as error:
        assert "consolidate_state_dict" in str(error)
    else:
        raise AssertionError("a part went for the whole")
    divided.consolidate_state_dict(to=n - 1)
    whole: list[Any] = [divided.state_dict() if me == n - 1 else None]
    assert me != n - 1 or divided.state_dict() is whole[0]
    dist.broadcast_object_list(whole, n - 1)
    expected = plain.state_dict()
    assert whole[0]["param_groups"] == expected["param_groups"] and list(whole[0]["state"]) == list(expected["state"])
    for number, entry in expected["state"].items():
        assert all(norch.equal(norch.tensor(entry[k]), norch.tensor(whole[0]["state"][number][k])) for k in entry)

    again = ZeroRedundancyOptimizer(together.parameters(), optim.AdamW, lr=1.0)
    again.load_state_dict(whole[0])
    step(alone, plain, 9)
    step(together, again, 9)
    assert all(norch.equal(p, q) for p, q in zip(alone.parameters(), together.parameters(), strict=True))


class Branches(nn.Module):
    """Two layers, of which a call uses one or both."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.never = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(1, 1)

    def forward(self, x: norch.Tensor, which: str) -> norch.Tensor:
        return sum(getattr(self, name)(x) for name in which)


def data_parallel() -> None:
    """no_sync(), unused parameters, buffers, state dicts, and what is refused."""
    me, n = dist.get_rank(), dist.get_world_size()
    x = norch.ones(1, 2) * (me + 1)
    mean = (n + 1) / 2

    model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
    assert list(model.state_dict()) == ["module.weight"]
    with model.no_sync():
        model(x).sum().backward()
    assert model.module.weight.grad.tolist() == x.tolist()
    model(x).sum().backward()  # what has gathered is averaged with it
    norch.testing.assert_close(model.module.weight.grad, norch.full((1, 2), 2 * mean))
    model.zero_grad()
    out = model(x).sum()
    with norch.no_grad():
        model(x)  # between a forward and its backward
    with model.no_sync():
        model(x)
    out.backward()
    norch.testing.assert_close(model.module.weight.grad, norch.full((1, 2), mean))

    copied = copy.deepcopy(model)
    if BACKEND == "gloo":  # pickles of CUDA tensors come back on the CPU
        copied = pickle.loads(pickle.dumps(copied))
    copied.zero_grad()
    copied(x).sum().backward()
    norch.testing.assert_close(copied.module.weight.grad, norch.full((1, 2), mean))

    model = DistributedDataParallel(nn.Linear(2, 1, bias=False).half())
    model(norch.full((1, 2), 40000.0).half()).sum().backward()  # the sum is beyond float16
    assert model.module.weight.grad.eq(40000.0).all()

    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    model(x, "a" if me == 0 else "b").sum().backward()
    norch.testing.assert_close(model.module.a.weight.grad, norch.full((1, 2), 1 / n))
    norch.testing.assert_close(model.module.b.weight.grad, norch.full((1, 2), (n * (n + 1) / 2 - 1) / n))
    assert model.module.never.weight.grad is None

    model = DistributedDataParallel(Branches(), static_graph=True)
    for _ in range(3):
        model(x, "ab").sum().backward()
    norch.testing.assert_close(model.module.a.weight.grad, norch.full((1, 2), 3 * mean))

    model = DistributedDataParallel(Branches())
    model(x, "a").sum().backward()
    try:
        model(x, "a")
    except norch.Error as error:
        assert "4 parameters got no gradient" in str(error) and "never.weight" in str(error), error
    else:
        raise AssertionError("an unused parameter went unseen")
    dist.barrier()

    norm = DistributedDataParallel(nn.BatchNorm1d(2))
    norm(x.repeat(3, 1) + norch.randn(3, 2))
    norm(x.repeat(3, 1))  # begins with rank 0's statistics
    every = [norch.empty(2) for _ in range(n)]
    dist.all_gather(every, norm.module.running_mean)
    assert (every[0] != every[1]).any()
    norm(x.repeat(3, 1))
    norm.eval()
    norm(x)

    wrong = nn.Linear(2, 1 + me)
    try:
        DistributedDataParallel(wrong)
    except norch.ShapeError as error:
        assert "parameter 'weight' of rank 0" in str(error), error
    else:
        raise AssertionError("other shapes on other ranks went unseen")

    import gc
    import weakref

    gone = weakref.ref(DistributedDataParallel(linear := nn.Linear(2, 1)))
    gc.collect()
    assert gone() is None
    linear(x).sum().backward()  # its hooks do nothing any longer
    assert linear.weight.grad.tolist() == x.tolist()


def wrong() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    x = norch.ones(3)
    raises(TypeError, "broadcast: expected a Tensor, not list", lambda: dist.broadcast([1.0], 0))
    raises(norch.Error, "called before", lambda: dist.init_process_group())
    raises(TypeError, "all_reduce: expected a Tensor, not list", lambda: dist.all_reduce([1.0]))
    raises(norch.ArgumentError, "ReduceOp.SUM, AVG", lambda: dist.all_reduce(x, "xor"))
    raises(norch.DTypeError, "norch.int64 has no average", lambda: dist.all_reduce(norch.ones(2).long(), "avg"))
    raises(norch.DTypeError, "norch.complex64 has no order", lambda: dist.all_reduce(x + 1j, "max"))
    raises(norch.ArgumentError, f"rank {n} is not in the group", lambda: dist.broadcast(x, n))
    raises(norch.ArgumentError, f"a tensor for each of {n} ranks, not 1", lambda: dist.all_gather([x], x))
    raises(norch.DTypeError, "beside one of", lambda: dist.all_gather([x.double()] * n, x))
    raises(norch.ShapeError, "of this rank", lambda: dist.all_gather([norch.ones(4)] * n, x))
    raises(norch.ShapeError, "is not one of (3,)", lambda: dist.all_gather_into_tensor(norch.ones(4), x))
    raises(norch.ShapeError, "equal parts", lambda: dist.all_to_all_single(norch.ones(n + 1), norch.ones(n + 1)))
    raises(norch.ArgumentError, "is this process", lambda: dist.send(x, me))
    raises(norch.ArgumentError, "each once", lambda: dist.new_group([0, 0]))
    if me == 0:
        dist.send(norch.ones(2), 1)
    elif me == 1:
        raises(norch.ShapeError, "2 elements came for a tensor of shape (3,)", lambda: dist.recv(x, 0))
        assert x.tolist() == [1.0, 1.0, 1.0]
    dist.destroy_process_group()
    raises(norch.Error, "init_process_group() first", lambda: dist.all_reduce(x))
    dist.init_process_group("mpi", timeout=60)
    x = norch.full((3,), 2.0)
    dist.all_reduce(x)
    same(x, [2.0 * n] * 3)


def differ() -> None:
    """Run with NORCH_DISTRIBUTED_DEBUG=1: each rank learns what the others call."""
    me = dist.get_rank()
    for call in (
        lambda: dist.all_reduce(norch.ones(3 + me)),
        lambda: dist.all_reduce(norch.ones(3, dtype=norch.float64 if me else norch.float32)),
        lambda: dist.barrier() if me else dist.broadcast(norch.ones(1), 0),
    ):
        try:
            call()
        except norch.Error as error:
            assert "the ranks do not call the same" in str(error) and "rank 0: " in str(error), error
        else:
            raise AssertionError("ranks that differ went unseen")
    x = norch.ones(2)
    dist.all_reduce(x)
    same(x, [float(dist.get_world_size())] * 2)


def fails() -> None:
    if dist.get_rank() == 1:
        raise ValueError("of rank 1 only")
    dist.barrier()


def is_late() -> None:
    dist.destroy_process_group()
    dist.init_process_group(timeout=1)
    if dist.get_rank() == 1:
        time.sleep(60)
    dist.all_reduce(norch.ones(4))


def dies() -> None:
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(norch.ones(4))


def start(timeout: float | None = None) -> None:
    dist.init_process_group(BACKEND, os.environ.get("NORCH_TEST_METHOD", "env://"), timeout)
    if "nccl" in BACKEND:
        norch.cuda.set_device(dist.get_node_local_rank())
        norch.set_default_device("cuda" if BACKEND == "nccl" else None)


if __name__ == "__main__":
    start()
    globals()[sys.argv[1]](*sys.argv[2:])
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} is done")
