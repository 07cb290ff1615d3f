"""Handwritten digits, read by many processes: each trains on its part of every batch, and their gradients are averaged.

    mpiexec -n 2 python examples/data_parallel.py [--epochs N] [--seed N]
    python examples/data_parallel.py              # one process is a world, too

It takes 2 s, and by two processes 6 s, of processor time on two cores of an AMD EPYC.

Rank 0 then trains alone on the whole batches and compares: the parameters of both must agree to 1e-9; their sums are of
float64, in another order. A fifth of the digits is held out. Where less than 95 % of them are read right, or the
parameters differ, the script fails.
"""

from __future__ import annotations

import argparse
import sys

import norch
import norch.distributed as dist
from norch import nn, optim
from norch.nn.parallel import DistributedDataParallel

try:
    from sklearn.datasets import load_digits
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

REQUIRED = 95.0  # per cent of the held-out digits
BATCH = 64  # of all ranks together


def load() -> tuple[norch.Tensor, norch.Tensor]:
    """Pixels (N, 64) from 0 to 1, and the digits (N,) that they show, in an order that is the same on each rank."""
    scans = load_digits()
    order = norch.randperm(len(scans.target), generator=norch.Generator().manual_seed(0))
    x, y = norch.tensor(scans.data / 16, dtype=norch.float64), norch.tensor(scans.target, dtype=norch.int64)
    return x[order], y[order]


def make_model(seed: int) -> nn.Module:
    """64 pixels in, one score for each of ten digits out."""
    norch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).double()


def train(model: nn.Module, x: norch.Tensor, y: norch.Tensor, epochs: int, rank: int, ranks: int) -> None:
    """Trains on every `ranks`-th item of each batch, from `rank` on."""
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        order = norch.randperm(len(y), generator=norch.Generator().manual_seed(epoch))
        for batch in order[: len(order) // BATCH * BATCH].split(BATCH):  # whole batches, so that parts are equal
            mine = batch[rank::ranks]
            loss = nn.functional.cross_entropy(model(x[mine]), y[mine])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10, help="how often the network sees every training digit (10)")
    parser.add_argument("--seed", type=int, default=0, help="of the first parameters (0)")
    options = parser.parse_args()

    dist.init_process_group("mpi")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if BATCH % ranks:
        raise SystemExit(f"{ranks} ranks do not divide a batch of {BATCH}")
    x, y = load()
    held_out = len(y) // 5
    model = DistributedDataParallel(make_model(options.seed + rank))  # rank 0 gives the others its parameters
    train(model, x[held_out:], y[held_out:], options.epochs, rank, ranks)
    if rank > 0:
        return 0

    with norch.no_grad():
        right = 100 * (model.module(x[:held_out]).argmax(1) == y[:held_out]).double().mean().item()
    alone = make_model(options.seed)
    train(alone, x[held_out:], y[held_out:], options.epochs, 0, 1)
    pairs = zip(model.parameters(), alone.parameters(), strict=True)
    difference = max((p - q).abs().max().item() for p, q in pairs)
    print(f"{ranks} ranks read {right:.1f}% of {held_out} held-out digits")
    print(f"the largest difference from one process: {difference:.1e}")
    return 0 if right >= REQUIRED and difference <= 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
