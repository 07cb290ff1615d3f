"""all_reduce of norch beside mpi4py's own, on NumPy's arrays, and PyTorch's gloo, from 8 bytes to 256 MiB.

    mpiexec -n 2 python -m benchmarks.distributed [--most MIB] [--rounds N] [--timeline FILE]

The libraries take turns in the same processes, in another order each round: after one that sleeps while it waits, ranks
are slower to meet. A line has the least time of each, as the slowest rank saw it, and how many bytes of a tensor a
second that is; what a neighbour on the machine takes away is least there. PyTorch is left out where it is not
installed. One thread a rank. --timeline draws a step of DistributedDataParallel instead (overlap.py).
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from datetime import date
from itertools import count, takewhile
from typing import Any

import numpy as np
from mpi4py import MPI

import norch
import norch.distributed as dist

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # PyTorch's processes meet on this machine
norch.set_num_threads(1)


def gloo(comm: Any) -> Any:
    """PyTorch's module distributed, with a group of these processes; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    path = comm.bcast(tempfile.mktemp() if comm.rank == 0 else None)
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=comm.rank, world_size=comm.size)
    return torch


def calls(count: int, comm: Any, torch: Any) -> dict[str, Callable[[], Any]]:
    """A call of each library on `count` float32 elements."""
    x = norch.zeros(count)
    into: Any = np.zeros(count, np.float32)
    out: Any = np.zeros(count, np.float32)
    made: dict[str, Callable[[], Any]] = {
        "norch": lambda: dist.all_reduce(x),
        "mpi4py": lambda: comm.Allreduce(into, out),
    }
    if torch is not None:
        y = torch.zeros(count)
        made["gloo"] = lambda: torch.distributed.all_reduce(y)
    return made


def measure(made: dict[str, Callable[[], Any]], rounds: int, repeats: int, comm: Any) -> dict[str, float]:
    """The least seconds of a call, as the slowest rank saw it; the calls take turns."""
    least = dict.fromkeys(made, float("inf"))
    for turn in range(rounds):
        for name in random.Random(turn).sample(list(made), len(made)):  # the same on all ranks
            comm.Barrier()
            since = time.perf_counter()
            for _ in range(repeats):
                made[name]()
            least[name] = min(least[name], comm.allreduce(time.perf_counter() - since, MPI.MAX) / repeats)
    return least


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("--most", type=int, default=256, metavar="MIB", help="the largest tensor (256)")
    parser.add_argument("--rounds", type=int, default=30, help="of each size (30)")
    parser.add_argument("--timeline", metavar="FILE", help="draw the overlap of a step: .png, or .json for Chrome")
    options = parser.parse_args()
    dist.init_process_group("mpi")
    if options.timeline:
        from .overlap import main as timeline

        timeline(options.timeline)
        return
    comm = MPI.COMM_WORLD
    torch = gloo(comm)
    if comm.rank == 0:
        print(
            f"all_reduce of float32, {comm.size} ranks, {os.cpu_count()} cores, {date.today()}, "
            f"{MPI.Get_library_version().split(',')[0]}"
        )
    most = options.most << 20
    for size in [*takewhile(lambda size: size < most, (8**power for power in count(1))), most]:
        made = calls(size // 4, comm, torch)
        times = measure(made, options.rounds, max(1, min(100, (1 << 20) // size)), comm)
        if comm.rank == 0:
            each = "  ".join(f"{name} {1e6 * t:11.2f} us {size / t / 1e9:6.2f} GB/s" for name, t in times.items())
            print(f"{size:>10} B  {each}  mpi4py/norch {times['mpi4py'] / times['norch']:.2f}", flush=True)
    if torch is not None:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
