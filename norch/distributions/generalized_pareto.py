"""GeneralizedPareto, of excesses over a threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..ops.pointwise import where
from ..ops.random import rand
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, with the distribution function 1 - (1 + c z)^(-1 / c) for z = (x - loc) /
    scale >= 0. c is the concentration; for c = 0 the function is 1 - exp(-z), and for c < 0 values are at most loc -
    scale / c. loc, scale > 0 and concentration are numbers, or tensors that broadcast.

    >>> norch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        c = self.concentration
        return constraints.interval(self.loc, where(c < 0, self.loc - self.scale / c, math.inf))

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return where(c < 1, self.loc + self.scale / (1 - where(c < 1, c, 0.5)), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = where(self.concentration < 0.5, self.concentration, 0.25)
        return where(self.concentration < 0.5, self.scale.square() / ((1 - c).square() * (1 - 2 * c)), math.nan)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        drawn = self._finite(self.icdf(self._noise(rand, self._extended_shape(sample_shape))))
        return drawn.minimum(self.support.upper_bound.detach())

    def _nonzero(self) -> tuple[Tensor, Tensor]:
        """Whether the concentration is negligible beside 1, and the concentration, replaced by 1 where it is
        negligible.
        """
        limit = self.concentration.abs() <= 1e-8
        return limit, where(limit, 1.0, self.concentration)

    def log_prob(self, value: Operand) -> Tensor:
        z = (self._validate_sample(value) - self.loc) / self.scale
        limit, c = self._nonzero()
        power = 1 + 1 / c
        return -self.scale.log() - where(limit, z, where(power == 0, 0.0, power * (c * z).log1p()))

    def log_survival_function(self, value: Operand) -> Tensor:
        """log(1 - cdf(value))."""
        z = (self._validate_sample(value) - self.loc) / self.scale
        limit, c = self._nonzero()
        return where(limit, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Operand) -> Tensor:
        """log(cdf(value))."""
        return self.cdf(value).log()

    def cdf(self, value: Operand) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Operand) -> Tensor:
        left = (-self._tensor(value)).log1p()
        limit, c = self._nonzero()
        return self.loc + self.scale * where(limit, -left, (-c * left).expm1() / c)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
