"""Derivative of where, for masked_fill."""

from __future__ import annotations

from typing import Any

from ..forms import Ternary

# ruff: noqa: D101, D102, E704
# fmt: off


class Where(Ternary):  # a chooses b or c
    def grad_a(self, g: Any) -> Any: return None
    def grad_b(self, g: Any) -> Any: return g.where(self.a, 0)
    def grad_c(self, g: Any) -> Any: return g.where(self.a.logical_not(), 0)
