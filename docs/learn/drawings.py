"""Draws index.svg, graph.svg and tile.svg of the chapters, without a library: `python docs/learn/drawings.py`."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from ways import BLUE, GREY  # noqa: E402  (legible on white and on black)

ORANGE = "#d9822b"


def text(x: float, y: float, words: str, color: str = GREY, size: int = 14, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" fill="{color}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, color: str = GREY, fill: float = 0.0) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{color}" fill-opacity="{fill}" '
        f'stroke="{color}"/>'
    )


def arrow(x: float, y: float, to_x: float, to_y: float, color: str = GREY) -> str:
    return f'<path d="M{x} {y}L{to_x} {to_y}" fill="none" stroke="{color}" marker-end="url(#tip)"/>'


def picture(name: str, width: int, height: int, parts: list[str]) -> str:
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f"<title>{escape(name)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def index() -> str:
    """What each part of x[1:, None, ::-1] leaves of 3 x 4 numbers."""
    stages = [
        ("x", "(3, 4)", "(4, 1)", 0, range(12)),
        ("x[1:]", "(2, 4)", "(4, 1)", 4, range(4, 12)),
        ("x[1:, None]", "(2, 1, 4)", "(4, 0, 1)", 4, range(4, 12)),
        ("x[1:, None, ::-1]", "(2, 1, 4)", "(4, 0, -1)", 7, range(4, 12)),
    ]
    parts, side = [], 34
    for at, (name, shape, strides, offset, kept) in enumerate(stages):
        left = 12 + at * 172
        parts.append(text(left + 2 * side, 20, name, BLUE, 15))
        for position in range(12):
            y, x = divmod(position, 4)
            color = ORANGE if position == offset else BLUE if position in kept else GREY
            fill = 0.35 if position == offset else 0.15 if position in kept else 0.0
            parts.append(box(left + x * side, 34 + y * side, side - 3, side - 3, color, fill))
            parts.append(text(left + x * side + 15.5, 34 + y * side + 21, str(position), color))
        for line, words in enumerate((f"offset {offset}", f"shape {shape}", f"strides {strides}")):
            parts.append(text(left + 2 * side, 158 + 20 * line, words, ORANGE if not line else GREY))
    return picture("x[1:, None, ::-1], part by part", 690, 206, parts)


def graph() -> str:
    """The graph of loss = sin(w * x) + w, and the gradients that go back along its edges."""
    nodes = {
        "w": (60, 150, "w", "leaf"),
        "x": (60, 40, "x", "leaf"),
        "a": (250, 70, "a = w * x", "seq 2"),
        "b": (420, 70, "b = sin(a)", "seq 3"),
        "loss": (600, 130, "loss = b + w", "seq 4"),
    }
    edges = [
        ("x", "a", "g w"),
        ("w", "a", "g x"),
        ("a", "b", "g cos a"),
        ("b", "loss", "g"),
        ("w", "loss", "g"),
    ]
    parts = []
    for begin, end, gradient in edges:
        (x, y, *_), (to_x, to_y, *_) = nodes[begin], nodes[end]
        half = 30 if begin in "wx" else 52
        parts.append(arrow(x + half, y, to_x - 58, to_y))
        middle = ((x + half + to_x - 58) / 2, (y + to_y) / 2 - 8)
        parts.append(text(*middle, gradient, ORANGE, 13))
    for x, y, name, seq in nodes.values():
        half = 30 if seq == "leaf" else 54
        parts.append(box(x - half, y - 24, 2 * half, 48, BLUE, 0.12))
        parts.append(text(x, y - 2, name, BLUE, 15))
        parts.append(text(x, y + 16, seq, GREY, 12))
    parts.append(text(330, 195, "arrows: how the loss is computed; orange: what the walk back passes on"))
    return picture("The graph of loss = sin(w * x) + w", 680, 206, parts)


def tile() -> str:
    """A tile of c, the rows of a and the columns of b that it needs, and what one step of k reads of both."""
    size, rows, columns = 170, 48, 64
    left, top = 230, 220
    parts = [
        box(20, top, size, size),
        box(left, 20, size, size),
        box(left, top, size, size),
        text(20 + size / 2, top + size + 22, "a"),
        text(left + size + 16, 20 + size / 2, "b"),
        text(left + size + 16, top + size / 2, "c"),
        box(20, top + 60, size, rows, BLUE, 0.15),
        box(left + 50, 20, columns, size, BLUE, 0.15),
        box(left + 50, top + 60, columns, rows, ORANGE, 0.35),
        box(100, top + 60, 8, rows, BLUE, 0.8),
        box(left + 50, 100, columns, 8, BLUE, 0.8),
        text(left + 50 + columns / 2, top + 60 + rows / 2 + 5, "tile", ORANGE, 15),
        text(104, top + 52, "k", BLUE),
        text(left + 40, 109, "k", BLUE),
    ]
    for line, words in enumerate(
        (
            "The tile stays in registers.",
            "For each k the core loads",
            "12 numbers of a and",
            "2 vectors of b, and does",
            "24 vector multiply-adds.",
        )
    ):
        parts.append(text(450, top + 50 + 22 * line, words, anchor="start"))
    return picture("A tile of the product", 640, 420, parts)


def pictures() -> dict[str, str]:
    """{name of the file: its text}."""
    return {"index.svg": index(), "graph.svg": graph(), "tile.svg": tile()}


if __name__ == "__main__":
    for name, svg in pictures().items():
        (HERE / name).write_text(svg, encoding="utf-8")
