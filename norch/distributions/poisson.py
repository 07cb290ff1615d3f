"""Poisson, the distribution of counts of independent events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..autograd import no_grad
from ..ops.random import poisson
from ..ops.transcendental import xlogy
from ..tensor import Tensor
from . import constraints
from .distribution import broadcast_all
from .exp_family import ExponentialFamily


class Poisson(ExponentialFamily):
    """The Poisson distribution: k = 0, 1, ... has the probability rate^k exp(-rate) / k!. rate is a number or tensor,
    at least 0. Draws have the dtype of rate.

    >>> norch.distributions.Poisson(2.0).log_prob(norch.tensor(0.0))
    tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        return natural_params[0].exp()

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        rate, k = broadcast_all(self.rate, self._validate_sample(value))
        return xlogy(k, rate) - rate - (k + 1).lgamma()
