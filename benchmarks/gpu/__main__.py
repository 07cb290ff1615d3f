"""Timings on a GPU, with PyTorch in turns beside where it is installed: python -m benchmarks.gpu

    --only WORD        a group, or the cases whose name has the word; may be given several times
    --seconds S        of timing for each case, of all libraries (default: 2)
    --json FILE        keeps the numbers
    --chart FILE       draws the ratios (needs matplotlib); --markdown FILE writes a page, with --commit NAME
    --from FILE        takes kept numbers instead of measuring; may be given several times
    --profile CASE     prints where the device's time goes in a call, kernel by kernel, in place of the table
    --small            tiny sizes, no timings: a trial, which the simulation can run (make cudasim)

A run takes less than 8 minutes, leaves clocks as they are, and prints a table: wall-clock time of a call, the ratio of
PyTorch's to it, above 1 where norch is the faster one, what the ratio should reach and what it aims at, kernels of a
call, memory at its peak with the inputs, and how far all its results are from PyTorch's. PyTorch computes in full
float32 (no TF32). The exit status is 1 where results differ or a case failed. Without a GPU it says so and ends.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from typing import Any

from .. import chart
from ..report import check_writable
from . import kernels, page, report
from .cases import CASES, GROUPS
from .library import Case, OnDevice
from .measure import Row, count, measure, set_up, tidy

LIMIT = 440.0  # seconds, after which no case is begun


def load_torch(simulated: bool) -> Any | None:
    """PyTorch, if it is there and, beside a GPU, has that GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if simulated or torch.cuda.is_available() else None


def about(device: Any, libraries: list[OnDevice]) -> dict[str, Any]:
    """What the numbers were measured on."""
    versions = {lib.name: lib.version for lib in libraries}
    return {
        "device": device.name,
        "multiprocessors": device.multi_processor_count,
        "driver": device.driver,
        "date": time.strftime("%Y-%m-%d %H:%M"),
        **versions,
    }


def profile(cases: list[Case], libraries: list[OnDevice], torch: Any) -> None:
    """Prints the kernels of each case, a call that is not its first."""
    for case in cases:
        print(case.name)
        for lib in libraries:
            run, _ = set_up(case, lib)
            run()
            kernels.show(torch, lib, run)
            del run, _
            tidy([lib])


def table(
    cases: list[Case], libraries: list[OnDevice], torch: Any, budget: float, trial: bool
) -> tuple[list[Row], int]:
    """Measures and prints, case by case; the rows, and how many cases failed."""
    began, rows, failed, copied, group = time.monotonic(), [], 0, None, ""
    for case in cases:
        if time.monotonic() - began > LIMIT:
            print(f"stopped after {LIMIT:.0f} s, before {case.name}")
            failed += 1
            break
        if case.group != group and not trial:
            group = case.group
            print(f"\n{GROUPS[group]}")
        try:
            row = measure(case, libraries, budget, torch, trial)
        except Exception as error:
            print(f"{case.name:46} FAILED: {type(error).__name__}: {error}", flush=True)
            failed += 1
            tidy(libraries)
            continue
        tidy(libraries)
        rows.append(row)
        failed += row.get("agrees") is False
        if trial:
            error = f"{row['error']['norm']:.1e}" if "error" in row else "ran"
            print(f"{case.name:46} {error}" + ("  DIFFERENT RESULTS" if row.get("agrees") is False else ""))
            continue
        if case.moved or case.flops:
            row["rate"] = (case.flops or case.moved * libraries[0].elements) / row["seconds"]["norch"]
        if case is CASES[0]:
            copied = row["rate"]
        print(report.line(case, row, copied), flush=True)
    return rows, failed


def add_counts(rows: list[Row], libraries: list[OnDevice], torch: Any, until: float) -> None:
    """Counts the kernels of the measured cases until this time, and prints them."""
    cases = {case.name: case for case in CASES}
    for row in rows:
        if kernels.profiler(torch) is None or time.monotonic() > until:
            break
        row |= count(cases[row["case"]], libraries, torch)
        tidy(libraries)
    report.show_counts(rows)


def kept(files: list[str]) -> tuple[dict[str, Any], list[Row]]:
    """What --json wrote: the machine of the last file, and the rows of all in the order of the cases."""
    rows, machine = {}, {}
    for name in files:
        with open(name) as file:
            told = json.load(file)
        machine = told["machine"]
        rows |= {row["case"]: row for row in told["rows"]}
    return machine, [rows[case.name] for case in CASES if case.name in rows]


def keep(machine: dict[str, Any], rows: list[Row], options: argparse.Namespace) -> int:
    """Prints the means, and writes the files that are asked for."""
    machine |= {"commit": options.commit} if options.commit else {}
    report.conclude(rows)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": machine, "rows": rows}, file, indent=1)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(page.text(machine, rows))
    if options.chart and any("torch" in row for row in rows):
        of = f" at {machine['commit']}" if "commit" in machine else ""
        title = f"{machine['device']}, {machine['date']}; norch {machine['norch']}{of}, PyTorch {machine['torch']}"
        chart.bars(options.chart, rows, title)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Parses the command line, measures, prints; the exit status."""
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=head, epilog=rest.split("\n\n")[-1])
    parser.add_argument("--only", metavar="WORD", action="append", help="a group, or a part of the names of cases")
    parser.add_argument("--seconds", type=float, default=2.0, help="of timing for each case (default: 2)")
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    parser.add_argument("--chart", metavar="FILE", help="also draw the ratios there, as a PNG (needs matplotlib)")
    parser.add_argument("--markdown", metavar="FILE", help="also write a page of Markdown there")
    parser.add_argument(
        "--from", metavar="FILE", action="append", dest="kept", help="numbers of --json, not measured anew"
    )
    parser.add_argument("--commit", metavar="NAME", help="of norch, to stand beside the numbers")
    parser.add_argument("--profile", metavar="CASE", help="the kernels of the cases whose names have this")
    parser.add_argument("--small", action="store_true", help="tiny sizes, no timings: a trial")
    options = parser.parse_args(arguments)
    words = [options.profile] if options.profile else options.only or list(GROUPS)
    cases = [case for case in CASES if any(word == case.group or word in case.name for word in words)]
    if not cases:
        parser.error(f"no group and no case is called {' or '.join(words)}")
    check_writable(options.json)
    check_writable(options.markdown)
    if options.chart:
        chart.pyplot()  # its absence is found before anything is measured
    if options.kept:
        return keep(*kept(options.kept), options)

    import norch

    if not norch.cuda.is_available():
        print(f"no timings: {norch.cuda.why_not()}")
        return 0
    device = norch.cuda.get_device_properties()
    trial = options.small or device.simulated
    if device.simulated and not options.small:
        print("no timings: the CUDA device is simulated; --small tries the cases on it")
        return 0
    began = time.monotonic()
    torch = load_torch(device.simulated)
    libraries = [OnDevice("norch", small=trial)]
    if torch is not None:
        libraries.append(OnDevice("torch", "cpu" if device.simulated else "cuda", small=trial))
    machine = about(device, libraries)
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    gc.collect()
    gc.freeze()  # what the libraries are made of need not be walked over after each case
    if options.profile:
        profile(cases, libraries, torch)
        return 0
    print("no timings: how far the results are from PyTorch's" if trial else report.HEAD)
    rows, failed = table(cases, libraries, torch, options.seconds, trial)
    if trial:
        return 1 if failed else 0
    add_counts(rows, libraries, torch, began + LIMIT)
    print(f"\n{len(rows)} cases in {time.monotonic() - began:.0f} s")
    keep(machine, rows, options)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
