"""What a second thread brings, as wall time: `python -m benchmarks.threads`. Alone, and beside one process that is
always busy. Runs with one thread and with two take turns; a row holds the median of their ratios and its quartiles.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from . import models, report
from .cases_matmul import by_transposed, product
from .cases_training import mlp_step
from .library import Library, Run, Setup
from .measure import machine

if TYPE_CHECKING:
    from collections.abc import Iterator

AIMS = {"alone": 1.6, "beside a busy process": 0.9}


def pointwise(lib: Library) -> Run:
    x = lib.random(10**7)
    return lambda: x.exp()


CASES: dict[str, Setup] = {
    "1024 x 1024 x 1024": product(1024, 1024, 1024),
    "x @ W.T, 512 x 512 x 512": by_transposed(512, 512, 512),
    "exp of 1e7": pointwise,
    "MLP 784-128-64-10, batch 64": mlp_step,
    "CNN 28x28, batch 64": models.cnn_step,
    "GPT of 2 layers, batch 16": models.gpt_step,
}


@contextmanager
def neighbour(wanted: bool) -> Iterator[None]:
    """One process that is busy meanwhile."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def gains(lib: Library, run: Run, threads: int, rounds: int, slot: float) -> list[float]:
    """Ratios of wall time, one thread's to that of `threads`, round by round, of about slot seconds each."""
    once = min(timed(lib, run, 1, 1) for _ in range(3))
    count = max(1, round(slot / once))
    found = []
    for turn in range(rounds):
        order = [1, threads] if turn % 2 else [threads, 1]
        spent = {n: timed(lib, run, n, count) for n in order}
        found.append(spent[1] / spent[threads])
    return found


def timed(lib: Library, run: Run, threads: int, count: int) -> float:
    """Wall time of count calls."""
    lib.module.set_num_threads(threads)
    start = perf_counter()
    for _ in range(count):
        run()
    return perf_counter() - start


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--threads", type=int, default=2, help="threads to compare with one (default 2)")
    parser.add_argument("--rounds", type=int, default=25, help="pairs of runs a row (default 25)")
    parser.add_argument("--slot", type=float, default=0.05, help="seconds a run (default 0.05)")
    parser.add_argument("--only", metavar="WORD", help="cases with this in their names")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: quartiles need two at least")
    chosen = {name: setup for name, setup in CASES.items() if not options.only or options.only in name}
    if not chosen:
        parser.error(f"--only {options.only}: no case of that name")
    lib = Library("norch")
    about = machine([])
    print(report.describe({**about, "norch": lib.version}))
    print(f"wall time with 1 thread / with {options.threads}: median, and quartiles")
    for where, aim in AIMS.items():
        print(f"\n{where}: aim {aim}")
        with neighbour(where != "alone"):
            for name, setup in chosen.items():
                found = gains(lib, setup(lib), options.threads, options.rounds, options.slot)
                low, middle, high = statistics.quantiles(found, n=4)
                verdict = "reached" if middle >= aim else "missed"
                print(f"  {name:30} {middle:6.2f}  ({low:.2f} .. {high:.2f})   {verdict}", flush=True)


if __name__ == "__main__":
    main()
