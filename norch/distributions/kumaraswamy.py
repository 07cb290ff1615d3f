"""Kumaraswamy, of one probability, with a distribution function in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..ops.pointwise import where
from ..ops.random import rand
from ..ops.transcendental import xlogy
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .utils import clamp_probs, euler_constant


class Kumaraswamy(Distribution):
    """The Kumaraswamy distribution, with the distribution function 1 - (1 - x^concentration1)^concentration0 for x in
    [0, 1]. concentration1 and concentration0 are positive numbers, or tensors that broadcast.

    >>> norch.distributions.Kumaraswamy(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _samples_apart = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """The expectation of x^n, which is b B(1 + n / a, b)."""
        first, b = 1 + n / self.concentration1, self.concentration0
        return b * (first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1)
        part = ((a - 1) / (a * b - 1)).clamp(min=0) ** (1 / a)
        return where(inside, part, math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        drawn = self.icdf(clamp_probs(self._noise(rand, self._extended_shape(sample_shape))))
        return clamp_probs(self._rounded(drawn))

    def log_prob(self, value: Operand) -> Tensor:
        x, a, b = self._validate_sample(value), self.concentration1, self.concentration0
        return (a * b).log() + xlogy(a - 1, x) + xlogy(b - 1, 1 - x**a)

    def cdf(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        return -(self.concentration0 * (-(x**self.concentration1)).log1p()).expm1()

    def icdf(self, value: Operand) -> Tensor:
        left = (-self._tensor(value)).log1p() / self.concentration0
        return (-left.expm1()) ** self.concentration1.reciprocal()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * ((b + 1).digamma() + euler_constant) - (a * b).log()
