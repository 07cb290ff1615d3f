"""Tables of the measured rows as text: one a group, with what the marks say, and one of the groups."""

from __future__ import annotations

import math
import statistics
from typing import Any

from .cases import GROUPS, TABLED
from .library import VARIANTS, Marks

SHOWN = {
    "norch": "norch",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "eager": "eager norch",
    "float32": "norch in float32",
    "weights": "norch, weights alone",
    "compiled": "torch.compile",
    "onnxruntime": "ONNX Runtime",
}
Row = dict[str, Any]


def check_writable(path: str | None) -> None:
    """SystemExit where a file cannot be written: better said before hours of measuring than after."""
    try:
        if path is not None:
            open(path, "a").close()
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}") from None


def describe(about: dict[str, Any]) -> str:
    """The machine in one line."""
    versions = ", ".join(
        f"{shown} {about[name]}" for name, shown in SHOWN.items() if name in about and name not in VARIANTS
    )
    return f"{about['cpu']}, {about['cores']} cores ({about['isa']}); Python {about['python']}; {versions}"


def duration(seconds: float) -> str:
    """A time with its unit, three digits."""
    for unit, scale in (("s ", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 0.9995:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def ratios(rows: list[Row], other: str) -> dict[str, float]:
    """By case, the ratios against this library that count."""
    return {row["case"]: row[other]["ratio"] for row in rows if row["counted"] and other in row}


def against(ratio: float, marks: Marks) -> str:
    """What a ratio against PyTorch says of the marks."""
    reached = "reached" if ratio >= marks.reach else "MISSED"
    return f"reach {marks.reach:g} {reached}, aim {marks.aim:g} {'reached' if ratio >= marks.aim else 'missed'}"


def verdict(row: Row, floor: float | None) -> str:
    """What there is to say of one row."""
    if not row["counted"]:
        return "(not counted)"
    if "torch" not in row:
        return ""
    if row["marks"]:
        return against(row["torch"]["ratio"], Marks(**row["marks"]))
    return f"BELOW {floor:g}" if floor is not None and row["torch"]["ratio"] < floor else ""


def bare(row: Row) -> str:
    """The time of a replay alone, what PyTorch takes of that, and its mark."""
    alone = row["seconds"]["replay"]
    text, ratio = duration(alone), row["seconds"].get("torch", math.nan) / alone
    mark = row["marks"] and row["marks"]["bare"]
    said = f", reach {mark:g} {'reached' if ratio >= mark else 'MISSED'}" if mark and not math.isnan(ratio) else ""
    return f"{text}, PyTorch / it {ratio:.3g}{said}"


def cell(ratio: dict[str, float] | None) -> str:
    """A ratio with its quartiles."""
    if ratio is None:
        return f"{'-':>7}"
    return f"{ratio['ratio']:7.2f}  ({ratio['low']:.2f} .. {ratio['high']:.2f})"


def show(group: str, rows: list[Row], others: list[str]) -> None:
    """Prints the table of one group."""
    title, marks = GROUPS[group]
    others = [other for other in others if other in SHOWN and any(other in row for row in rows)]
    width = max(len(row["case"]) for row in rows)
    print(f"\n{title}")
    heads = "".join(f"  {SHOWN[other] + ' / norch (quartiles)':26}" for other in others)
    print(f"  {'':{width}}  {'norch':>8}{heads}".rstrip())
    for row in rows:
        cells = "".join(f"  {cell(row.get(other)):26}" for other in others)
        said = verdict(row, marks and marks.floor)
        print(f"  {row['case']:{width}}  {duration(row['seconds']['norch']):>8}{cells}  {said}".rstrip())
    for row in rows:
        if "replay" in row["seconds"]:
            print(f"  {row['case']:{width}}  the replay alone: {bare(row)}")
    for label, fold in (("geometric mean", statistics.geometric_mean), ("worst", min)):
        counted = [ratios(rows, other).values() for other in others]
        if not any(counted):
            break
        cells = "".join(f"  {f'{fold(found):7.2f}' if found else '':26}" for found in counted)
        print(f"  {label:{width}}  {'':8}{cells}".rstrip(), flush=True)


def judge(group: str, rows: list[Row]) -> str:
    """One line on a group: its means, its worst case and, where all its cases were measured, its marks."""
    whole = len(rows) >= sum(case.group == group for case in TABLED)
    marks = GROUPS[group].marks if whole else None
    theirs, arrays = ratios(rows, "torch"), ratios(rows, "numpy")
    parts = []
    if theirs:
        mean, worst = statistics.geometric_mean(theirs.values()), min(theirs, key=theirs.__getitem__)
        parts.append(f"PyTorch {mean:6.2f}" + (f", {against(mean, marks)}" if marks else ""))
        parts.append(f"worst {theirs[worst]:.2f} ({worst})")
        if marks and marks.floor is not None:
            below = sum(ratio < marks.floor for ratio in theirs.values())
            parts.append(f"{below} of {len(theirs)} below {marks.floor:g}")
    if arrays:
        mean = statistics.geometric_mean(arrays.values())
        mark = marks.numpy if marks else None
        said = "" if mark is None else f", {mark:g} {'reached' if mean >= mark else 'MISSED'}"
        parts.append(f"NumPy {mean:.2f}{said}")
    return f"  {group:12} {'; '.join(parts)}"


def conclude(rows: list[Row]) -> None:
    """Prints a line a group."""
    print("\ngeometric means of the other's time / norch's")
    for group in GROUPS:
        found = [row for row in rows if row["group"] == group]
        if any(row["counted"] for row in found):
            print(judge(group, found))
