"""Conditions on the parameters of distributions and on their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._exports import publish
from ..dtype import float32, promote_types
from ..tensor import Tensor


class Constraint:
    """A condition on tensors. check(value) gives a bool for each event, of event_dim axes.

    >>> norch.distributions.constraints.positive.check(norch.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    def __init__(self, name: str, check: Callable[[Tensor], Tensor], event_dim: int = 0, is_discrete: bool = False):
        self.name, self.check, self.event_dim, self.is_discrete = name, check, event_dim, is_discrete

    def __repr__(self) -> str:
        return self.name


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers in [lower_bound, upper_bound]."""
    return Constraint("in [low, high]", lambda x: (x >= lower_bound) & (x <= upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Whole numbers in [lower_bound, upper_bound]."""
    name = f"a whole number in {lower_bound} ... {upper_bound}"
    return Constraint(name, lambda x: (x % 1 == 0) & (x >= lower_bound) & (x <= upper_bound), is_discrete=True)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """base_constraint for events of reinterpreted_batch_ndims more axes: it holds for all their elements."""
    axes = tuple(range(-reinterpreted_batch_ndims, 0))
    return Constraint(
        base_constraint.name,
        (lambda x: base_constraint.check(x).all(axes)) if axes else base_constraint.check,
        base_constraint.event_dim + reinterpreted_batch_ndims,
        base_constraint.is_discrete,
    )


def _is_lower_cholesky(x: Tensor) -> Tensor:
    return (x.tril() == x).all(-1).all(-1) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _is_positive_definite(x: Tensor) -> Tensor:
    from ..linalg import cholesky_ex

    symmetric = ((x - x.mT).abs() <= 1e-6 + 1e-5 * x.abs()).all(-1).all(-1)
    return symmetric & (cholesky_ex(x.detach()).info == 0)


def _is_simplex(x: Tensor) -> Tensor:
    most = max(1e-6, 2.0 ** (1 - x.dtype.digits))  # what rounding leaves of 16 bits
    return (x >= 0).all(-1) & ((x.to(promote_types(x.dtype, float32)).sum(-1) - 1).abs() < most)


real = Constraint("a number", lambda x: x == x)
real_vector = independent(real, 1)
positive = Constraint("positive", lambda x: x > 0)
nonnegative = Constraint("not negative", lambda x: x >= 0)
unit_interval = Constraint("in [0, 1]", lambda x: (x >= 0) & (x <= 1))
boolean = Constraint("0 or 1", lambda x: (x == 0) | (x == 1), is_discrete=True)
simplex = Constraint("not negative, with the sum 1", _is_simplex, 1)
nonnegative_integer = Constraint("a whole number, not negative", lambda x: (x % 1 == 0) & (x >= 0), is_discrete=True)
lower_cholesky = Constraint("lower triangular with a positive diagonal", _is_lower_cholesky, 2)
positive_definite = Constraint("symmetric and positive definite", _is_positive_definite, 2)
one_hot = Constraint("one 1 among 0s", lambda x: boolean.check(x).all(-1) & (x.sum(-1) == 1), 1, True)


publish(globals())
