"""Derivatives of indexing: reads and writes are each other's reverse.

A node keeps its indices, and notices when they were changed in place since.
"""

from __future__ import annotations

from typing import Any

from ..._handle import Handle
from ...dtype import bool_
from ..forms import Binary, Operation
from ..inplace import zeros_of
from ..node import freed, saved_intact

# ruff: noqa: D101, D102, E704
# fmt: off


class _Indexed(Operation):
    """places: which elements; like: the shape of what was read from, or of the values that were written."""
    __slots__ = ("like", "places")
    places: Any

    def saved(self) -> Any:
        """The places, if nobody has changed them."""
        if self.places is None:
            raise freed(self)
        for index in self.places.kept():
            if index._cell is not None:
                saved_intact(self, index)
        return self.places

    def release(self) -> None:
        self.places = None


class IndexGet(_Indexed):
    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (zeros_of(self.like)._put_at(self.saved(), g, add=True),)


class IndexPut(_Indexed):
    """edges: x and the values written into it or, with adds, added. All that were written get their gradient, also
    those that a later one has replaced."""
    __slots__ = ("adds",)
    shares_grad = True
    adds: bool

    def propagate(self, g: Any) -> tuple[Any, ...]:
        to_x, to_values = self.edges
        kept = None if to_x is None else g if self.adds else g.clone()._put_at(self.saved(), g.new_zeros(()))
        return kept, None if to_values is None else g._get_at(self.saved())._sum_to(self.like)


class IndexFill(IndexPut):
    """One value for all places, of which each counts once, however often it is named."""
    def propagate(self, g: Any) -> tuple[Any, ...]:
        filled = g.new_zeros(g.shape, dtype=bool_)._put_at(self.saved(), g.new_ones((), dtype=bool_))
        to_x, to_value = self.edges
        kept = None if to_x is None else g.masked_fill(filled, 0)
        return kept, None if to_value is None else g.where(filled, 0).sum()


class Embedding(IndexGet):
    """Rows of a table. padding: the row that gets no gradient, or None; counts: shared among its readers, or not."""
    __slots__ = ("by_frequency", "padding")
    padding: int | None
    by_frequency: bool

    def propagate(self, g: Any) -> tuple[Any, ...]:
        index, = self.saved().indices
        if self.padding is not None:
            g = g.masked_fill((index == self.padding).unsqueeze(-1), 0)
        if self.by_frequency:
            flat = index.flatten()
            counts = g.new_zeros(self.like.shape[0]).index_add_(0, flat, g.new_ones(flat.shape))
            g = g / counts[index].unsqueeze(-1)
        return super().propagate(g)


def _checked_index(self: Any) -> Any:
    if self.index is None:
        raise freed(self)
    if self.index._cell is not None:
        saved_intact(self, self.index)
    return self.index


class Placed(Operation):
    """index: which elements."""
    __slots__ = ("index",)
    saved = _checked_index

    def release(self) -> None:
        self.index = None


class _Along(Placed):
    """An index for each element along dim; like: the shape of x (gather) or src (scatter)."""
    __slots__ = ("dim", "like")


class Gather(_Along):
    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (zeros_of(self.like).scatter_add_(self.dim, self.saved(), g),)


class Scatter(_Along):
    """edges: x and src, which is written, or with adds added."""
    __slots__ = ("adds",)
    shares_grad = True
    adds: bool

    def propagate(self, g: Any) -> tuple[Any, ...]:
        to_x, to_src = self.edges
        kept = None if to_x is None else g if self.adds else g.scatter(self.dim, self.saved(), 0)
        return kept, None if to_src is None else _filled(g.gather(self.dim, self.saved()), self.like)


def _filled(part: Any, like: Handle) -> Any:
    """The gradient of a src that the index did not use up: 0 beyond it. One number was used everywhere."""
    if part.shape == like.shape:
        return part
    if like.ndim == 0:
        return part.sum()
    whole = zeros_of(like)
    _corner(whole, part.shape).copy_(part)
    return whole


def _corner(x: Any, shape: Any) -> Any:
    for dim, size in enumerate(shape):
        x = x._slice(dim, 0, size, 1)
    return x


class _ScatterReduce(Binary):
    """a with b combined into it."""
    __slots__ = ("dim", "index")
    saved = _checked_index

    def release(self) -> None:
        self._a = self._b = self._out = self.index = None


class ScatterExtreme(_ScatterReduce):
    """amax and amin: all that are equal to the result share its gradient."""
    def propagate(self, g: Any) -> tuple[Any, ...]:
        index, dim = self.saved(), self.dim
        mine = self.a == self.out
        theirs = _corner(self.b, index.shape) == self.out.gather(dim, index)
        share = g / mine.to(g.dtype).scatter_add(dim, index, theirs.to(g.dtype))
        return share.where(mine, 0), _filled(share.gather(dim, index).where(theirs, 0), self.b)


class ScatterProd(_ScatterReduce):
    """Products of all others: out / b, but where a zero is among them."""
    def propagate(self, g: Any) -> tuple[Any, ...]:
        index, dim = self.saved(), self.dim
        to_a, to_b = self.edges
        grad_a = grad_b = None
        if to_a is not None:
            grad_a = g * zeros_of(g).add_(1)._scatter_prod(dim, index, self.b)
        if to_b is not None:
            b = _corner(self.b, index.shape)
            zero = b == 0
            alone = zero & (zeros_of(g).scatter_add_(dim, index, zero.to(g.dtype)).gather(dim, index) == 1)
            without = self.a._scatter_prod(dim, index, b.masked_fill(alone, 1))
            others = (g * without).gather(dim, index)
            grad_b = _filled(others.where(alone, (g * self.out).gather(dim, index) / b.masked_fill(zero, 1)), self.b)
        return grad_a, grad_b


# ---- the loss of class indices: at says where they point, and how the losses are joined (ops/nll.py) ----------------


class Nll(Operation):
    __slots__ = ("at", "like")
    at: Any

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if self.at is None:
            raise freed(self)
        return (g._nll_spread(self.at, self.like),)

    def release(self) -> None:
        self.at = None


class NllSpread(Operation):
    __slots__ = ("at",)
    at: Any

    def propagate(self, g: Any) -> tuple[Any, ...]: return (g._nll(self.at),)
