"""Derivatives of scans along an axis, and of softmax.

dim is the axis; reverse says that a scan came from the end. The derivative of a scan is another, the other way.
"""

from __future__ import annotations

from typing import Any

from ..forms import Binary, Unary

# ruff: noqa: D101, D102, E704
# fmt: off


class Scan(Unary):
    __slots__ = ("dim", "reverse")
    reverse: bool

    def turned(self, x: Any, kind: str) -> Any:
        """The scan of x that goes the other way."""
        return x._scan(kind, self.dim, not self.reverse)


class Cumsum(Scan):
    shares_grad = True
    def grad_x(self, g: Any) -> Any: return self.turned(g, "sum")


class Cumprod(Scan):
    def grad_x(self, g: Any) -> Any:
        """The sum of g * out from here on, over x; without dividing where an element is 0."""
        if not (self.x == 0).any().item():
            return self.turned(g * self.out, "sum") / self.x
        x, dim = self.x, self.dim
        if x.ndim == 0:
            return g.clone()
        places = range(x.shape[dim])[::1 if self.reverse else -1]
        parts: list[Any] = []  # what follows each place, as a factor of the product up to there
        for place, last in zip(places, (None, *places)):  # noqa: B905
            here = g.select(dim, place)
            parts.append(here if last is None else here + parts[-1] * x.select(dim, last))
        tails = type(x)._stack_of(parts if self.reverse else parts[::-1], dim)
        return tails * x._products_of_others(dim, self.reverse)


class Logcumsumexp(Scan):
    def grad_x(self, g: Any) -> Any:
        """exp(x) times the sum of g / exp(out) from here on, by logarithms of either sign of g."""
        parts = []
        for sign in (g > 0, g < 0):
            logs = g.abs().where(sign, 1).log().where(sign, -3e38 if g.element_size() > 2 else -6e4)
            parts.append((self.turned(logs - self.out, "logsumexp") + self.x).exp())
        return parts[0] - parts[1]


class Softmax(Unary):
    __slots__ = ("dim",)
    def grad_x(self, g: Any) -> Any: return g._softmax_backward(self.out, self.dim, False)


class LogSoftmax(Unary):
    __slots__ = ("dim",)
    def grad_x(self, g: Any) -> Any: return g._softmax_backward(self.out, self.dim, True)


class SoftmaxBackward(Binary):  # (a - sum(a b)) b
    __slots__ = ("dim",)
    def grad_a(self, g: Any) -> Any: return g._softmax_backward(self.b, self.dim, False)

    def grad_b(self, g: Any) -> Any:
        a, b, dim = self.a, self.b, self.dim
        return g * (a - (a * b).sum(dim, True)) - a * (g * b).sum(dim, True)


class LogSoftmaxBackward(Binary):  # a - exp(b) sum(a)
    __slots__ = ("dim",)
    def grad_a(self, g: Any) -> Any: return g - (g * self.b.exp()).sum(self.dim, True)
    def grad_b(self, g: Any) -> Any: return -g * self.b.exp() * self.a.sum(self.dim, True)
