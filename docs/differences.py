"""The notes "Differs from PyTorch" of the reference and of the table of operations, read out of docs/differences.md.

Of a name between backticks in that page, the note is the sentence, or the row of a table with two columns, that it
stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import norch
from norch import linalg, nn, optim, utils

PAGE = Path(__file__).resolve().parent / "differences.md"
# Where a name without a module is looked for, all of them; methods of Tensor are those of the functions of norch.
_PLACES = (norch, nn, nn.functional, nn.utils, linalg, optim, utils.data)


def _meant(name: str) -> list[Any]:
    """The functions and classes that a name stands for."""
    modules, _, last = name.removeprefix("norch.").rpartition(".")
    places = [place for place in _PLACES if place.__name__.endswith(modules)] if modules else _PLACES
    found = [getattr(place, last, None) for place in places]
    return [thing for thing in found if callable(thing) and last != "Tensor"]  # which has no page of its own


def _statements() -> Iterator[tuple[str, str]]:
    """(heading, statement) of the page but its classes of errors: sentences and rows of tables, as Markdown."""
    heading = ""
    for block in re.sub(r"```.*?```", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL).split("\n\n"):
        block = block.strip()
        if block.startswith("#"):
            heading = block.lstrip("# ")
        elif block.startswith("|") and heading != "Errors":
            rows = [row.strip("| ").split(" | ") for row in block.splitlines()[2:]]
            yield from ((heading, f"Options of {row[0]} that are not there: {row[1]}.") for row in rows)
        elif heading != "Errors":
            yield from ((heading, sentence) for sentence in re.split(r"(?<=[.:]) (?=[A-Z`])", " ".join(block.split())))


def notes() -> dict[Any, tuple[str, str]]:
    """Of each function and class (norch.nn.CTCLoss) what is said of it, without links, and the anchor where."""
    found: dict[Any, tuple[list[str], str]] = {}
    for heading, statement in _statements():
        said = re.sub(r" ?\(?\[[^]]*\]\([^)]*\)\)?", "", statement)
        for name in re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", statement):
            for thing in _meant(name):
                sentences, _ = found.setdefault(thing, ([], heading.lower().replace(" ", "-")))
                sentences += [said] if said not in sentences else []
    return {thing: (" ".join(sentences), anchor) for thing, (sentences, anchor) in found.items()}
