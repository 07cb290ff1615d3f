"""LogNormal, the distribution of the exponential of a normal variable."""

from __future__ import annotations

from .._package.typing import Operand
from ..tensor import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform


class LogNormal(TransformedDistribution):
    """The log-normal distribution: that of exp(x) for x from Normal(loc, scale). loc and scale > 0 are numbers, or
    tensors that broadcast.

    >>> norch.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = Normal.arg_constraints
    support = constraints.positive
    base_dist: Normal

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def log_prob(self, value: Operand) -> Tensor:
        log = self._validate_sample(value).log()
        return self.base_dist.log_prob(log) - log

    def cdf(self, value: Operand) -> Tensor:
        return self.base_dist.cdf(self._tensor(value).log())  # 0 is outside the support, but its cdf is 0

    def icdf(self, value: Operand) -> Tensor:
        return self.base_dist.icdf(value).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
