"""The table of ONNX operators: one function for each library call, which takes the graph, the results (Refs) and the
arguments (Refs, numbers and Sizes), and returns the names of the results; "" for a result that ONNX does not have. A
call without an entry is refused, with its name and the line of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

ENTRIES: dict[str, Callable[..., Any]] = {}


def entry(*names: str) -> Callable[[Any], Any]:
    """Decorates the function for these library calls."""

    def declare(function: Any) -> Any:
        ENTRIES.update(dict.fromkeys(names, function))
        return function

    return declare


def merged(values: Sequence[Any]) -> Any:
    """The value if all traces have the same value, else the tuple of values."""
    return values[0] if all(value == values[0] for value in values) else tuple(values)
