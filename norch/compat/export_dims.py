"""``torch.export.Dim``: descriptions of sizes that may differ, for the dynamic_shapes of onnx.export()."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .._package.exports import publish

publish(globals(), name="norch.export.dynamic_shapes")


class Hint:
    """How a size without a name is exported: Dim.AUTO, Dim.DYNAMIC or Dim.STATIC. A call gives one with bounds."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None, *, bounded: bool = False):
        self.kind, self.min, self.max, self._bounded = kind, min, max, bounded

    def __call__(self, min: int | None = None, max: int | None = None) -> Hint:
        if self._bounded:
            raise TypeError(f"{self!r} has its bounds already")
        for name, bound in (("min", min), ("max", max)):
            if bound is not None and bound < 0:
                raise AssertionError(f"{name} must be non-negative, got {bound}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return Hint(self.kind, min, max, bounded=True)

    def __repr__(self) -> str:
        bounds = [f"{name}={x}" for name, x in (("min", self.min), ("max", self.max)) if x is not None]
        return f"DimHint({', '.join([self.kind, *bounds])})"


class Dim:
    """A size with a name. Axes with the same name have the same size. min and max describe it, and limit nothing.

    >>> batch = norch.export.Dim("batch", max=64)
    >>> batch
    Dim('batch', min=0, max=64)
    >>> norch.export.Dim.AUTO
    DimHint(AUTO)
    """

    AUTO: ClassVar[Any] = Hint("AUTO")
    DYNAMIC: ClassVar[Any] = Hint("DYNAMIC")
    STATIC: ClassVar[Any] = Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        self.min, self.max = 0 if min is None else min, math.inf if max is None else max
        if self.max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name

    def __repr__(self) -> str:
        # PyTorch does not show a min of 2.
        bounds = f"{f', min={self.min}' if self.min != 2 else ''}{f', max={self.max}' if self.max != math.inf else ''}"
        return f"Dim({self.__name__!r}{bounds})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)
