"""The five figures of the README as an SVG, which `python -m benchmarks --headline FILE` measures and draws.

The greys and the blue are legible on white and on black, so that one picture serves readers of both.
"""

from __future__ import annotations

import math
import statistics
from html import escape
from typing import Any

from .report import Row, describe, ratios

# What is shown: its words, a group, and a part of the names of its cases.
FIGURES = [
    ("import", "import", ""),
    ("elementwise operations, 1e3 to 1e7 elements, geometric mean", "elementwise", ""),
    ("training step of a small CNN", "training", "CNN 28x28"),
    ("training step of an MLP 784-128-64-10, batch size 64", "training", "MLP 784"),
    ("products of float32 matrices, geometric mean", "matmul", ""),
]
COMMAND = 'make bench ARGS="--headline docs/speed.svg"'
TICKS = (1, 2, 5, 10, 20, 50)
WIDTH, ROW, ONE, DECADE = 500, 42, 30, 250  # pixels: the picture, a figure, where the axis has 1, from there to 10
GREY, BLUE = "#768390", "#4f83e0"


def wanted(group: str, name: str) -> bool:
    """Whether a case belongs to a figure."""
    return any(group == of and part in name for _, of, part in FIGURES)


def figures(rows: list[Row]) -> list[tuple[str, float]]:
    """Words and PyTorch's time / norch's; SystemExit where one was not measured."""
    found = []
    for words, group, part in FIGURES:
        counted = ratios([row for row in rows if row["group"] == group and part in row["case"]], "torch")
        if not counted:
            raise SystemExit(f"the picture needs PyTorch, and cases for: {words}")
        found.append((words, statistics.geometric_mean(counted.values())))
    return found


def svg(rows: list[Row], about: dict[str, Any]) -> str:
    """The picture: bars from 1 on a logarithmic axis; below them what they are, the machine and the command."""
    found = figures(rows)
    bottom = ROW * len(found) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" viewBox="0 0 {WIDTH} {bottom + 96}" '
        'font-family="sans-serif">',
        f"<title>Times as fast as PyTorch: {'; '.join(f'{ratio:.2g} {words}' for words, ratio in found)}</title>",
    ]

    def text(x: float, y: float, words: str, size: int = 13, more: str = "") -> None:
        lines.append(f'<text x="{x:.0f}" y="{y}" fill="{GREY}" font-size="{size}"{more}>{escape(words, False)}</text>')

    for tick in TICKS:
        x = ONE + DECADE * math.log10(tick)
        marks = "".join(f"M{x:.0f} {at * ROW + 22}v18" for at in range(len(found)))  # not through the words
        lines.append(f'<path d="{marks}" stroke="{GREY}" stroke-opacity="0.35"/>')
        text(x, bottom + 15, str(tick), 11, ' text-anchor="middle"')
    for at, (words, ratio) in enumerate(found):
        end, y = ONE + DECADE * math.log10(ratio), at * ROW + 24
        text(ONE + 6, y - 6, words)
        left, width = min(ONE, end), abs(end - ONE)
        lines.append(f'<rect x="{left:.0f}" y="{y}" width="{width:.0f}" height="14" fill="{BLUE}"/>')
        text(max(ONE, end) + 6, y + 12, f"{ratio:.2g}", 13, ' font-weight="bold"')
    machine, _, versions = describe(about).partition("; ")
    words = [f"PyTorch's time / norch's, one thread of a CPU, {about['date']}:", COMMAND, machine, versions]
    for at, line in enumerate(words):
        text(8, bottom + 37 + 16 * at, line, 11)
    return "\n".join([*lines, "</svg>", ""])
