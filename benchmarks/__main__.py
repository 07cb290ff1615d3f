"""Runs the cases of cases.py on norch, NumPy and PyTorch side by side, and prints a table for each group."""

from __future__ import annotations

import argparse
import json
import os
import random
from typing import Any

from . import chart, headline, report, sweep
from .cases import GROUPS, TABLED
from .measure import LIBRARIES, import_times, machine, measure, start


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        metavar="WORD",
        action="append",
        help=f"a group ({', '.join(GROUPS)}) or a part of the names of cases; may be given several times",
    )
    parser.add_argument("--against", choices=LIBRARIES[1:], action="append", help="compare with this library only")
    parser.add_argument(
        "--compiled",
        action="store_true",
        help="cases of norch.capture also by torch.compile, which needs a C++ compiler and takes up to a minute a case",
    )
    parser.add_argument("--quick", action="store_true", help="a few short rounds only: a first impression")
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    parser.add_argument("--chart", metavar="FILE", help="also draw the ratios there, as a PNG (needs matplotlib)")
    parser.add_argument(
        "--headline",
        metavar="FILE",
        help="measure what the README shows, unless --only says otherwise; draw it as an SVG",
    )
    parser.add_argument("--seed", type=int, help="of the random inputs (default: another one each time)")
    options = parser.parse_args()
    words = options.only or list(GROUPS)
    cases = [case for case in TABLED if any(word == case.group or word in case.name for word in words)]
    if options.headline and not options.only:
        cases = [case for case in cases if headline.wanted(case.group, case.name)]
    swept = "sweep" in words and not options.headline
    if swept:  # the other words choose among its calls
        words_of_sweep = [word for word in words if word not in GROUPS]
        cases = [case for case in cases if case.group in words]
    if not cases and "import" not in words and not swept:
        parser.error(f"--only {' '.join(words)}: no group and no case of that name")
    report.check_writable(options.json)
    report.check_writable(options.headline)
    if options.chart:
        chart.pyplot()  # its absence is found before anything is measured
    rounds, slot = (5, 0.003) if options.quick else (25, 0.01)
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed

    if swept and "torch" not in (options.against or LIBRARIES):
        parser.error("the sweep is beside PyTorch")
    variants = {name for case in cases for name in case.variants} - ({"compiled"} if not options.compiled else set())
    workers = start([*(options.against or LIBRARIES[1:]), *variants])
    names = [worker.name for worker in workers]
    if options.headline and "torch" not in names:
        raise SystemExit("--headline draws ratios to PyTorch, which is not measured")
    about = {**machine(workers), "seed": seed}
    print(report.describe(about))
    print("time of norch, and time of the other / time of norch: above 1, norch is the faster one")

    rows: list[dict[str, Any]] = []
    for group in GROUPS:
        if group == "import" and group in words:
            added = import_times(
                [name for name in names if name in LIBRARIES], max(os.sched_getaffinity(0)), max(3, rounds // 3)
            )
        else:
            added = [measure(case, workers, seed, rounds, slot) for case in cases if case.group == group]
        if added:
            report.show(group, added, [name for name in names[1:] if any(name in row for row in added)])
            rows += added
    through = sweep.sweep(workers, words_of_sweep, 5 if options.quick else 15, slot) if swept else []
    for worker in workers:
        worker.close()
    if rows:
        report.conclude(rows)
    if through:
        sweep.conclude(through)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": about, "rows": [*rows, *through]}, file, indent=1)
    if options.chart:
        chart.bars(options.chart, rows, report.describe(about))
    if options.headline:
        with open(options.headline, "w") as file:
            file.write(headline.svg(rows, about))


if __name__ == "__main__":
    main()
