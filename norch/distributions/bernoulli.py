"""Bernoulli: 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..autograd import no_grad
from ..nn.functional import binary_cross_entropy_with_logits, softplus
from ..ops.create import arange
from ..ops.pointwise import where
from ..ops.random import bernoulli
from ..tensor import Tensor
from . import constraints
from .distribution import ByProbs, broadcast_all
from .exp_family import ExponentialFamily


class Bernoulli(ByProbs, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability probs, else 0. Pass probs, in [0, 1], or logits: a number or a
    tensor. Draws have the dtype of the parameter.

    >>> coin = norch.distributions.Bernoulli(norch.tensor(0.25))
    >>> coin.log_prob(norch.tensor([1.0, 0.0])).exp()
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    _to_probs, _to_logits = staticmethod(Tensor.sigmoid), staticmethod(Tensor.logit)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        self.__dict__[self._by] = parameter
        super().__init__(parameter.shape, validate_args=validate_args)

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        return softplus(natural_params[0])

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

    def log_prob(self, value: Operand) -> Tensor:
        logits, x = broadcast_all(self.logits, self._validate_sample(value))
        return -binary_cross_entropy_with_logits(logits, x.to(logits.dtype), reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def _values(self) -> Tensor:
        return arange(2, dtype=self.probs.dtype, device=self.probs.device)
