"""The ONNX operators of each library call: one entry a call, a function of the graph, the results (Refs) and the
arguments of the call (Refs, numbers, and Sizes), which gives the names of the results; "" is a result that the file
cannot have. A call without an entry is refused by its name and the line of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

ENTRIES: dict[str, Callable[..., Any]] = {}


def entry(*names: str) -> Callable[[Any], Any]:
    """Decorates the function of library calls."""

    def declare(function: Any) -> Any:
        ENTRIES.update(dict.fromkeys(names, function))
        return function

    return declare


def merged(values: Sequence[Any]) -> Any:
    """The value if it is the same in all traces, else the tuple of them."""
    return values[0] if all(value == values[0] for value in values) else tuple(values)
