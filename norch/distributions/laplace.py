"""Laplace, the distribution of the difference of two exponential variables."""

from __future__ import annotations

from collections.abc import Iterable

from .._package.typing import Operand
from ..ops.random import rand
from ..tensor import Tensor
from .normal import LocationScale


class Laplace(LocationScale):
    """The Laplace distribution, with the density exp(-|x - loc| / scale) / (2 scale). loc and scale > 0 are numbers, or
    tensors that broadcast.

    >>> norch.distributions.Laplace(0.0, 1.0).log_prob(norch.tensor(1.0))
    tensor(-1.6931)
    """

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        # the difference of two exponential draws, which is finite, as rand() is below 1
        first, other = (-self._noise(rand, (2, *self._extended_shape(sample_shape)))).log1p()
        return self._rounded(self.loc + self.scale * (first - other))

    def log_prob(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        return -(2 * self.scale).log() - (x - self.loc).abs() / self.scale

    def cdf(self, value: Operand) -> Tensor:
        away = self._validate_sample(value) - self.loc
        return (1 - away.sign() * (-away.abs() / self.scale).expm1()) / 2

    def icdf(self, value: Operand) -> Tensor:
        above = self._tensor(value) - 0.5
        return self.loc - self.scale * above.sign() * (-2 * above.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
