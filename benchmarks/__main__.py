"""Runs the cases of cases.py on norch, NumPy and PyTorch side by side, and prints a table for each group.

A shared machine changes its speed from second to second, so absolute times mean little. Each library lives in one
process (worker.py), all on the same core with one thread each; they take turns, A B C A B C ..., a few
milliseconds each, and every round gives one ratio of CPU times. The tables show the medians of these ratios.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from typing import Any

from .cases import CASES, Case

LIBRARIES = ["norch", "numpy", "torch"]
SHOWN = {"norch": "norch", "numpy": "NumPy", "torch": "PyTorch"}
GROUPS = ["overhead", "training", "import", "kernels"]
IMPORT_MARK = 15.0
TITLES = {
    "overhead": "overhead: calls with next to nothing to compute",
    "training": "training: one step, forward, backward and update (NumPy: derivatives by hand)",
    "import": "import: CPU time of a fresh interpreter",
    "kernels": "kernels: float32, contiguous",
}


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


# ---- measuring ----------------------------------------------------------------------------------------------


def agree(case: Case, outputs: dict[str, list[float]]) -> None:
    """SystemExit unless all libraries computed the same."""
    ours = outputs["norch"]
    for name, theirs in outputs.items():
        close = len(ours) == len(theirs) and all(
            math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4) for a, b in zip(ours, theirs)
        )
        if not close:
            raise SystemExit(f"{case.name}: norch and {SHOWN[name]} disagree: {ours[:5]} ... and {theirs[:5]} ...")


def measure(case: Case, workers: list[Worker], seed: int, rounds: int, slot: float) -> dict[str, Any]:
    """Times one case on all workers that have it."""
    index = CASES.index(case)
    used = [worker for worker in workers if worker.name != "numpy" or case.arrays is not None]
    agree(case, {worker.name: worker.ask("setup", index, seed)["output"] for worker in used})
    counts = {worker.name: worker.ask("calibrate", slot)["count"] for worker in used}
    times: dict[str, list[float]] = {worker.name: [] for worker in used}
    for turn in range(rounds):
        for worker in used[turn % len(used) :] + used[: turn % len(used)]:  # nobody always goes first
            count = counts[worker.name]
            times[worker.name].append(worker.ask("time", count)["seconds"] / count)
    return summary(case.group, case.name, times, case.mark)


def summary(group: str, name: str, times: dict[str, list[float]], mark: float | None) -> dict[str, Any]:
    """A row: norch's median time, and for the others the quartiles of their time / norch's, round by round."""
    row: dict[str, Any] = {"group": group, "case": name, "norch_seconds": statistics.median(times["norch"])}
    for other in times:
        if other != "norch":
            ratios = [theirs / ours for theirs, ours in zip(times[other], times["norch"])]
            low, middle, high = statistics.quantiles(ratios, n=4)
            row[other] = {"ratio": middle, "low": low, "high": high}
    row["mark"] = mark
    return row


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
        summary("import", "import", inside, IMPORT_MARK),
        summary("import", f"whole process (bare Python: {1000 * bare:.0f} ms)", whole, None),
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


# ---- showing ------------------------------------------------------------------------------------------------


def machine(workers: list[Worker]) -> dict[str, Any]:
    """What the numbers were measured on."""
    from norch._lib import lib

    model = platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            model = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "isa": lib.norch_isa().decode(),
        "python": platform.python_version(),
        **{worker.name: worker.hello["version"] for worker in workers},
    }


def describe(about: dict[str, Any]) -> str:
    """The machine in one line."""
    versions = ", ".join(f"{SHOWN[name]} {about[name]}" for name in LIBRARIES if name in about)
    return f"{about['cpu']}, {about['cores']} cores ({about['isa']}); Python {about['python']}; {versions}"


def duration(seconds: float) -> str:
    """A time with its unit, three digits."""
    for unit, scale in (("s ", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 0.9995:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def cell(ratio: dict[str, float] | None) -> str:
    """A ratio with its quartiles."""
    if ratio is None:
        return "-".center(22)
    return f"{ratio['ratio']:7.2f}  ({ratio['low']:.2f} .. {ratio['high']:.2f})".ljust(26)


def show(group: str, rows: list[dict[str, Any]], others: list[str]) -> None:
    """Prints the table of one group."""
    width = max(len(row["case"]) for row in rows)
    print(f"\n{TITLES[group]}")
    heads = "".join(f"  {SHOWN[other] + ' / norch (quartiles)':26}" for other in others)
    print(f"  {'':{width}}  {'norch':>8}{heads}")
    for row in rows:
        cells = "".join(f"  {cell(row.get(other)):26}" for other in others)
        verdict = ""
        if row["mark"] is not None and "torch" in row:
            verdict = f"mark {row['mark']:g}: " + ("reached" if row["torch"]["ratio"] >= row["mark"] else "MISSED")
        print(f"  {row['case']:{width}}  {duration(row['norch_seconds']):>8}{cells}  {verdict}".rstrip())
    for label, fold in (("geometric mean", statistics.geometric_mean), ("worst", min)):
        cells = ""
        for other in others:
            ratios = [row[other]["ratio"] for row in rows if other in row]
            cells += f"  {f'{fold(ratios):7.2f}' if ratios else '':26}"
        print(f"  {label:{width}}  {'':8}{cells}".rstrip())


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="GROUP", choices=GROUPS, action="append", help=f"one of {', '.join(GROUPS)}")
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    parser.add_argument("--quick", action="store_true", help="a few rounds only: seconds instead of a minute")
    parser.add_argument("--seed", type=int, default=1, help="of the random inputs (default 1)")
    options = parser.parse_args()
    rounds, slot = (5, 0.003) if options.quick else (25, 0.01)
    groups = [group for group in GROUPS if not options.only or group in options.only]

    core = max(os.sched_getaffinity(0))
    workers = [Worker(name, core) for name in LIBRARIES]
    for worker in [worker for worker in workers if "missing" in worker.hello]:
        if worker.name == "norch":
            raise SystemExit(f"norch cannot be imported: {worker.hello['missing']}")
        print(f"{SHOWN[worker.name]} is not installed: left out")
        workers.remove(worker)
    others = [worker.name for worker in workers if worker.name != "norch"]
    about = machine(workers)
    print(describe(about))
    print("time of norch, and time of the other / time of norch: above 1, norch is the faster one")

    rows: list[dict[str, Any]] = []
    for group in groups:
        if group == "import":
            added = import_times([worker.name for worker in workers], core, max(3, rounds // 3))
        else:
            added = [measure(case, workers, options.seed, rounds, slot) for case in CASES if case.group == group]
        show(group, added, others)
        rows += added
    for worker in workers:
        worker.close()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": about, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
