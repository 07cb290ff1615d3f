"""What memory bounds: 1e8 float32 elements, rows of 1024. The copy is what the others are measured by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..library import Run
from .library import OnDevice, cases_of

CASES, add = cases_of("bandwidth")


def _copy(lib: OnDevice) -> Run:
    x = lib.random(lib.elements)
    y = lib.module.empty_like(x)
    return lambda: y.copy_(x)


def _over(name: str, call: Callable[..., Any], moved: float, inputs: int = 1, rows: bool = False) -> None:
    """A case over the elements as one row or as many; moved: bytes an element."""

    def setup(lib: OnDevice) -> Run:
        shape = (lib.elements // lib.row, lib.row) if rows else (lib.elements,)
        given = [lib.random(*shape) for _ in range(inputs)]
        return lambda: call(lib.module, *given)

    add(name, setup, moved=moved, counted=False)


add("copy", _copy, moved=8, counted=False)
_over("a + b", lambda m, a, b: a + b, 12, inputs=2)
_over("a * 2", lambda m, a: a * 2, 8)
_over("exp", lambda m, a: a.exp(), 8)
_over("sigmoid", lambda m, a: a.sigmoid(), 8)
_over("where(a > b, a, b)", lambda m, a, b: m.where(a > b, a, b), 22, inputs=2)
_over("a + row", lambda m, a: a + a[0], 8, rows=True)
_over("sum", lambda m, a: a.sum(), 4)
_over("sum(1)", lambda m, a: a.sum(1), 4, rows=True)
_over("sum(0)", lambda m, a: a.sum(0), 4, rows=True)
_over("amax(1)", lambda m, a: a.amax(1), 4, rows=True)
_over("softmax(1)", lambda m, a: a.softmax(1), 8, rows=True)
_over("layer_norm", lambda m, a: m.nn.functional.layer_norm(a, a.shape[1:]), 8, rows=True)
