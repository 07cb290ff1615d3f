"""Derivatives of the products."""

from __future__ import annotations

from typing import Any

from ..._lib import lib
from ..forms import Binary, Ternary
from ..grad_mode import mode

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off


class Matmul(Binary):
    """a @ b, either perhaps transposed. A vector counts as a matrix of one row (a) or one column (b)."""
    __slots__ = ("transposed", "vectors")

    def grad_a(self, g: Any) -> Any:
        if self.vectors != (False, False):
            return self._grad_vectors(g)[0]
        ta, tb = self.transposed
        return self.b._product(g, tb, True) if ta else g._product(self.b, False, not tb)

    def grad_b(self, g: Any) -> Any:
        if self.vectors != (False, False):
            return self._grad_vectors(g)[1]
        ta, tb = self.transposed
        return g._product(self.a, True, ta) if tb else self.a._product(g, not ta, False)

    def _grad_vectors(self, g: Any) -> tuple[Any, Any]:
        (a_vector, b_vector), (ta, tb) = self.vectors, self.transposed
        to_a, to_b = self.edges
        grad_a = grad_b = None
        if a_vector and b_vector:
            grad_a = None if to_a is None else g * self.b
            grad_b = None if to_b is None else g * self.a
        elif b_vector:  # (..., M, K) @ (K): the gradient of a is an outer product
            if to_a is not None:
                grad_a = (g.unsqueeze(-2) * self.b.unsqueeze(-1)) if ta else (g.unsqueeze(-1) * self.b)
            if to_b is not None:
                grad_b = self.a._product(g.unsqueeze(-1), not ta, False).squeeze(-1)
        else:  # (K) @ (..., K, N)
            if to_a is not None:
                grad_a = g.unsqueeze(-2)._product(self.b, False, not tb).squeeze(-2)
            if to_b is not None:
                grad_b = (g.unsqueeze(-1) * self.a) if tb else (self.a.unsqueeze(-1) * g.unsqueeze(-2))
        return grad_a, grad_b


class Linear(Ternary):
    """x @ weight^T + bias, with x (..., K), weight (N, K), bias (N)."""
    __slots__ = ("bias",)  # for its shape; its values are not needed, and may change

    def grad_a(self, g: Any) -> Any: return g._product(self.b)

    def grad_b(self, g: Any) -> Any:
        ndim = g.ndim
        if ndim == 2:
            return g._product(self.a, True)
        if ndim == 1:
            return g.unsqueeze(-1) * self.a
        if mode.enabled:
            return g.flatten(0, -2)._product(self.a.flatten(0, -2), True)
        return lib.norch_matmul(lib.norch_flatten(g, 0, -2), lib.norch_flatten(self.a, 0, -2), True, False)

    def grad_c(self, g: Any) -> Any:
        total = g._sum_to(self.bias)
        return g.clone() if total is g else total


class Bilinear(Ternary):  # sum of c_oij a_i b_j
    def grad_a(self, g: Any) -> Any: return g._bilinear(self.b, self.c.permute(1, 0, 2))
    def grad_b(self, g: Any) -> Any: return g._bilinear(self.a, self.c.permute(2, 0, 1))
    def grad_c(self, g: Any) -> Any: return g._bilinear_weight(self.a, self.b)
