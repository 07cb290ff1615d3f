"""LogisticNormal, of the probabilities of several classes."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """The logistic normal distribution: that of StickBreakingTransform()(x), n + 1 probabilities, for n normal numbers
    x. loc and scale are their means and standard deviations, tensors (..., n) that broadcast.

    >>> norch.distributions.LogisticNormal(norch.zeros(2), norch.ones(2)).sample().shape
    norch.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The means (..., n) of the normal numbers."""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        """The standard deviations (..., n) of the normal numbers."""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined]

    __repr__ = Distribution.__repr__
