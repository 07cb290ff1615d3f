"""Derivative of the view that repeats what was reduced."""

from __future__ import annotations

from typing import Any

from ..forms import ViewOf

# ruff: noqa: D101, D102, E704
# fmt: off


class Spread(ViewOf):
    """A reduced shape seen in the full one: the reverse of a reduction."""
    def propagate(self, g: Any) -> tuple[Any, ...]:
        axes, keepdim = self.step[1][1:]
        return (g._reduced("sum", axes, keepdim),)
