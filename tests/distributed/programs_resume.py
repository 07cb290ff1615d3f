"""What test_distributed.py runs on each rank: training with a captured step, workers that augment, and checkpoints."""

from __future__ import annotations

import hashlib
import os
import pprint
import signal
import sys
from typing import Any

from programs import start

import norch
import norch.distributed as dist
from norch import nn, optim
from norch.distributed import checkpoint
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


if __name__ == "__main__":
    start(timeout=60)
    globals()[sys.argv[1]](*sys.argv[2:])
