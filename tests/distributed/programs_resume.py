"""What test_distributed.py runs on each rank: training with a captured step, workers that augment, and checkpoints."""

from __future__ import annotations

import hashlib
import os
import pprint
import signal
import sys
from typing import Any

from programs import raises, start

import norch
import norch.distributed as dist
from norch import nn, optim
from norch.distributed import checkpoint
from norch.distributed.optim import ZeroRedundancyOptimizer
from norch.nn.parallel import DistributedDataParallel
from norch.utils._pytree import tree_map
from norch.utils.data import DataLoader, Dataset, DistributedSampler


class Augmented(Dataset[Any]):
    """Items with noise, which workers draw."""

    def __len__(self) -> int:
        return 44

    def __getitem__(self, i: int) -> Any:
        return norch.full((4,), i / 44) + 0.1 * norch.randn(4), i % 3


def train(folder: str, steps: str, kill_at: str = "") -> None:
    """Trains to `steps` steps from the checkpoint in folder, if there is one, with one after each step; the last rank
    is killed in the step kill_at. Prints a digest of all that is left."""
    me = dist.get_rank()
    norch.manual_seed(0)
    layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3)]
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.0002)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.StepLR(optimizer, 3, 0.7)
    data = Augmented()
    sampler = DistributedSampler(data, seed=3)
    seeds = norch.Generator().manual_seed(5 + me)
    loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=2, generator=seeds)

    @norch.capture
    def step(x: norch.Tensor, y: norch.Tensor) -> norch.Tensor:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        return mean

    shared = {"model": model, "optimizer": optimizer, "schedule": schedule, "step": 0, "epoch": 0}
    mine = f"rank {me}"  # the position in the data, and random states
    norch.manual_seed(me)
    if os.path.exists(os.path.join(folder, "index.norch")):
        state = {**shared, f"{mine} loader": loader, f"{mine} random": norch.get_rng_state()}
        checkpoint.load(state, checkpoint_id=folder)
        norch.set_rng_state(state[f"{mine} random"])
        shared = {key: state[key] for key in shared}
        print(f"went on at {shared['step']}")
    while shared["step"] < int(steps):
        sampler.set_epoch(shared["epoch"])
        for x, y in loader:
            loss = step(x, y)
            schedule.step()
            shared["step"] += 1
            if str(shared["step"]) == kill_at and me == dist.get_world_size() - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            random = norch.get_rng_state()
            checkpoint.save({**shared, f"{mine} loader": loader, f"{mine} random": random}, checkpoint_id=folder)
            if shared["step"] == int(steps):
                break
        else:
            shared["epoch"] += 1
    assert step.recordings() >= 1
    left = [loss, *model.parameters(), *model.buffers(), optimizer.state_dict(), schedule.state_dict()]
    exact = tree_map(lambda x: x.tolist() if isinstance(x, norch.Tensor) else x, left)
    print(f"rank {me} left {hashlib.sha256(pprint.pformat(exact).encode()).hexdigest()}")


def resumed(folder: str, steps: str, stop_at: str = "") -> None:
    """Trains from the checkpoint in folder, if there is one, to `steps` steps, with a checkpoint after each; is killed
    while it saves after the step stop_at. Rank 0 prints the parameters."""
    norch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=1e-2)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    me = dist.get_rank()
    state = {"model": model, "optimizer": optimizer, "schedule": schedule, "step": 0, f"random {me}": norch.ones(0)}
    state[f"random {me}"] = norch.get_rng_state()
    if os.path.exists(os.path.join(folder, "index.norch")):
        checkpoint.load(state, checkpoint_id=folder)
        norch.set_rng_state(state[f"random {me}"])
    else:
        norch.manual_seed(me)
    while state["step"] < int(steps):
        optimizer.zero_grad()
        model(norch.randn(4, 4)).square().mean().backward()
        optimizer.step()
        schedule.step()
        state["step"] += 1
        state[f"random {me}"] = norch.get_rng_state()
        if str(state["step"]) == stop_at:
            killed_on_save(me)
        checkpoint.save(state, checkpoint_id=folder)
    if me == 0:
        print([p.flatten().tolist() for p in model.parameters()])


def killed_on_save(rank: int) -> None:
    """The last rank dies when it is about to write its part; others have written theirs, perhaps."""
    if rank == dist.get_world_size() - 1:
        checkpoint.serialization.save = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]


def read(folder: str) -> None:
    """Prints the parameters of a checkpoint that other ranks have written, and takes a step from there."""
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=1e-2)
    checkpoint.load({"model": model, "optimizer": optimizer}, checkpoint_id=folder)
    print([p.flatten().tolist() for p in model.parameters()])
    assert len(optimizer.state) == 4 and optimizer.param_groups[0]["lr"] < 1e-2
    model(norch.ones(1, 4)).sum().backward()
    optimizer.step()


def checkpoints(folder: str) -> None:
    """What checkpoint.save() and load() check, and failures of one rank."""
    me = dist.get_rank()
    saved = {"a": {"x": norch.arange(3.0), 0: "text"}, f"of {me}": me, "empty": {}}
    checkpoint.save(saved, checkpoint_id=folder)
    into: dict[str, Any] = {"a": {"x": norch.zeros(3), 0: None}, f"of {me}": None, "empty": None}
    x = into["a"]["x"]
    checkpoint.load(into, checkpoint_id=folder)
    assert into["a"]["x"] is x and x.tolist() == [0.0, 1.0, 2.0]
    assert into["a"][0] == "text" and into[f"of {me}"] == me and into["empty"] == {}
    for wrong, text in (({"b": 1}, "'b' was not saved"), ({"a": {"x": norch.ones(2)}}, "'a.x' has shape (2,)")):
        raises(norch.Error, text, lambda wrong=wrong: checkpoint.load(wrong, checkpoint_id=folder))
    unsaved = {"f": (lambda: 0) if me == 1 else 0, "g": (lambda: 0) if me == 1 else 1}
    raises(norch.Error, "rank 1 failed", lambda: checkpoint.save(unsaved, checkpoint_id=folder))
    keys = {"f": {1.5 if me == 1 else 1: 0}}
    raises(norch.Error, "rank 1 failed: ArgumentError", lambda: checkpoint.save(keys, checkpoint_id=folder))
    checkpoint.load(into, checkpoint_id=folder)  # the one before stands

    lonely = nn.Linear(20, 1, bias=False)  # one parameter: other ranks have no state of an optimizer
    divided = ZeroRedundancyOptimizer(lonely.parameters(), optim.Adam)
    lonely(norch.ones(1, 20)).sum().backward()
    divided.step()
    checkpoint.save({"all": {"optimizer": divided, "model": lonely}}, checkpoint_id=folder)
    again = optim.Adam((other := nn.Linear(20, 1, bias=False)).parameters())
    checkpoint.load({"all": {"optimizer": again, "model": other}}, checkpoint_id=folder)
    assert len(again.state) == 1 and norch.equal(lonely.weight, other.weight)
    dist.barrier()
    if me == 0:
        norch.save([1], os.path.join(folder, "index.norch"))
    dist.barrier()
    raises(norch.Error, "is no index", lambda: checkpoint.load({"all": {"model": other}}, checkpoint_id=folder))


if __name__ == "__main__":
    start(timeout=60)
    globals()[sys.argv[1]](*sys.argv[2:])
