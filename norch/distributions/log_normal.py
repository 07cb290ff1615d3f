"""LogNormal, the distribution of the exponential of a normal variable."""

from __future__ import annotations

from collections.abc import Iterable

from .._typing import Operand
from ..tensor import Tensor
from . import constraints
from .normal import LocationScale, Normal


class LogNormal(LocationScale):
    """The distribution of exp(x) for x from Normal(loc, scale).

    >>> norch.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    support = constraints.positive

    @property
    def base_dist(self) -> Normal:
        """The distribution of the logarithm."""
        return Normal(self.loc, self.scale, validate_args=self._validate_args)

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

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).exp()

    def log_prob(self, value: Operand) -> Tensor:
        log = self._validate_sample(value).log()
        return self.base_dist.log_prob(log) - log

    def cdf(self, value: Operand) -> Tensor:
        return self.base_dist.cdf(self._tensor(value).log())  # 0 for 0, although it is outside the support

    def icdf(self, value: Operand) -> Tensor:
        return self.base_dist.icdf(value).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
