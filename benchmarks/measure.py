"""How times are taken: the processes of the libraries, their turns, and what is made of their times.

A shared machine changes its speed from second to second, so absolute times mean little. Each library lives in one
process (worker.py), all on the same core with one thread each; they take turns, A B C A B C ..., a few
milliseconds each, and every round gives one ratio of CPU times. Rows hold the medians of these ratios.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import sys
from datetime import date
from typing import Any

from .cases import CASES, IMPORT_MARKS
from .library import VARIANTS, Case, Library, Run

LIBRARIES = ["norch", "numpy", "torch"]
LEAST_ROUNDS = 5


class Worker:
    """One library's process, as seen from here."""

    def __init__(self, name: str, core: int) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", name, str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.hello = self._answer()

    def ask(self, *request: Any) -> dict[str, Any]:
        """The answer to one request; SystemExit with the worker's message when it failed."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise SystemExit(f"{self.name}: {request[0]}: {answer['error']}")
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: its process ended: its message is above")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process by ending its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def environment() -> dict[str, str]:
    """What children run in: one thread for each library, and compiled modules kept, as Python does by itself."""
    names = ["NORCH_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**given, **dict.fromkeys(names, "1")}


def start(others: list[str]) -> list[Worker]:
    """The workers of norch and of those of the others that are installed."""
    core = max(os.sched_getaffinity(0))
    workers = [Worker(name, core) for name in [*LIBRARIES, *VARIANTS] if name == "norch" or name in others]
    for worker in [worker for worker in workers if "missing" in worker.hello]:
        if worker.name == "norch":
            raise SystemExit(f"norch cannot be imported: {worker.hello['missing']}")
        print(f"{worker.name} is left out: {worker.hello['missing']}")
        workers.remove(worker)
    return workers


def agree(case: Case, outputs: dict[str, list[list[float]]]) -> None:
    """SystemExit unless all libraries computed the same, but for the case's tolerance."""
    ours = outputs["norch"]
    for name, theirs in outputs.items():
        close = [len(part) for part in ours] == [len(part) for part in theirs] and all(
            math.isclose(a, b, rel_tol=1e-4, abs_tol=max(1e-6, case.tolerance * max(map(abs, part))))
            for part, other in zip(ours, theirs)
            for a, b in zip(part, other)
        )
        if not close:
            raise SystemExit(f"{case.name}: norch and {name} disagree: {str(ours)[:200]} and {str(theirs)[:200]}")


def measure(case: Case, workers: list[Worker], seed: int, rounds: int, slot: float) -> dict[str, Any]:
    """Times one case on all workers that have it: rounds of slot seconds, fewer where one call takes longer."""
    index = next(index for index, known in enumerate(CASES) if known is case)
    left_out = {*VARIANTS} - {*case.variants} | ({"numpy"} if case.arrays is None else set())
    used = [worker for worker in workers if worker.name not in left_out]
    agree(case, {worker.name: worker.ask("setup", index, seed)["output"] for worker in used})
    found = {worker.name: worker.ask("calibrate", slot) for worker in used}
    longest = max(answer["seconds"] * answer["count"] for answer in found.values())
    rounds = max(LEAST_ROUNDS, min(rounds, int(rounds * slot * 4 / longest)))
    times: dict[str, list[float]] = {worker.name: [] for worker in used}
    for turn in range(rounds):
        for worker in used[turn % len(used) :] + used[: turn % len(used)]:  # nobody always goes first
            count = found[worker.name]["count"]
            times[worker.name].append(worker.ask("time", count)["seconds"] / count)
    return summary(case, times)


def summary(case: Case, times: dict[str, list[float]]) -> dict[str, Any]:
    """A row: the median times, and for the others the quartiles of their time / norch's, round by round."""
    row: dict[str, Any] = {"group": case.group, "case": case.name, "counted": case.counted}
    row["marks"] = case.marks._asdict() if case.marks else None
    row["seconds"] = {name: statistics.median(spent) for name, spent in times.items()}
    for other in times:
        if other != "norch":
            ratios = [theirs / ours for theirs, ours in zip(times[other], times["norch"])]
            low, middle, high = statistics.quantiles(ratios, n=4)
            row[other] = {"ratio": middle, "low": low, "high": high}
    return row


def _never(lib: Library) -> Run:
    raise NotImplementedError("fresh interpreters are timed, not a callable")


INSIDE = "from time import process_time as t; s = t(); import {}; print(t() - s)"


def import_times(names: list[str], core: int, rounds: int) -> list[dict[str, Any]]:
    """Rows for `import`: as the interpreter sees it, and the whole process, which includes bare Python's start."""
    inside: dict[str, list[float]] = {name: [] for name in names}
    whole: dict[str, list[float]] = {name: [] for name in [*names, "bare"]}
    for name in names:
        child(f"import {name}", core)  # the first import compiles its modules
    for _ in range(rounds):
        for name in names:
            inside[name].append(float(child(INSIDE.format(name), core)[0]))
        for name in whole:
            whole[name].append(child("pass" if name == "bare" else f"import {name}", core)[1])
    bare = statistics.median(whole.pop("bare"))
    return [
        summary(Case("import", "import", _never, None, IMPORT_MARKS), inside),
        summary(Case("import", f"whole process (bare Python: {1000 * bare:.0f} ms)", _never, None, None, False), whole),
    ]


def child(code: str, core: int) -> tuple[str, float]:
    """What a fresh interpreter prints, and its CPU time."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"python -c {code!r} failed")
    return printed, usage.ru_utime + usage.ru_stime


def machine(workers: list[Worker]) -> dict[str, Any]:
    """What the numbers were measured on."""
    from norch._binding.library import lib

    model = platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            model = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "date": f"{date.today():%-d %B %Y}",
        "cpu": model,
        "cores": os.cpu_count(),
        "isa": lib.norch_isa().decode(),
        "python": platform.python_version(),
        **{worker.name: worker.hello["version"] for worker in workers},
    }
