"""Timings on a GPU, with PyTorch in turns beside where it is installed: python -m benchmarks.gpu

    --small            tiny sizes: a trial, which the simulation can run (make cudasim); it has no timings
    --only WORD        the rows whose name has the word
    --seconds S        spent on each row and library (default: 1)

One run takes less than 8 minutes, leaves clocks as they are, and prints a table. A row says what a call moves or
computes in a second, how that compares with the measured rate of a copy or with PyTorch, and what is promised. Times
are of the device's events; that of a launch is what the host spends. PyTorch computes in full float32 (no TF32).
Without a GPU it says so and ends.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from . import models
from .cases_training import mlp_step
from .library import Library, Run

LIMIT = 450.0  # seconds, after which no row is begun
PERIOD = 1 << 20  # elements that are drawn; larger inputs repeat them


class Sizes(NamedTuple):
    """How large the inputs are."""

    elements: int = 100_000_000
    row: int = 1024
    products: tuple[int, ...] = (1024, 2048, 4096, 8192)


SMALL = Sizes(elements=1000, row=10, products=(16, 33))


class OnDevice(Library):
    """A library whose tensors stand on the current CUDA device unless told otherwise."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.module.set_default_device("cuda")
        if name == "torch":
            self.module.backends.cuda.matmul.allow_tf32 = False
            self.module.backends.cudnn.allow_tf32 = False

    def random(self, *shape: int, **options: Any) -> Any:
        """As Library.random."""
        return super().random(*shape, **options).to("cuda")

    def integers(self, *arguments: Any) -> Any:
        """As Library.integers."""
        return super().integers(*arguments).to("cuda")

    def many(self, *shape: int) -> Any:
        """Numbers from -1 to 1, drawn anew only PERIOD times."""
        count = 1
        for size in shape:
            count *= size
        drawn = self.random(min(count, PERIOD))
        return drawn.repeat(-(-count // drawn.numel()))[:count].reshape(shape)


class Row(NamedTuple):
    """A line of the table: what is timed, the bytes that it moves or the operations that it does, what is promised."""

    name: str
    make: Callable[[OnDevice], Run]
    bytes: float = 0.0
    flops: float = 0.0
    promise: str = ""
    on_host: bool = False


def rows(sizes: Sizes) -> list[Row]:
    """All rows; the first one is the copy that the others are measured by."""
    n, width = sizes.elements // sizes.row * sizes.row, sizes.row
    made: list[Row] = []

    def over(
        name: str, shape: tuple[int, ...], call: Callable[..., Any], moved: int, promise: str, inputs: int = 1
    ) -> None:
        def make(lib: OnDevice) -> Run:
            given = [lib.many(*shape) for _ in range(inputs)]
            return lambda: call(lib.module, *given)

        made.append(Row(name, make, bytes=4.0 * moved, promise=promise))

    def copy(lib: OnDevice) -> Run:
        x = lib.many(n)
        y = lib.module.empty_like(x)
        return lambda: y.copy_(x)

    made.append(Row("copy", copy, bytes=8.0 * n))
    rate, torch = "0.9 of the copy's rate", "PyTorch's time"
    over("a + b", (n,), lambda m, a, b: a + b, 3 * n, rate, 2)
    over("a * 2", (n,), lambda m, a: a * 2, 2 * n, rate)
    over("exp", (n,), lambda m, a: a.exp(), 2 * n, rate)
    over("sigmoid", (n,), lambda m, a: a.sigmoid(), 2 * n, rate)
    over("where(a > b, a, b)", (n,), lambda m, a, b: m.where(a > b, a, b), 3 * n + n // 2 + 2 * n, rate, 2)
    over("a + row", (n // width, width), lambda m, a: a + a[0], 2 * n, rate)
    over("sum", (n,), lambda m, a: a.sum(), n, rate)
    over("sum(1)", (n // width, width), lambda m, a: a.sum(1), n, rate)
    over("sum(0)", (n // width, width), lambda m, a: a.sum(0), n, rate)
    over("amax(1)", (n // width, width), lambda m, a: a.amax(1), n, rate)
    over("softmax(1)", (n // width, width), lambda m, a: a.softmax(1), 2 * n, torch)
    over("layer_norm", (n // width, width), lambda m, a: m.nn.functional.layer_norm(a, (width,)), 2 * n, torch)
    for size in sizes.products:

        def product(lib: OnDevice, size: int = size) -> Run:
            a, b = lib.many(size, size), lib.many(size, size)
            return lambda: a @ b

        made.append(Row(f"a @ b, {size}", product, flops=2.0 * size**3, promise="0.9 of cuBLAS's speed"))
    made.append(Row("MLP step, batch 64", mlp_step, promise=torch))
    made.append(Row("CNN step, batch 64", models.cnn_step, promise=torch))

    def launch(lib: OnDevice) -> Run:
        a, b = lib.many(8), lib.many(8)
        return lambda: a + b

    made.append(Row("launch of a + b", launch, promise=torch, on_host=True))
    return made


def seconds_of(lib: OnDevice, run: Run, row: Row, budget: float) -> float:
    """The median time of a call, over rounds of several."""
    cuda = lib.module.cuda
    for _ in range(3):
        run()
    cuda.synchronize()
    began = time.perf_counter()
    run()
    cuda.synchronize()
    once = time.perf_counter() - began
    # What a device has not begun waits in a queue of a thousand or so; a full one would hold the host up.
    calls = max(1, min(300, int(budget / 10 / max(once, 1e-6))))
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    times = []
    stop = time.perf_counter() + budget
    while not times or (time.perf_counter() < stop and len(times) < 50):
        began = time.perf_counter()
        start.record()
        for _ in range(calls):
            run()
        end.record()
        host = time.perf_counter() - began
        end.synchronize()
        times.append((host if row.on_host else start.elapsed_time(end) / 1e3) / calls)
    return median(times)


def sample(result: Any) -> list[float]:
    """A few numbers of what a run gives, the first tensor of a tuple."""
    first = result[0] if isinstance(result, tuple) else result
    return first.detach().reshape(-1)[:64].cpu().tolist()


def agree(a: list[float], b: list[float]) -> bool:
    """Whether two libraries have computed the same, but for the order in which they add."""
    return len(a) == len(b) and all(abs(x - y) <= 1e-3 + 1e-3 * max(abs(x), abs(y)) for x, y in zip(a, b, strict=True))


def measured(lib: OnDevice, row: Row, budget: float, timed: bool) -> tuple[list[float], float]:
    """What the row gives with this library, and its time; 0 where nothing is to be timed."""
    lib.seed(1)
    run = row.make(lib)
    given = sample(run())
    return given, seconds_of(lib, run, row, budget) if timed else 0.0


def line(row: Row, ours: float, theirs: float | None, copy_rate: float, same: bool | None) -> str:
    """A line of the table."""
    if row.flops:
        speed = f"{row.flops / ours / 1e12:8.2f} TFLOP/s"
    elif row.bytes:
        speed = f"{row.bytes / ours / 1e9:8.0f} GB/s   {row.bytes / ours / copy_rate:5.2f} of copy"
    else:
        speed = ""
    beside = "" if theirs is None else f"{theirs * 1e6:12.1f} us  {theirs / ours:5.2f}"
    warning = "  DIFFERENT RESULTS" if same is False else ""
    return f"{row.name:<22}{ours * 1e6:12.1f} us  {speed:<32}{beside:<24}{row.promise}{warning}"


def main() -> int:
    """Parses the command line, measures, prints; the exit status is 1 only where results differ."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__.split("\n")[0] if __doc__ else None
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes, for a trial")
    parser.add_argument("--only", metavar="WORD", default="", help="the rows whose name has the word")
    parser.add_argument("--seconds", type=float, default=1.0, help="on each row and library (default: 1)")
    options = parser.parse_args()

    import norch

    if not norch.cuda.is_available():
        print(f"no timings: {norch.cuda.why_not()}")
        return 0
    device = norch.cuda.get_device_properties()
    if device.simulated and not options.small:
        print("no timings: the CUDA device is simulated; --small tries the rows on it")
        return 0
    began = time.monotonic()
    libraries = [OnDevice("norch")]
    try:
        import torch

        if torch.cuda.is_available() and not device.simulated:
            libraries.append(OnDevice("torch"))
    except ImportError:
        pass
    beside = f"; PyTorch {libraries[1].version}" if len(libraries) > 1 else "; no PyTorch for this GPU"
    print(
        f"{device.name}, {device.multi_processor_count} SMs, driver {device.driver}; norch {norch.__version__}{beside}"
    )
    if device.simulated:
        print("simulated: no timings")
    else:
        print(f"{'':<22}{'norch':>12}     {'':<32}{'PyTorch':>12}  PyTorch / norch; promised")

    copy_rate, bad = 1.0, 0
    for row in rows(SMALL if options.small else Sizes()):
        if options.only not in row.name and not (row.name == "copy" and not device.simulated):
            continue
        if time.monotonic() - began > LIMIT:
            print(f"stopped after {LIMIT:.0f} s, before {row.name}")
            break
        found = [measured(lib, row, options.seconds, not device.simulated) for lib in libraries]
        same = agree(found[0][0], found[1][0]) if len(found) > 1 else None
        bad += same is False
        if device.simulated:
            print(f"{row.name:<22}ran")
            continue
        if row.name == "copy":
            copy_rate = row.bytes / found[0][1]
        print(line(row, found[0][1], found[1][1] if len(found) > 1 else None, copy_rate, same), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
