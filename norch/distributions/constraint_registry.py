"""Transforms of unconstrained numbers to values that satisfy a constraint, for optimizing parameters. biject_to() gives
a one-to-one transform, transform_to() any transform:

    transform_to(constraints.positive)(x)

register() adds transforms for other constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._package.exports import publish
from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Finds the transform for a constraint by the class of the constraint.

    >>> d = norch.distributions
    >>> d.transform_to(d.constraints.greater_than(1.0))(norch.tensor([0.0]))
    tensor([2.])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Registers factory(constraint), which makes the transform, for a class of constraints, or for the class of an
        object. Without factory it returns a decorator that registers.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise TypeError(f"register: expected a Constraint or a subclass of it, not {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform for a constraint; NotImplementedError if its class is not registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform to values that are {constraint!s} is registered")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _half_line(bound: Any, sign: float) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(bound, sign)])


def _interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if not any(isinstance(bound, transforms.Tensor) for bound in (low, high)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


for _registry in (biject_to, transform_to):

    def _independent(constraint: Any, registry: Any = _registry) -> Any:
        base, axes = registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        return transforms.IndependentTransform(base, axes) if axes else base

    def _cat(constraint: Any, registry: Any = _registry) -> Any:
        return transforms.CatTransform(list(map(registry, constraint.cseq)), constraint.dim, constraint.lengths)

    def _stack(constraint: Any, registry: Any = _registry) -> Any:
        return transforms.StackTransform(list(map(registry, constraint.cseq)), constraint.dim)

    _registry.register(constraints.real, lambda constraint: transforms.identity_transform)
    _registry.register(constraints.independent, _independent)
    _registry.register(constraints.greater_than, lambda constraint: _half_line(constraint.lower_bound, 1))
    _registry.register(constraints.greater_than_eq, lambda constraint: _half_line(constraint.lower_bound, 1))
    _registry.register(constraints.less_than, lambda constraint: _half_line(constraint.upper_bound, -1))
    _registry.register(constraints.interval, _interval)
    _registry.register(constraints.half_open_interval, _interval)
    _registry.register(constraints.corr_cholesky, lambda constraint: transforms.CorrCholeskyTransform())
    _registry.register(constraints.cat, _cat)
    _registry.register(constraints.stack, _stack)
biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda constraint: transforms.PositiveDefiniteTransform())

publish(globals())
