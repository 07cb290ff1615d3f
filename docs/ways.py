"""Draws the ways of a call, of backward() and of a captured step: docs/way_*.svg. `make docs` runs it.

A way is a list of (title, what happens there, what goes on to the next); the titles that have a slash are files.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent
WIDTH, BOX, GAP = 640, 50, 34  # pixels: the picture, a box, and the arrow to the next one
GREY, BLUE = "#768390", "#4f83e0"  # legible on white and on black

ADD = [
    ("c = a + b", "Tensor.__add__, which norch/ops/pointwise.py declares", "two objects"),
    ("csrc/python/method.c", "calls the row; what is no tensor norch/ops/_rows.py converts", "the row ADD, a, b"),
    ("csrc/python/calls.c", "calls norch_binary; makes the node if a gradient is wanted", "two struct norch_tensor"),
    (
        "csrc/ops/pointwise.c",
        "promotes dtypes, broadcasts shapes, makes the output",
        "a plan: addresses and strides",
    ),
    ("csrc/core/dispatch.c", "looks the kernel up; releases the GIL if the work is long", "the plan, and a kernel"),
    ("csrc/cpu/pointwise.c", "cuts the loops into chunks, for several threads", "a chunk"),
    ("csrc/cpu/pointwise_loops.h", "the loop, around the formula a + b of csrc/ops.def", ""),
]
BACKWARD = [
    ("loss.backward()", "begins with the gradient 1 at the node of the loss", "1"),
    ("5  SumBackward", "the sum's gradient, for each element", "(1, 1)"),
    ("4  AddBackward", "to both of its inputs: the sine gets it, and y, which waits", "(1, 1)"),
    ("3  SinBackward", "times cos y; added to what waits for y", "1 + cos y = (0.58, 1.96)"),
    ("2  MulBackward", "times x; summed to the shape of w, which was broadcast", "6.46"),
    ("1  AccumulateGrad", "a leaf: adds it to w.grad", ""),
]
CAPTURED = [
    ("call 1", "runs: .grad and the states of the optimizer come to be", ""),
    ("calls 2 and 3", "run, and csrc/program/record.c notes each call with its plan", "two recordings, compared"),
    ("csrc/program/arena.c", "leaves out dead calls; results share one block of memory", "calls, a block"),
    ("csrc/program/fuse.c", "makes chains, which run tile by tile", "a program"),
    ("call 4, and all after it", "are replayed: the function itself no longer runs", "arguments"),
    ("csrc/python/capture/replay.c", "sees that all is as it was when it was recorded", "addresses of the arguments"),
    ("csrc/program/run.c", "runs the calls one after the other: Python is not asked", ""),
]


def picture(way: list[tuple[str, str, str]], name: str) -> str:
    """The way from top to bottom, as SVG."""
    height = len(way) * (BOX + GAP) - GAP + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f"<title>{escape(name)}</title>",
    ]
    for at, (title, what, handed) in enumerate(way):
        y = 4 + at * (BOX + GAP)
        lines += [
            f'<rect x="4" y="{y}" width="{WIDTH - 8}" height="{BOX}" rx="6" fill="none" stroke="{BLUE}"/>',
            f'<text x="18" y="{y + 20}" fill="{BLUE}" font-size="15" font-weight="bold">{escape(title)}</text>',
            f'<text x="18" y="{y + 40}" fill="{GREY}" font-size="15">{escape(what)}</text>',
        ]
        if at + 1 < len(way):
            top, tip = y + BOX + 3, y + BOX + GAP - 3
            lines += [
                f'<path d="M60 {top}V{tip}m-6 -7l6 7l6 -7" fill="none" stroke="{GREY}"/>',
                f'<text x="78" y="{top + 19}" fill="{GREY}" font-size="14">{escape(handed)}</text>',
            ]
    return "\n".join([*lines, "</svg>", ""])


def pictures() -> dict[str, str]:
    """{name of the file: its text}."""
    return {
        "way_add.svg": picture(ADD, "The way of a + b"),
        "way_backward.svg": picture(BACKWARD, "The way of backward()"),
        "way_captured.svg": picture(CAPTURED, "The way of a captured step"),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (DOCS / name).write_text(text, encoding="utf-8")
