"""InverseGamma, of reciprocals of gamma variables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..dtype import finfo
from ..ops.pointwise import where
from ..ops.special import igammac
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .gamma import Gamma


class InverseGamma(Distribution):
    """The inverse gamma distribution: that of 1 / x for x from Gamma(concentration, rate). concentration and rate are
    positive numbers, or tensors that broadcast.

    >>> norch.distributions.InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _samples_apart = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def base_dist(self) -> Gamma:
        """The distribution of the reciprocal."""
        return Gamma(self.concentration, self.rate, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        drawn = self.base_dist.rsample(sample_shape).reciprocal()
        return drawn.clamp(finfo(drawn.dtype).tiny, finfo(drawn.dtype).max)

    def log_prob(self, value: Operand) -> Tensor:
        x, a = self._validate_sample(value), self.concentration
        return a * self.rate.log() - a.lgamma() - (a + 1) * x.log() - self.rate / x

    def cdf(self, value: Operand) -> Tensor:
        return igammac(self.concentration, self.rate / self._validate_sample(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
