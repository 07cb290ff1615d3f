"""Cauchy, which has no mean."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .._package.typing import Operand
from ..ops.create import full_like
from ..ops.random import rand
from ..tensor import Tensor
from .normal import LocationScale


class Cauchy(LocationScale):
    """The Cauchy distribution, with the density 1 / (pi scale (1 + ((x - loc) / scale)^2)). loc and scale > 0 are
    numbers, or tensors that broadcast. Its mean is NaN, its variance infinite.

    >>> norch.distributions.Cauchy(0.0, 1.0).cdf(norch.tensor(1.0))
    tensor(0.7500)
    """

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._finite(self.icdf(self._noise(rand, self._extended_shape(sample_shape))))

    def log_prob(self, value: Operand) -> Tensor:
        x = (self._validate_sample(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - x.square().log1p()

    def cdf(self, value: Operand) -> Tensor:
        return ((self._validate_sample(value) - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Operand) -> Tensor:
        return self.loc + self.scale * ((self._tensor(value) - 0.5) * math.pi).tan()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
