"""A step of DistributedDataParallel as a timeline: calls of the library, and sums of buckets that go on beside them.

    mpiexec -n 2 python -m benchmarks.distributed --timeline overlap.png

A .json file is a trace for chrome://tracing or Perfetto, anything else a picture by matplotlib. A bar of a bucket ends
when the rank notices that its sum is there: it asks MPI, which works while it is asked, at each gradient that comes.
Gaps between calls are such questions.
"""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

from mpi4py import MPI

import norch
import norch.distributed as dist
from norch import nn
from norch.distributed import collectives
from norch.nn.parallel import DistributedDataParallel
from norch.profiler import profile

from .chart import COLOURS, pyplot

LAYERS, WIDTH, BATCH, BUCKET_MB = 8, 1024, 256, 4.2


class Bar(NamedTuple):
    """What a rank did from start to end, in nanoseconds: row is "calls" or "buckets"."""

    row: str
    name: str
    start: int
    end: int


class Timed:
    """A Work that notes when it was begun, when it was seen to be done, and how long it was waited for."""

    seen: list[Bar]

    def __init__(self, work: Any, name: str) -> None:
        self.work, self.name, self.begun, self.done = work, name, time.monotonic_ns(), 0

    def _go_on(self) -> None:
        """As Work._go_on()."""
        self.work._go_on()
        if not self.done and self.work._request == MPI.REQUEST_NULL:
            self.done = time.monotonic_ns()

    def wait(self) -> bool:
        """As Work.wait()."""
        since = time.monotonic_ns()
        self.work.wait()
        now = time.monotonic_ns()
        self.seen.append(Bar("buckets", self.name, self.begun, self.done or now))
        if now - since > 20_000:
            self.seen.append(Bar("calls", "wait", since, now))
        return True


def step_of(model: Any, x: Any, optimizer: Any) -> list[Bar]:
    """The bars of one step of this rank."""
    Timed.seen, begun = [], collectives.all_reduce_as
    numbers = iter(range(1000))

    def timed(*arguments: Any, **options: Any) -> Any:
        return Timed(begun(*arguments, **options), f"bucket {next(numbers)}")

    collectives.all_reduce_as = timed  # which DistributedDataParallel looks up at each bucket
    try:
        with profile() as seen:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            turn = time.monotonic_ns()
            loss.backward()
            optimizer.step()
    finally:
        collectives.all_reduce_as = begun
    for event in seen.events():
        kind = "forward" if event.start < turn else "backward"
        if event.name.startswith("optimizer"):
            kind = "optimizer"
        Timed.seen.append(Bar("calls", kind, event.start, event.end))
    return Timed.seen


def measure() -> list[list[Bar]]:
    """The bars of each rank, in a step after a few; times begin with 0."""
    norch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=BUCKET_MB)
    optimizer = norch.optim.SGD(model.parameters(), lr=0.01)
    x = norch.randn(BATCH, WIDTH)
    comm = MPI.COMM_WORLD
    for _ in range(4):
        comm.Barrier()
        bars = step_of(model, x, optimizer)
    first = comm.allreduce(min(bar.start for bar in bars), MPI.MIN)
    return comm.allgather([bar._replace(start=bar.start - first, end=bar.end - first) for bar in bars])


def share_hidden(bars: list[Bar]) -> float:
    """The share of the time of all buckets in which the rank did not wait for them."""
    spans = sorted((bar.start, bar.end) for bar in bars if bar.row == "buckets")
    covered, until = 0, 0
    for start, end in spans:
        covered += max(0, end - max(start, until))
        until = max(until, end)
    waited = sum(bar.end - bar.start for bar in bars if bar.name == "wait")
    return 1 - waited / covered


def write_trace(path: str, ranks: list[list[Bar]]) -> None:
    """A Chrome trace: a process a rank."""
    events = [
        {
            "name": bar.name,
            "ph": "X",
            "pid": rank,
            "tid": bar.row,
            "ts": bar.start / 1e3,
            "dur": (bar.end - bar.start) / 1e3,
        }
        for rank, bars in enumerate(ranks)
        for bar in bars
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


def draw(path: str, ranks: list[list[Bar]]) -> None:
    """The picture: of each rank a row of calls, and one of each bucket below it."""
    plot = pyplot()
    colours = {"forward": COLOURS[0], "backward": COLOURS[2], "wait": COLOURS[4], "optimizer": COLOURS[1]}
    buckets = sorted({bar.name for bar in ranks[0] if bar.row == "buckets"}, key=lambda name: int(name.split()[1]))
    figure, axes = plot.subplots(figsize=(10, 0.28 * len(ranks) * (len(buckets) + 2) + 1.2))
    names: list[str] = []
    for rank, bars in enumerate(ranks):
        base = len(names)
        names += [f"rank {rank}", *buckets, ""]
        for bar in bars:
            at, height = (base, 0.9) if bar.row == "calls" else (base + 1 + buckets.index(bar.name), 0.6)
            colour = colours[bar.name] if bar.row == "calls" else COLOURS[3]
            axes.barh(at, (bar.end - bar.start) / 1e6, left=bar.start / 1e6, height=height, color=colour, linewidth=0)
    for name, colour in {**colours, "sum of a bucket": COLOURS[3]}.items():
        axes.barh(0, 0, color=colour, label=name)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    axes.set_title(
        f"A step of DistributedDataParallel, {LAYERS} layers of {WIDTH}, batch {BATCH} a rank: "
        f"{100 * share_hidden(ranks[0]):.0f} % of the sums' time is not waited for"
    )
    axes.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.06), frameon=False)
    figure.savefig(path, dpi=130, bbox_inches="tight")


def main(path: str) -> None:
    """Measures, and rank 0 writes the file."""
    ranks = measure()
    if dist.get_rank() == 0:
        (write_trace if path.endswith(".json") else draw)(path, ranks)
        print(f"{path}: {100 * share_hidden(ranks[0]):.0f} % of the time of the sums is not waited for")
