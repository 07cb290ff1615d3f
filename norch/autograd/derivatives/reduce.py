"""Derivatives of the reductions."""

from __future__ import annotations

import math
from typing import Any

from ..._handle import Handle
from ..forms import Operation, Reduction, ViewOf

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off


class Sum(Reduction):
    passes = True
    def grad_x(self, g: Any) -> Any: return self.spread(g)


class Mean(Reduction):  # param: how many elements went into one
    passes = True
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


class Amax(Reduction):  # equal maxima share the gradient; NaNs, where there are some, are the maxima
    def grad_x(self, g: Any) -> Any:
        chosen = (self.x == self.spread(self.out)) | self.x.isnan()
        share = g / chosen._reduced("sum", self.axes, self.keepdim)
        return self.spread(share).where(chosen, 0)


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
    passes = True
    like: Handle

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (g._expand_to(self.like),)


class Spread(ViewOf):
    """A reduced shape seen in the full one: the reverse of a reduction."""
    def propagate(self, g: Any) -> tuple[Any, ...]:
        axes, keepdim = self.step[1][1:]
        return (g._reduced("sum", axes, keepdim),)
