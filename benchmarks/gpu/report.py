"""The table of a GPU: a line a case, the groups with their geometric means, and what misses its mark."""

from __future__ import annotations

import statistics
from typing import Any

from ..report import duration
from .cases import GROUPS
from .library import Case

Row = dict[str, Any]
HEAD = f"{'':46}{'norch':>9}{'PyTorch':>9}  ratio (quartiles)     reach  aim{'MiB at peak':>16}  {'difference':10}"


def pair(found: dict[str, Any], shown: str) -> str:
    """norch's and PyTorch's number."""
    return " / ".join(format(found[name], shown) for name in ("norch", "torch") if name in found) or "-"


def line(case: Case, row: Row, copied: float | None) -> str:
    """A row of the table; copied: bytes a second of a copy."""
    seconds = row["seconds"]
    text = f"{case.name:46}{duration(seconds['norch']):>9}"
    marks = f"{case.marks.reach:5g}{case.marks.aim:5g}"
    if "torch" in row:
        ratio = row["torch"]
        quartiles = f"({ratio['low']:5.2f} ..{ratio['high']:5.2f})"
        text += f"{duration(seconds['torch']):>9}{ratio['ratio']:7.2f} {quartiles}  {marks}"
    else:
        text += f"{'-':>9}{'':24}  {marks}"
    peak = {name: size / 2**20 for name, size in row["peak"].items()}
    text += f"{pair(peak, '.0f'):>16}"
    text += f"  {row['error']['norm']:10.1e}" if "error" in row else f"{'':12}"
    if case.moved and copied:
        text += f"  {row['rate'] / 1e9:.0f} GB/s, {row['rate'] / copied:.2f} of copy"
    elif case.flops:
        text += f"  {row['rate'] / 1e12:.1f} TFLOP/s"
    if "torch" in row and row["torch"]["ratio"] < case.marks.reach:
        text += "  MISSED"
    return text + ("  DIFFERENT RESULTS" if row.get("agrees") is False else "")


def show_counts(rows: list[Row]) -> None:
    """Prints kernels and the time in which the device was busy."""
    print(f"\n{'norch / PyTorch, of a call':46}{'kernels':>12}{'launches':>12}  us busy")
    for row in (row for row in rows if "kernels" in row):
        busy = pair({name: 1e6 * spent for name, spent in row["busy"].items()}, ".1f")
        print(f"{row['case']:46}{pair(row['kernels'], 'd'):>12}{pair(row['launches'], 'd'):>12}  {busy}")


def mean(rows: list[Row]) -> float | None:
    """The geometric mean of the ratios that count; of all where none does."""
    found = [row for row in rows if "torch" in row]
    counted = [row for row in found if row["counted"]] or found
    return statistics.geometric_mean(row["torch"]["ratio"] for row in counted) if counted else None


def conclude(rows: list[Row]) -> None:
    """Prints the means of groups and of all, and what misses its mark."""
    print("\ngeometric means of PyTorch's time / norch's")
    for group in GROUPS:
        if (found := mean([row for row in rows if row["group"] == group])) is not None:
            print(f"  {group:18}{found:6.2f}")
    compared = [row for row in rows if "torch" in row]
    if counted := [row for row in compared if row["counted"]]:
        slower = sum(row["torch"]["ratio"] < 1 for row in counted)
        print(f"  {f'all {len(counted)} counted':18}{mean(counted):6.2f}; {slower} are slower than PyTorch")
        missed = [row for row in compared if row["torch"]["ratio"] < row["marks"]["reach"]]
        for row in sorted(missed, key=lambda row: row["torch"]["ratio"] / row["marks"]["reach"]):
            print(f"  MISSED {row['torch']['ratio']:6.2f} of {row['marks']['reach']:g}: {row['case']}")
