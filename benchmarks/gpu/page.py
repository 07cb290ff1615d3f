"""The numbers as a page of Markdown, which docs/ can hold: the machine, the means, all cases, what misses its mark."""

from __future__ import annotations

from typing import Any

from ..report import duration
from .cases import CASES, GROUPS
from .report import Row, mean, pair

INTRODUCTION = """# {device}, beside PyTorch {torch}

Measured on {date}{of} by `python -m benchmarks.gpu`, which wrote this page: PyTorch {torch} in the same run, eager and
in full float32 (no TF32), wall clock from a synchronised device to a synchronised one, medians of rounds in turns. A
ratio is PyTorch's time / norch's: above 1, norch is the faster one. Reach and aim are what it is held against; "missed"
says that it is below the first. Kernels and the peak of memory (MiB, with the inputs) are norch's / PyTorch's of one
call. Difference is the norm of what norch's results and gradients differ by from PyTorch's, of these.
"""


def cells(row: Row) -> list[str]:
    """A line of a group's table."""
    ratio, marks = row.get("torch"), row["marks"]
    shown = "" if ratio is None else f"{ratio['ratio']:.2f}"
    if ratio and ratio["ratio"] < marks["reach"]:
        shown += " (missed)"
    return [
        row["case"].replace("|", "\\|"),
        duration(row["seconds"]["norch"]),
        duration(row["seconds"]["torch"]) if ratio else "",
        shown,
        f"{marks['reach']:g} / {marks['aim']:g}",
        pair(row.get("kernels", {}), "d"),
        pair({name: size / 2**20 for name, size in row["peak"].items()}, ".0f"),
        f"{row['error']['norm']:.0e}" if "error" in row else "",
    ]


def table(head: list[str], lines: list[list[str]]) -> str:
    """A table of Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def text(machine: dict[str, Any], rows: list[Row]) -> str:
    """The page."""
    commit = machine.get("commit")
    parts = [INTRODUCTION.format(**{"torch": "(none)", **machine}, of=f", at commit {commit}," if commit else ",")]
    compared = [row for row in rows if "torch" in row]
    if counted := [row for row in compared if row["counted"]]:
        means = [[group, f"{mean([row for row in rows if row['group'] == group]) or 0:.2f}"] for group in GROUPS]
        slower = sum(row["torch"]["ratio"] < 1 for row in counted)
        missed = sum(row["torch"]["ratio"] < row["marks"]["reach"] for row in compared)
        everything = f"{len(counted)} cases, the mean's; {slower} are below 1"
        everything += f". Of all {len(compared)}, {missed} miss what they should reach"
        parts.append(table(["group", "geometric mean of the ratios"], [*means, [everything, f"{mean(counted):.2f}"]]))
    head = ["case", "norch", "PyTorch", "ratio", "reach / aim", "kernels", "MiB", "difference"]
    for group, title in GROUPS.items():
        if found := [row for row in rows if row["group"] == group]:
            parts.append(f"\n## {title[0].upper() + title[1:]}\n\n{table(head, [cells(row) for row in found])}")
    names = {row["case"] for row in rows}
    if lacking := [case.name for case in CASES if case.name not in names]:
        parts.append("\nNot measured: " + ", ".join(lacking) + ".")
    return "\n".join(parts) + "\n"
