"""What the CUDA kernels move, counted where no GPU is: make cuda-counts

    --only WORD        the rows whose name has the word

It runs the bandwidth cases of benchmarks/gpu in a simulation that sees each access of memory
(tests/cudasim/counting.cpp), at sizes that it can run, and tells of each call: its launches; the bytes that it must
move, each input read once and each result written once; what its kernels move, every sector of 32 bytes counted once a
kernel, as where the cache holds all else; what its threads ask for; how much of that in accesses of 16 bytes; and
barriers a thread. Products tell multiply-adds for 16 bytes of shared memory, and their traffic is held against the
formula of their tiles, by which it is told for the sizes that take a GPU. Training steps stand beside the operations of
PyTorch that compute, each a kernel or more there. It fails where a case moves over 1 % more than it must, or the
formula is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from .gpu import cases_bandwidth, cases_models
from .gpu.library import BANDWIDTH, OnDevice
from .gpu.measure import set_up
from .library import Library

ELEMENTS = 1 << 18
SIDES = (1024, 2048, 4096, 8192)  # of products that take a GPU
STEPS = cases_models.CASES[:2]  # which the simulation can run: of the MLP and of the CNN
ALONE = 1 << 13  # bytes that no row is blamed for: partial sums, and what is read a row
LARGE = (2048, 2048, 16)  # a product that gets the largest tiles
FREE = ("detach", "view", "reshape", "expand", "permute", "as_strided", "empty", "alias", "unsqueeze", "squeeze")


class Counts(NamedTuple):
    """As counting.cpp hands them out."""

    launches: int
    threads: int
    barriers: int
    read: int
    written: int
    wide: int
    read_once: int
    written_once: int
    shared_read: int
    shared_written: int
    copied: int

    @property
    def moved(self) -> int:
        return self.read_once + self.written_once + 2 * self.copied

    @property
    def asked(self) -> int:
        return self.read + self.written + 2 * self.copied


class Simulation:
    """The library that counts; SystemExit where another one is loaded."""

    def __init__(self) -> None:
        import norch

        path = os.environ.get("NORCH_CUDA_LIBRARY", "")
        self.norch = norch
        if not (path and norch.cuda.is_available() and norch.cuda.get_device_properties().simulated):
            why = norch.cuda.why_not() or "NORCH_CUDA_LIBRARY names none"
            sys.exit(f"nothing is counted: this needs the simulation that counts, which `make cuda-counts` runs: {why}")
        self.library = ctypes.CDLL(path)
        x = norch.ones(8, device="cuda")
        if self.count(lambda: x + x).read == 0:
            sys.exit(f"nothing is counted: the kernels of {path} are not compiled for it; run `make cuda-counts`")

    def _take(self) -> Counts:
        self.norch.cuda.synchronize()
        values = (ctypes.c_int64 * len(Counts._fields))()
        self.library.cudasim_counts(values)
        return Counts(*values)

    def count(self, run: Callable[[], Any]) -> Counts:
        """What a call does, the third of its kind: the first ones take memory and fill it."""
        for _ in range(2):
            run()
        self._take()
        run()
        return self._take()


def line(name: str, counts: Counts, needed: float) -> str:
    """A row of the table."""
    must = f"{needed:12.0f} {counts.moved / needed:7.3f} {counts.asked / needed:7.3f}" if needed else f"{'':28}"
    wide = counts.wide / max(1, counts.asked - 2 * counts.copied)
    barriers = counts.barriers / max(1, counts.threads)
    return f"{name:<22}{counts.launches:9d}{must}{counts.moved:12d}{counts.asked:12d}{wide:7.0%}{barriers:9.1f}"


def tile_of(m: int, n: int) -> int:
    """The side of the tiles that a product of these sizes gets (csrc/cuda/matmul.cu)."""
    for side, enough in ((128, 256), (64, 128)):
        if 2 * m > side and 2 * n > side and -(-m // side) * -(-n // side) >= enough:
            return side
    return 32


def traffic(m: int, n: int, k: int) -> int:
    """Bytes that the threads of a product ask for; its sizes are multiples of its tiles', and K is not cut."""
    side = tile_of(m, n)
    return 4 * (m // side * (n // side) * 2 * side * k + m * n)


def products(simulation: Simulation, lib: OnDevice) -> list[str]:
    """Prints what products move; gives what is wrong."""
    print(f"\n{'plain products':<22}{'tiles':>9}{'multiply-adds for':>20}{'flop a byte':>15}{'asked for':>16}")
    print(f"{'':<22}{'':>9}{'16 shared bytes':>20}{'asked for':>15}{'(bytes)':>16}")
    wrong = []
    simulation.norch.backends.cuda.matmul.fp32_precision = (
        "ieee"  # the plain kernels: copies to shared memory go uncounted
    )
    for m, n, k in (LARGE, (256, 256, 256)):
        a, b = lib.random(m, k), lib.random(k, n)
        counts = simulation.count(lambda a=a, b=b: a @ b)
        name, side, flops = f"({m}, {k}) @ ({k}, {n})", tile_of(m, n), 2 * m * n * k
        adds, of_bytes = flops / 2 / (counts.shared_read / 16), flops / counts.asked
        print(f"{name:<22}{side:9d}{adds:20.1f}{of_bytes:15.1f}{counts.asked:16d}  counted")
        if counts.asked != traffic(m, n, k):
            wrong.append(f"{name}: threads ask for {counts.asked} bytes, by the formula {traffic(m, n, k)}")
    for n in SIDES:
        print(f"{n:<22}{tile_of(n, n):9d}{'':20}{2 * n**3 / traffic(n, n, n):15.1f}{traffic(n, n, n):16d}  by formula")
    return wrong


def operations_of(step: Callable[[Library], Callable[[], Any]]) -> list[str]:
    """The operations of PyTorch that compute something in a step, on the CPU, with its optimizer as on CUDA."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    found: list[str] = []

    class Listening(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.overloadpacket.__name__ if func.namespace == "aten" else ""
            if name and name not in ("t", "transpose") and not name.startswith(FREE):
                found.append(name)
            return func(*args, **(kwargs or {}))

    class Grouped(torch.optim.SGD):
        """One kernel for many tensors: the default on CUDA."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, foreach=True, **options)

    plain, torch.optim.SGD = torch.optim.SGD, Grouped  # type: ignore[misc]
    try:
        run = step(Library("torch"))
        run()
        with Listening():
            run()
    finally:
        torch.optim.SGD = plain  # type: ignore[misc]
    return found


def steps(simulation: Simulation, lib: OnDevice) -> None:
    """Prints the launches of the training steps."""
    print(f"\n{'training steps':<22}{'launches':>9}{'moved':>14}{'asked for':>14}  PyTorch's operations")
    for case in STEPS:
        counts = simulation.count(set_up(case, lib)[0])
        try:
            beside = f"{len(operations_of(case.setup)):d} or more kernels"
        except ImportError:
            beside = "(no PyTorch here)"
        print(f"{case.name[:21]:<22}{counts.launches:9d}{counts.moved:14d}{counts.asked:14d}  {beside}", flush=True)


def main() -> int:
    """Parses the command line, counts, prints; the exit status is 1 where a row moves too much."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda_counts", description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--only", metavar="WORD", default="", help="the rows whose name has the word")
    asked = parser.parse_args()
    simulation, lib = Simulation(), OnDevice("norch", elements=ELEMENTS)
    print(f"{lib.elements} elements, rows of {BANDWIDTH[1]}; moved and asked for: bytes, and beside what must be")
    print(
        f"{'':<22}{'launches':>9}{'must':>12}{'moved':>8}{'asked':>8}{'moved':>12}{'asked':>12}{'wide':>7}{'barriers':>9}"
    )
    wrong = []
    for case in cases_bandwidth.CASES:
        if asked.only not in case.name:
            continue
        needed = case.moved * lib.elements
        counts = simulation.count(set_up(case, lib)[0])
        print(line(case.name, counts, needed), flush=True)
        if counts.moved > 1.01 * needed + ALONE:
            wrong.append(f"{case.name}: {counts.moved} bytes are moved where {needed:.0f} must be")
    if not asked.only or "product".startswith(asked.only):
        wrong += products(simulation, lib)
    if not asked.only or "step".startswith(asked.only):
        steps(simulation, lib)
    for one in wrong:
        print("WRONG", one)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
