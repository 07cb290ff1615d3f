"""Exponential, the distribution of waiting times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..dtype import finfo
from ..ops.create import full_like
from ..ops.random import standard_exponential
from ..tensor import Tensor
from . import constraints
from .distribution import broadcast_all
from .exp_family import ExponentialFamily


class Exponential(ExponentialFamily):
    """The exponential distribution, with the density rate exp(-rate x) for x >= 0. rate is a positive number or tensor.

    >>> norch.distributions.Exponential(norch.tensor([1.0, 2.0])).mean
    tensor([1.0000, 0.5000])
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        return -(-natural_params[0]).log()

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return full_like(self.rate, 0.0)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate**-2

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        like = self.rate.detach().expand(self._extended_shape(sample_shape))
        return (standard_exponential(like) / self.rate).to(self.rate.dtype).clamp(min=finfo(self.rate.dtype).tiny)

    def log_prob(self, value: Operand) -> Tensor:
        return self.rate.log() - self.rate * self._validate_sample(value)

    def cdf(self, value: Operand) -> Tensor:
        return -(-self.rate * self._validate_sample(value)).expm1()

    def icdf(self, value: Operand) -> Tensor:
        return -(-self._tensor(value)).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()
