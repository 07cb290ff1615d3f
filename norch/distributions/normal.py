"""Normal, and the base of distributions with a location and a scale."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..ops.random import randn
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .exp_family import ExponentialFamily

_LOG_ROOT_2PI = math.log(2 * math.pi) / 2


class LocationScale(Distribution):
    """Base of distributions with a location and a positive scale: numbers, or tensors that broadcast."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution, with the density exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi)). loc and scale > 0
    are numbers, or tensors that broadcast.

    >>> normal = norch.distributions.Normal(0.0, norch.tensor([1.0, 2.0]))
    >>> normal.log_prob(norch.tensor(0.0))
    tensor([-0.9189, -1.6121])
    >>> normal.rsample((3,)).shape
    norch.Size([3, 2])
    """

    _samples_apart = True
    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.square(), -self.scale.square().reciprocal() / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        a, b = natural_params
        return -a.square() / (4 * b) + (-math.pi / b).log() / 2

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        noise = self._noise(randn, self._extended_shape(sample_shape))
        return self._rounded(self.loc + noise * self.scale)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        return -((x - self.loc) / self.scale).square() / 2 - self.scale.log() - _LOG_ROOT_2PI

    def cdf(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        return ((self.loc - x) / (self.scale * math.sqrt(2))).erfc() / 2  # 1 + erf() cancels in the lower tail

    def icdf(self, value: Operand) -> Tensor:
        p = self._tensor(value)
        return self.loc + self.scale * (2 * p - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT_2PI + self.scale.log()
