"""Time against size for add, sum and matmul, as a PNG: `python -m benchmarks.scaling`. Does cost grow as it should?"""

from __future__ import annotations

import argparse
import json
import random

from . import chart, report
from .cases_scaling import SCALING
from .measure import LIBRARIES, machine, measure, start


def main() -> None:
    """Parses the command line, measures, draws."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--elements", type=float, default=1e8, help="largest size of add and sum (default 1e8)")
    parser.add_argument("--side", type=int, default=2048, help="largest side of a product's matrices (default 2048)")
    parser.add_argument("--against", choices=LIBRARIES[1:], action="append", help="compare with this library only")
    parser.add_argument("--chart", metavar="FILE", default="scaling.png", help="the PNG (default scaling.png)")
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    options = parser.parse_args()
    if options.elements < 1 or options.side < 1:
        parser.error("--elements and --side: from 1 on")
    report.check_writable(options.json)
    chart.pyplot()  # its absence is found before anything is measured
    workers = start(options.against or LIBRARIES[1:])
    about = machine(workers)
    print(report.describe(about))
    seed = random.SystemRandom().getrandbits(32)
    measured = {}
    for operation, cases in SCALING.items():
        most = options.side if operation == "matmul" else options.elements
        measured[operation] = []
        for size, case in cases:
            if size <= most:
                row = measure(case, workers, seed, rounds=5, slot=0.005)
                measured[operation].append((size, row))
                times = "  ".join(f"{name} {report.duration(spent):>8}" for name, spent in row["seconds"].items())
                print(f"  {case.name:20}  {times}", flush=True)
    for worker in workers:
        worker.close()
    chart.curves(options.chart, measured, report.describe(about))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": about, "measured": measured}, file, indent=1)


if __name__ == "__main__":
    main()
