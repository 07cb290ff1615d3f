"""DataLoader beside PyTorch's: `python -m benchmarks.loader`. Batches a second, in turns, round by round.

`costly` is a data set whose items take a fixed amount of Python work, about 1 ms of CPU each; `large` gives images of
3 x 224 x 224 floats, which have to come from the workers; `Python` gives small samples at once; `cheap` is a
TensorDataset. A row holds the median of the
ratios of the rounds and its quartiles, and the best time of each side: what a neighbour on the machine takes away is
least there. The load of the machine stands above the table.

Where others keep the cores busy, a second worker gains no time. The row `CPU time` tells what it would gain on idle
cores: the time that the program spends without workers, by that of a worker, or of the program with them if that is
more.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import norch
import norch.utils.data

BATCH = 32


class Costly:
    """size items of a row of numbers, each after so many steps of Python work."""

    def __init__(self, lib: Any, size: int, steps: int):
        self.lib, self.size, self.steps = lib, size, steps

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        work(self.steps)
        return self.lib.ones(100), index


class Large(Costly):
    """size images."""

    def __getitem__(self, index: int) -> Any:
        return self.lib.full((3, 224, 224), float(index)), index


def work(steps: int) -> int:
    """Keeps a core busy."""
    total = 0
    for i in range(steps):
        total += i * i
    return total


def steps_of(seconds: float) -> int:
    """How many steps of work() take so long here, at the best."""
    best = min(timed(lambda: work(10_000)) for _ in range(20))
    return int(10_000 * seconds / best)


def timed(run: Callable[[], Any]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def cpu_time(pid: int) -> float:
    """Seconds that a process has run."""
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def busiest(run: Callable[[], float]) -> float:
    """CPU seconds of the process that would run longest on idle cores: this one, or a worker, which has the mean of all
    workers. A busy core gives its worker fewer batches, so that the largest says how the load was spread."""
    pids = [os.getpid(), *(child.pid or 0 for child in multiprocessing.active_children())]
    before = [cpu_time(pid) for pid in pids]
    run()
    own, *workers = (cpu_time(pid) - start for pid, start in zip(pids, before, strict=True))
    return max(own, statistics.mean(workers or [0.0]))


def epoch(lib: Any, dataset: Any, workers: int) -> Callable[[], float]:
    """One epoch after another with workers that stay, as time of an epoch whose first batches are there already."""
    options = {"persistent_workers": True} if workers else {}
    loader = lib.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=workers, **options)

    def run() -> float:
        start, count = perf_counter(), 0
        for x, y in loader:
            count += 1
            assert len(x) == len(y) == BATCH
        assert count == len(dataset) // BATCH
        return perf_counter() - start

    run()
    return run


def compared(name: str, sides: dict[str, Callable[[], float]], rounds: int) -> None:
    """A row: how many times as long the second takes as the first."""
    (ours, run), (theirs, other) = sides.items()
    times: dict[str, list[float]] = {ours: [], theirs: []}
    for turn in range(rounds):
        for side in list(sides) if turn % 2 else [*sides][::-1]:
            times[side].append(sides[side]())
    ratios = sorted(b / a for a, b in zip(times[ours], times[theirs], strict=True))
    low, middle, high = statistics.quantiles(ratios, n=4)
    best = min(times[theirs]) / min(times[ours])
    print(
        f"{name:28} {middle:6.2f} ({low:.2f} to {high:.2f})  best {best:5.2f}   "
        f"{ours} {min(times[ours]) * 1e3:8.1f} ms, {theirs} {min(times[theirs]) * 1e3:8.1f} ms",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--items", type=int, default=320, help="of an epoch of the costly data set")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        torch = None  # type: ignore[assignment]
    else:
        torch.set_num_threads(1)
    norch.set_num_threads(1)
    versions = f"norch {norch.__version__}" + (f", PyTorch {torch.__version__}" if torch else "")
    print(f"{versions}, Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    rounds, workers, steps = arguments.rounds, arguments.workers, steps_of(1e-3)

    def costly(lib: Any, count: int) -> Callable[[], float]:
        return epoch(lib, Costly(lib, arguments.items, steps), count)

    with_workers, without = costly(norch, workers), costly(norch, 0)
    compared("costly, to no workers", {f"{workers} workers": with_workers, "none": without}, rounds)
    processes = {f"{workers} workers": lambda: busiest(with_workers), "none": lambda: busiest(without)}
    compared("costly, CPU time", processes, rounds)
    if torch is None:
        return
    compared("costly", {"norch": with_workers, "PyTorch": costly(torch, workers)}, rounds)
    for name, make in (
        ("large", lambda lib: Large(lib, 640, 0)),
        ("Python", lambda lib: Costly(lib, 6_400, 0)),
        ("cheap", lambda lib: lib.utils.data.TensorDataset(lib.ones(6_400, 100), lib.arange(6_400))),
    ):
        for count in (0, workers):
            libraries = {"norch": norch, "PyTorch": torch}
            sides = {label: epoch(lib, make(lib), count) for label, lib in libraries.items()}
            compared(f"{name}, {count or 'no'} workers", sides, rounds)


if __name__ == "__main__":
    main()
