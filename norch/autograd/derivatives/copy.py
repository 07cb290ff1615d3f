"""Derivatives of copies, casts and joins."""

from __future__ import annotations

from typing import Any

from ..forms import Operation
from ..inplace import zeros_of
from ..node import Node

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off


class Clone(Operation):
    shares_grad = True
    def propagate(self, g: Any) -> tuple[Any, ...]: return (g,)


class Cast(Operation):
    """To another dtype or device, and back."""
    __slots__ = ("like",)
    shares_grad = True
    def propagate(self, g: Any) -> tuple[Any, ...]: return (g._sum_to(self.like),)


class CopyInto(Operation):
    """src broadcast and cast into a tensor, whose former values have the gradient 0."""
    __slots__ = ("like",)
    shares_grad = True

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return g._sum_to(self.like), None if self.edges[1] is None else zeros_of(g)


class Cat(Operation):
    __slots__ = ("dim", "dtypes", "sizes")
    shares_grad = True

    def propagate(self, g: Any) -> tuple[Any, ...]:
        parts, start = [], 0
        for edge, size, dtype in zip(self.edges, self.sizes, self.dtypes, strict=True):
            if size is None:  # an empty tensor of one dimension, skipped by cat
                parts.append(None if edge is None else g.new_zeros(0))
                continue
            parts.append(None if edge is None else g._slice(self.dim, start, start + size, 1).to(dtype))
            start += size
        return tuple(parts)


class Stack(Operation):
    __slots__ = ("dim", "dtypes")
    shares_grad = True

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return tuple(
            None if edge is None else g.select(self.dim, i).to(dtype)
            for i, (edge, dtype) in enumerate(zip(self.edges, self.dtypes, strict=True))
        )


class Pad(Operation):
    """What was put on has no gradient, what was cut off has 0."""
    __slots__ = ("ends",)
    ends: Any

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (g._padded([(dim, -before, -after) for dim, before, after in self.ends], 0),)


__all__ = [name for name, thing in list(globals().items()) if isinstance(thing, type) and issubclass(thing, Node)]
