"""Weibull, of lifetimes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..dtype import finfo
from ..ops.pointwise import where
from ..ops.random import standard_exponential
from ..ops.transcendental import xlogy
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .utils import euler_constant


class Weibull(Distribution):
    """The Weibull distribution, with the distribution function 1 - exp(-(x / scale)^concentration) for x > 0. scale and
    concentration are positive numbers, or tensors that broadcast.

    >>> norch.distributions.Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _samples_apart = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def concentration_reciprocal(self) -> Tensor:
        """1 / concentration."""
        return self.concentration.reciprocal()

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        part = (1 - self.concentration_reciprocal).clamp(min=0)
        return where(part > 0, self.scale * part**self.concentration_reciprocal, 0.0)

    @property
    def variance(self) -> Tensor:
        second = (1 + 2 * self.concentration_reciprocal).lgamma().exp()
        return self.scale.square() * second - self.mean.square()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        like = self.scale.detach().expand(self._extended_shape(sample_shape))
        drawn = self.scale * standard_exponential(like) ** self.concentration_reciprocal
        return self._finite(drawn).clamp(min=finfo(self.scale.dtype).tiny)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._validate_sample(value) / self.scale
        return (self.concentration / self.scale).log() + xlogy(self.concentration - 1, x) - x**self.concentration

    def cdf(self, value: Operand) -> Tensor:
        return -(-((self._validate_sample(value) / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * (-(-self._tensor(value)).log1p()) ** self.concentration_reciprocal

    def entropy(self) -> Tensor:
        part = self.concentration_reciprocal
        return euler_constant * (1 - part) + (self.scale * part).log() + 1
