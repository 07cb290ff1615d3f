"""One case on all libraries: do they agree, how long do they take, in turns, how much memory and how many kernels.

Times are of the wall clock, from a synchronised device to a synchronised device, over several calls in a row: what the
host spends counts where it is the slower one.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

from . import agreement, kernels
from .library import Case, OnDevice

ROUNDS = 9  # of each library, where the budget allows; at least LEAST
LEAST = 3
CALLS = 300  # in a round at most: a device has a queue of a thousand launches or so

Row = dict[str, Any]


def timed(lib: OnDevice, run: Callable[[], Any], calls: int) -> float:
    """Seconds of a call, the mean of so many in a row."""
    synchronize = lib.module.cuda.synchronize
    synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    synchronize()
    return (time.perf_counter() - start) / calls


def in_turns(runs: dict[str, tuple[OnDevice, Callable[[], Any]]], budget: float) -> dict[str, list[float]]:
    """Seconds of a call, round by round; budget: seconds for all rounds of all libraries."""
    calls = {}
    once = {name: timed(lib, run, 1) for name, (lib, run) in runs.items()}
    if sum(once.values()) > budget:  # there is no time for more
        return {name: [spent] * 2 for name, spent in once.items()}
    once = {name: min(spent, timed(*runs[name], 1)) for name, spent in once.items()}
    rounds = max(LEAST, min(ROUNDS, int(budget / max(sum(once.values()), 1e-9))))
    for name, spent in once.items():
        calls[name] = max(1, min(CALLS, int(budget / len(runs) / rounds / max(spent, 1e-9))))
    times: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    for turn in range(rounds):
        for name in order if turn % 2 else order[::-1]:  # nobody always goes first
            times[name].append(timed(*runs[name], calls[name]))
    return times


def summary(times: dict[str, list[float]]) -> Row:
    """Median times, and the quartiles of PyTorch's / norch's, round by round."""
    row: Row = {"seconds": {name: statistics.median(spent) for name, spent in times.items()}}
    if "torch" in times:
        ratios = [theirs / ours for theirs, ours in zip(times["torch"], times["norch"])]
        low, middle, high = statistics.quantiles(ratios, n=4)
        row["torch"] = {"ratio": middle, "low": low, "high": high}
    return row


def set_up(case: Case, lib: OnDevice) -> tuple[Callable[[], Any], list[Any]]:
    """What is timed, and what its first call gives."""
    lib.seed(1)
    with lib.placing():
        run = case.setup(lib)
        return run, agreement.flat(run())


def measure(case: Case, libraries: list[OnDevice], budget: float, torch: Any, only_agree: bool) -> Row:
    """A row: agreement, and unless that is all that is asked for, times and peaks of memory."""
    row: Row = {"group": case.group, "case": case.name, "counted": case.counted, "marks": case.marks._asdict()}
    runs, results, held = {}, [], {}
    for lib in libraries:
        if not only_agree:
            held[lib.name] = lib.module.cuda.memory_allocated()
        run, result = set_up(case, lib)
        runs[lib.name] = lib, run
        results.append(result)
    if len(libraries) > 1:
        found = agreement.difference(torch, *results)
        row |= {"error": found._asdict(), "agrees": found.within(case.tolerance)}
    del results, result
    if only_agree:
        return row
    row["peak"] = {}
    for name, (lib, run) in runs.items():
        run()
        lib.module.cuda.synchronize()
        lib.module.cuda.reset_peak_memory_stats()
        run()
        lib.module.cuda.synchronize()
        row["peak"][name] = lib.module.cuda.max_memory_allocated() - held[name]
    return row | summary(in_turns(runs, budget))


def count(case: Case, libraries: list[OnDevice], torch: Any) -> Row:
    """What is to be added to a row: kernels, launches by the host, seconds in which the device was busy. It comes after
    all timings, as each launch takes longer once the profiler has run."""
    row: Row = {}
    for lib in libraries:
        run, _ = set_up(case, lib)
        run()
        if counts := kernels.count(torch, lib, run):
            for key in ("kernels", "launches", "busy"):
                row.setdefault(key, {})[lib.name] = getattr(counts, key)
    return row


def tidy(libraries: list[OnDevice]) -> None:
    """Gives memory back between cases."""
    gc.collect()
    for lib in libraries:
        if lib.device != "cpu":
            lib.module.cuda.empty_cache()
