"""Uniform: a constant density between two numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..autograd.levels import BatchedBase
from ..errors import ArgumentError
from ..ops.composed.numeric import nextafter
from ..ops.create import full_like
from ..ops.pointwise import where
from ..ops.random import rand
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, holds


class Uniform(Distribution):
    """The uniform distribution, with the density 1 / (high - low) in [low, high). low and high are numbers, or tensors
    that broadcast.

    >>> norch.distributions.Uniform(0.0, 2.0).log_prob(norch.tensor(1.0))
    tensor(-0.6931)
    """

    arg_constraints = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not holds(ordered := self.low < self.high):
            if isinstance(ordered, BatchedBase):
                raise ArgumentError("Uniform: low must be less than high in every sample of vmap")
            first = (self.low >= self.high).flatten().nonzero()[0]
            ends = [x.flatten()[first].item() for x in (self.low, self.high)]
            raise ArgumentError(f"Uniform: low must be less than high, not {ends[0]} and {ends[1]}")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
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
        part = self._noise(rand, self._extended_shape(sample_shape))
        drawn = self._rounded(self.low + part * (self.high - self.low))
        below = nextafter(self.high, self.low).detach()  # high is excluded, but rounding may reach it
        return where(drawn < self.high, drawn, below)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        return ((x >= self.low) & (x < self.high)).type_as(self.low).log() - (self.high - self.low).log()

    def cdf(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        return ((x - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Operand) -> Tensor:
        p = self._tensor(value)
        return self.low + p * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
