"""Bernoulli: 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from ..autograd import enable_grad, no_grad
from ..nn.functional import binary_cross_entropy_with_logits
from ..ops.create import arange
from ..ops.pointwise import where
from ..ops.random import bernoulli
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, clamped, either


class Bernoulli(Distribution):
    """1 with probability probs, else 0. probs or logits: a number or a tensor.

    >>> coin = norch.distributions.Bernoulli(norch.tensor(0.25))
    >>> coin.log_prob(norch.tensor([1.0, 0.0])).exp()
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._by = either("Bernoulli", probs, logits)
        (self.__dict__[self._by],) = broadcast_all(logits if probs is None else probs)
        super().__init__(self.__dict__[self._by].shape, validate_args=validate_args)

    def _given(self) -> list[str]:
        return [self._by]

    @cached_property
    @enable_grad()  # the first caller may be sample(), under no_grad()
    def probs(self) -> Tensor:
        """The probabilities of 1."""
        return self.logits.sigmoid()

    @cached_property
    @enable_grad()  # the first caller may be sample(), under no_grad()
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))."""
        return clamped(self.probs).logit()

    @property
    def param_shape(self) -> Any:
        """The shape of probs and logits."""
        return self.batch_shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return where(self.probs == 0.5, math.nan, (self.probs >= 0.5).type_as(self.probs))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        logits, x = broadcast_all(self.logits, self._validate_sample(value))
        return -binary_cross_entropy_with_logits(logits, x.to(logits.dtype), reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self.probs.dtype, device=self.probs.device).reshape(2, *(1,) * len(self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values
