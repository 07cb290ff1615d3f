"""One library in a process of its own: sets cases up and times them when told to.

Reads one JSON request a line from standard input and answers each with one line on standard output:

    ["setup", case number, seed]  ->  {"output": [[...]]}: numbers from the first call, to be compared
    ["sweep", call number, size, way, pass]  ->  {"set": 1}: the same for a call of sweep.py, which has been made once
    ["calibrate", seconds]        ->  {"count": n, "seconds": s}: how many calls take about that long, and one takes
    ["time", n]                   ->  {"seconds": s}: CPU time of n calls

Every other failure is answered with {"error": text}; the end of input ends the process.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import repeat
from time import process_time
from typing import Any

from . import sweep
from .cases import CASES
from .library import Library, Repeated, Run

COMPARED = 1000  # numbers of an output that are sent for comparison


def timed(run: Run, count: int) -> float:
    """CPU time of count calls. The collector of cycles stays on: it is part of what a user pays."""
    start = process_time()
    if isinstance(run, Repeated):
        run.repeat(count)
    else:
        for _ in repeat(None, count):
            run()
    return process_time() - start


def calibrate(run: Run, seconds: float) -> tuple[int, float]:
    """How many calls take about seconds, and what one takes; warms caches and allocators up on the way."""
    count = 1
    while (spent := timed(run, count)) < seconds / 2:
        count = min(count * 10, int(count * seconds / max(spent, 1e-9)) + 1)
    return max(1, round(count * seconds / spent)), spent / count


def numbers(output: Any) -> list[list[float]]:
    """The elements of what a case gave, a list a tensor, thinned where they are many: by an odd step, so that they are
    not of the same few columns. What is called for more than its time is a function that gives it."""
    if callable(output):
        return numbers(output())
    if isinstance(output, (list, tuple)):
        return [part for some in output for part in numbers(some)]
    if isinstance(output, float):
        return [[output]]
    flat = (output.detach() if hasattr(output, "detach") else output).reshape(-1)
    step = flat.shape[0] // COMPARED | 1
    return [[float(value) for value in flat[::step].tolist()]]


def serve(lib: Library) -> None:
    """Answers requests until there are no more."""
    run: Run | None = None
    calls: list[Any] = []  # those of the sweep
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        answer: dict[str, Any]
        try:
            if request == "setup":
                index, seed = arguments
                lib.seed(seed)
                setup = CASES[index].arrays if lib.name == "numpy" else CASES[index].tensors
                assert setup is not None
                run = None  # the last case's inputs go first
                run = setup(lib)
                answer = {"output": numbers(run())}
            elif request == "sweep":
                calls = calls or sweep.limited()
                number, *how = arguments
                run = None
                run = sweep.setup(lib.module, calls[number], *how)
                run()
                answer = {"set": 1}
            elif request == "calibrate":
                assert run is not None
                count, seconds = calibrate(run, *arguments)
                answer = {"count": count, "seconds": seconds}
            else:
                assert run is not None
                answer = {"seconds": timed(run, *arguments)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def main() -> None:
    """python -m benchmarks.worker LIBRARY CORE"""
    name, core = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    try:
        lib = Library(name)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    print(json.dumps({"version": lib.version}), flush=True)
    serve(lib)


if __name__ == "__main__":
    main()
