"""Gumbel, the limit of maxima of many variables."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .._package.typing import Operand
from ..ops.random import rand
from ..tensor import Tensor
from .normal import LocationScale
from .utils import clamp_probs, euler_constant


class Gumbel(LocationScale):
    """The Gumbel distribution, with the distribution function exp(-exp(-(x - loc) / scale)). loc and scale > 0 are
    numbers, or tensors that broadcast.

    >>> norch.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    _samples_apart = True

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._finite(self.icdf(clamp_probs(self._noise(rand, self._extended_shape(sample_shape)))))

    def log_prob(self, value: Operand) -> Tensor:
        y = (self.loc - self._validate_sample(value)) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Operand) -> Tensor:
        return (-((self.loc - self._validate_sample(value)) / self.scale).exp()).exp()

    def icdf(self, value: Operand) -> Tensor:
        return self.loc - self.scale * (-self._tensor(value).log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
