"""Draws a recording: its calls, with arrows from each to the calls that read its result."""

from __future__ import annotations

import os
import shutil
import subprocess
from html import escape
from typing import Any

from ..errors import ArgumentError, Error

Call = tuple[str, str, tuple[int, ...], str]  # operation, dtype, sizes, "file:line"
Arrow = tuple[int, int]

_LINE = 18  # pixels between two calls
_STEP = 7  # pixels between neighbouring arrows
_LETTER = 7.3  # width of a letter


def arrows(uses: list[tuple[Any, ...]]) -> list[Arrow]:
    """(writer, reader) indices of calls. uses: for each call its (block, whether it is written) in turn."""
    result: dict[Arrow, None] = {}
    writer: dict[int, int] = {}
    for i, use in enumerate(uses):
        pairs = list(zip(use[::2], use[1::2], strict=True))
        for block, _ in pairs:
            if block in writer and writer[block] != i:
                result[writer[block], i] = None
        writer.update({block: i for block, written in pairs if written})
    return list(result)


def draw(path: str | os.PathLike[str], title: str, calls: list[Call], links: list[Arrow]) -> None:
    """Writes the picture to a file: in any format if Graphviz is installed, else as SVG."""
    path = os.fspath(path)
    kind = os.path.splitext(path)[1][1:].lower()
    dot = shutil.which("dot")
    if dot is None and kind != "svg":
        raise ArgumentError(f"draw: {path!r} needs Graphviz, which is not installed; only .svg does not")
    if dot is None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(svg(title, calls, links))
        return
    process = subprocess.run(
        [dot, f"-T{kind}", "-o", path], input=graph(title, calls, links), capture_output=True, text=True
    )
    if process.returncode:
        raise Error(f"draw: Graphviz refused it: {process.stderr.strip()}")


def graph(title: str, calls: list[Call], links: list[Arrow]) -> str:
    """The graph in Graphviz's language."""
    lines = ["digraph {", f'label="{_quoted(title)}"; labelloc=t; node [shape=box, fontname="monospace", fontsize=10];']
    for i, (name, dtype, sizes, where) in enumerate(calls):
        lines.append(f'{i} [label="{_quoted(f"{i + 1} {name}")}\\n{dtype} {sizes_text(sizes)}\\n{_quoted(where)}"];')
    lines += [f"{a} -> {b};" for a, b in links]
    return "\n".join([*lines, "}"])


def svg(title: str, calls: list[Call], links: list[Arrow]) -> str:
    """A line for each call, and the arrows as arcs to the left, long ones outside."""
    lanes = _lanes(links)
    left = _STEP * (max(lanes.values(), default=0) + 3)
    rows = [
        f"{i:>3}  {name}  {dtype} {sizes_text(sizes)}  {where}"
        for i, (name, dtype, sizes, where) in enumerate(calls, 1)
    ]
    width = int(left + _LETTER * max(map(len, [title, *rows])) + 20)
    height = _LINE * (len(calls) + 3)
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="monospace" '
        'font-size="12">',
        '<defs><marker id="head" markerWidth="6" markerHeight="6" refX="5" refY="3" orient="auto">'
        '<path d="M0,0 L6,3 L0,6 z" fill="#4a6fa5"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="{_LINE}" font-weight="bold">{escape(title)}</text>',
    ]
    for (a, b), lane in lanes.items():
        start, end, x = _height(a), _height(b), left - _STEP * (lane + 2)
        text.append(
            f'<path d="M{left - 4},{start} H{x + 3} Q{x},{start} {x},{start + 3} V{end - 3} Q{x},{end} {x + 3},{end} '
            f'H{left - 4}" fill="none" stroke="#4a6fa5" marker-end="url(#head)"/>'
        )
    for i, row in enumerate(rows):
        text.append(f'<text x="{left}" y="{_height(i) + 4}" xml:space="preserve">{escape(row)}</text>')
    return "\n".join([*text, "</svg>", ""])


def _lanes(links: list[Arrow]) -> dict[Arrow, int]:
    """The column of each arrow's vertical part: short ones near the text, without overlap."""
    taken: list[list[Arrow]] = []
    lanes: dict[Arrow, int] = {}
    for a, b in sorted(links, key=lambda link: (link[1] - link[0], link)):
        lane = next((k for k, others in enumerate(taken) if all(b <= c or d <= a for c, d in others)), len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((a, b))
        lanes[a, b] = lane
    return lanes


def _height(i: int) -> int:
    return _LINE * (i + 2) + _LINE // 2


def sizes_text(sizes: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, sizes))})"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
