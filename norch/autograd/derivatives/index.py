"""What nodes share that save indices."""

from __future__ import annotations

from typing import Any

from ..forms import Operation
from ..node import freed, saved_intact


class Placed(Operation):
    """index: which elements."""

    __slots__ = ("index",)

    def saved(self) -> Any:
        """The index, if nobody has changed it."""
        if self.index is None:
            raise freed(self)
        if self.index._cell is not None:
            saved_intact(self, self.index)
        return self.index

    def release(self) -> None:
        self.index = None
