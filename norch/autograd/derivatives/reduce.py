"""Derivatives of the reductions."""

from __future__ import annotations

import math
from typing import Any

from ..._handle import Handle
from ..forms import Binary, Operation, Reduction, Unary, ViewOf
from ..grad_mode import mode

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off


class Sum(Reduction):
    shares_grad = True
    def grad_x(self, g: Any) -> Any: return self.spread(g)


class Mean(Reduction):  # param: how many elements went into one
    shares_grad = True
    def grad_x(self, g: Any) -> Any: return self.spread(g / self.param)


class MeanSquare(Reduction):  # of all elements, param of them
    def grad_x(self, g: Any) -> Any: return self.x * (g * (2 / self.param))


class Prod(Reduction):
    def grad_x(self, g: Any) -> Any:
        """The product of all others: out / x, but where there is a zero, that of those before and those behind."""
        x = self.x
        if not (x == 0).any().item():
            return self.spread(g * self.out) / x
        line, dim = (x.flatten(), 0) if self.axes is None or x.ndim == 0 else (x, self.axes[0])
        others = line._products_of_others(dim) * line._products_of_others(dim, True)
        return self.spread(g) * others.reshape(x.shape)


def _shared(node: Reduction, g: Any, x: Any, out: Any) -> Any:
    """Equal maxima share the gradient; NaNs, where there are some, are the maxima."""
    chosen = (x == node.spread(out)) | x.isnan()
    share = g / chosen._reduced("sum", node.axes, node.keepdim)
    return node.spread(share).where(chosen, 0)


class Max(Reduction):  # of all elements
    def grad_x(self, g: Any) -> Any: return _shared(self, g, self.x, self.out)


class Min(Max):
    grad_x = Max.grad_x


class Amax(Reduction):  # as in PyTorch, NaN for all beside a NaN, which equals nothing
    def grad_x(self, g: Any) -> Any:
        chosen = self.x == self.spread(self.out)
        return self.spread(g / chosen._reduced("sum", self.axes, self.keepdim)) * chosen


class Amin(Amax):
    grad_x = Amax.grad_x


class Var(Reduction):  # param: the number of elements less the correction
    def grad_x(self, g: Any) -> Any:
        centred = self.x - self.spread(self.x._reduced("mean", self.axes, self.keepdim))
        return self.spread(g) * centred * (2 / self.param if self.param > 0 else math.nan)


class Std(Reduction):
    def grad_x(self, g: Any) -> Any:
        centred = self.x - self.spread(self.x._reduced("mean", self.axes, self.keepdim))
        slope = g / (self.out.where(self.out != 0, math.inf) * (self.param if self.param > 0 else math.nan))
        return self.spread(slope) * centred


class Norm(Reduction):  # sqrt(sum(x * x)); flat at 0
    def grad_x(self, g: Any) -> Any: return self.spread(g / self.out.where(self.out != 0, math.inf)) * self.x


class NormMax(Reduction):  # of |x|: the largest, or the smallest
    def grad_x(self, g: Any) -> Any: return _shared(self, g, self.x.abs(), self.out) * self.x.sign()


class NormP(Reduction):  # sum(|x| ** p) ** (1 / p), p in param; flat where the slope is infinite, and at 0
    def grad_x(self, g: Any) -> Any:
        p, out = self.param, self.out
        if p >= 1:
            slope = self.x.sign() * self.x.abs().pow(p - 1)
            return slope * self.spread(g / out.where(out != 0, math.inf).pow(p - 1))
        size = self.x.abs().where(self.x != 0, math.inf)
        return self.x.sign() * size.pow(p - 1) * self.spread(g * out.pow(1 - p))


class Median(Reduction):  # one of the elements; its equals share the gradient
    def grad_x(self, g: Any) -> Any:
        out = self.spread(self.out)
        chosen = (self.x == out) | (self.x.isnan() & out.isnan())
        return self.spread(g / chosen._reduced("sum", self.axes, self.keepdim)).where(chosen, 0)


class Logsumexp(Reduction):
    def grad_x(self, g: Any) -> Any: return self.spread(g) * (self.x - self.spread(self.out)).exp()


class SumTo(Operation):
    """Summed over broadcast dimensions, cast and moved; goes back by broadcasting."""
    __slots__ = ("like",)
    shares_grad = True
    like: Handle

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (g._expand_to(self.like),)


class Spread(ViewOf):
    """A reduced shape seen in the full one: the reverse of a reduction."""
    def propagate(self, g: Any) -> tuple[Any, ...]:
        axes, keepdim = self.step[1][1:]
        return (g._reduced("sum", axes, keepdim),)


class Cdist(Binary):
    """The norms, of order param, of all differences of the rows of a and b. rows: of a, how many are taken at a time
    where nobody records; but for halves, whose sums are rounded once."""
    __slots__ = ("param", "rows")
    likes: Any
    rows: int

    def propagate(self, g: Any) -> tuple[Any, ...]:
        (to_a, to_b), (like_a, like_b), b = self.edges, self.likes, self.b.unsqueeze(-3)
        parts: Any = [(self.a, self.out, g)]
        if not mode.enabled and self.rows < g.shape[-2] and g.element_size() >= 4:
            parts = zip(*(x.split(self.rows, -2) for x in parts[0]))  # noqa: B905  (of as many rows)
        by_a, by_b = [], None
        for a, out, part in parts:
            slope = _steepest(a.unsqueeze(-2) - b, self.param, out, part)
            if to_a is not None:
                by_a.append(slope._reduced("sum", (-2,), False))
            if to_b is not None:
                column = slope._reduced("sum", (-3,), False)
                by_b = column if by_b is None else by_b + column
        grad_a = g._cat_of(by_a, -2)._sum_to(like_a) if by_a else None
        return grad_a, None if by_b is None else -by_b._sum_to(like_b)


def _steepest(x: Any, p: float, norms: Any, g: Any) -> Any:
    """The gradient by x (..., K) of its norms (...) of order p."""
    if p < 2 and p % 1 == 0:
        return x.sign() * (g * p).unsqueeze(-1)
    norm = (Norm if p == 2 else NormMax if p == math.inf else NormP)(x._node)
    norm.like, norm.axes, norm.keepdim, norm.param, norm._x, norm._out = x, (-1,), False, p, x, norms
    return norm.grad_x(g)


class Pdist(Unary):
    """Cdist of x with itself, each two rows once: those that pairs gives of their number."""
    __slots__ = ("pairs", "param")
    pairs: Any

    def grad_x(self, g: Any) -> Any:
        x, (a, b) = self.x, self.pairs(self.x)
        slope = _steepest(x.index_select(0, a) - x.index_select(0, b), self.param, self.out, g)
        return x.new_zeros(x.shape).index_add(0, a, slope).index_add(0, b, -slope)


class Euclidean(Binary):  # the same of order 2, by products
    likes: Any

    def propagate(self, g: Any) -> tuple[Any, ...]:
        (to_a, to_b), (like_a, like_b) = self.edges, self.likes
        a, b, slope = self.a, self.b, g / self.out.where(self.out != 0, math.inf)
        return (
            None if to_a is None else _towards(a, slope, b)._sum_to(like_a),
            None if to_b is None else _towards(b, slope.mT, a)._sum_to(like_b),
        )


def _towards(a: Any, slope: Any, b: Any) -> Any:
    """The sum of slope_ij (a_i - b_j) over j."""
    return a * slope._reduced("sum", (-1,), True) - slope._product(b)
