"""Distributions of real numbers, each elementwise over its parameters: Normal, LogNormal, Uniform, Exponential,
Laplace. Formulas: Johnson, Kotz, Balakrishnan, "Continuous Univariate Distributions" (1994).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..create import full_like
from ..errors import ArgumentError
from ..random import rand, randn
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all

_LOG_ROOT_2PI = math.log(2 * math.pi) / 2


class _Scaled(Distribution):
    """One of a location and a positive scale, numbers or tensors that broadcast."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)


class Normal(_Scaled):
    """exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi)); loc and scale: numbers, or tensors that broadcast.

    >>> normal = norch.distributions.Normal(0.0, norch.tensor([1.0, 2.0]))
    >>> normal.log_prob(norch.tensor(0.0))
    tensor([-0.9189, -1.6121])
    >>> normal.rsample((3,)).shape
    norch.Size([3, 2])
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        noise = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Tensor:
        x = self._validate_sample(value)
        return -((x - self.loc) / self.scale).square() / 2 - self.scale.log() - _LOG_ROOT_2PI

    def cdf(self, value: Any) -> Tensor:
        x = self._validate_sample(value)
        return (1 + ((x - self.loc) / (self.scale * math.sqrt(2))).erf()) / 2

    def icdf(self, value: Any) -> Tensor:
        p = self._tensor(value)
        return self.loc + self.scale * (2 * p - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT_2PI + self.scale.log()


class LogNormal(_Scaled):
    """Of exp(x), where x is Normal(loc, scale).

    >>> norch.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    support = constraints.positive

    @property
    def base_dist(self) -> Normal:
        """That of the logarithm."""
        return Normal(self.loc, self.scale, validate_args=self._validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).exp()

    def log_prob(self, value: Any) -> Tensor:
        log = self._validate_sample(value).log()
        return self.base_dist.log_prob(log) - log

    def cdf(self, value: Any) -> Tensor:
        return self.base_dist.cdf(self._validate_sample(value).log())

    def icdf(self, value: Any) -> Tensor:
        return self.base_dist.icdf(value).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class Laplace(_Scaled):
    """exp(-|x - loc| / scale) / (2 scale); loc and scale: numbers, or tensors that broadcast.

    >>> norch.distributions.Laplace(0.0, 1.0).log_prob(norch.tensor(1.0))
    tensor(-1.6931)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        # the difference of two exponential draws: rand() may give 0, but not 1, so that it is finite
        shape, like = self._extended_shape(sample_shape), self.loc
        one, other = (-rand((2, *shape), dtype=like.dtype, device=like.device)).log1p()
        return self.loc + self.scale * (one - other)

    def log_prob(self, value: Any) -> Tensor:
        x = self._validate_sample(value)
        return -(2 * self.scale).log() - (x - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Tensor:
        away = self._validate_sample(value) - self.loc
        return (1 - away.sign() * (-away.abs() / self.scale).expm1()) / 2

    def icdf(self, value: Any) -> Tensor:
        above = self._tensor(value) - 0.5
        return self.loc - self.scale * above.sign() * (-2 * above.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Uniform(Distribution):
    """1 / (high - low) from low to high, which stands outside; numbers, or tensors that broadcast.

    >>> norch.distributions.Uniform(0.0, 2.0).log_prob(norch.tensor(1.0))
    tensor(-0.6931)
    """

    arg_constraints = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            first = (self.low >= self.high).flatten().nonzero()[0]
            ends = [x.flatten()[first].item() for x in (self.low, self.high)]
            raise ArgumentError(f"Uniform: low must lie below high, not {ends[0]} beside {ends[1]}")

    @property
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return full_like(self.low, math.nan)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        part = rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + part * (self.high - self.low)

    def log_prob(self, value: Any) -> Tensor:
        x = self._validate_sample(value)
        return ((x >= self.low) & (x < self.high)).type_as(self.low).log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> Tensor:
        x = self._validate_sample(value)
        return ((x - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Any) -> Tensor:
        p = self._tensor(value)
        return self.low + p * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(Distribution):
    """rate exp(-rate x) for x from 0 on; rate: a positive number or tensor.

    >>> norch.distributions.Exponential(norch.tensor([1.0, 2.0])).mean
    tensor([1.0000, 0.5000])
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

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
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.rate.dtype, device=self.rate.device))

    def log_prob(self, value: Any) -> Tensor:
        return self.rate.log() - self.rate * self._validate_sample(value)

    def cdf(self, value: Any) -> Tensor:
        return -(-self.rate * self._validate_sample(value)).expm1()

    def icdf(self, value: Any) -> Tensor:
        return -(-self._tensor(value)).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()
