"""Pareto, with a power-law tail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..ops.random import rand
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


class Pareto(Distribution):
    """The Pareto distribution, with the density alpha scale^alpha / x^(alpha + 1) for x >= scale. scale and alpha are
    positive numbers, or tensors that broadcast.

    >>> norch.distributions.Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"scale": constraints.positive, "alpha": constraints.positive}
    has_rsample = True
    _samples_apart = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # the mean is inf for alpha <= 1
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._finite(self.icdf(self._noise(rand, self._extended_shape(sample_shape))))

    def log_prob(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * x.log()

    def cdf(self, value: Operand) -> Tensor:
        return -(self.alpha * (self.scale / self._validate_sample(value)).log()).expm1()

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * (-(-self._tensor(value)).log1p() / self.alpha).exp()

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()
