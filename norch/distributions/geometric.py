"""Geometric, the number of failures before the first success."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..autograd import no_grad
from ..errors import ArgumentError
from ..nn.functional import binary_cross_entropy_with_logits
from ..ops.create import zeros_like
from ..ops.random import rand
from ..ops.special import xlog1py
from ..tensor import Tensor
from . import constraints
from .distribution import ByProbs, broadcast_all, holds


class Geometric(ByProbs):
    """The geometric distribution: the number k = 0, 1, ... of failures before the first success has the probability (1
    - probs)^k probs. Pass probs, in (0, 1], or logits: a number or a tensor. Draws have the dtype of the parameter.

    >>> norch.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    has_enumerate_support = False
    _to_probs, _to_logits = staticmethod(Tensor.sigmoid), staticmethod(Tensor.logit)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        self.__dict__[self._by] = parameter
        super().__init__(parameter.shape, validate_args=validate_args)
        if self._validate_args and self._by == "probs" and not holds(parameter > 0):
            raise ArgumentError("Geometric: probs must be positive, but holds 0")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            left = (-self._noise(rand, self._extended_shape(sample_shape))).log1p()
            return self._finite((left / (-self.probs.to(left.dtype)).log1p()).floor() + 0.0)  # no -0

    def log_prob(self, value: Operand) -> Tensor:
        probs, k = broadcast_all(self.probs, self._validate_sample(value))
        return xlog1py(k.to(probs.dtype), -probs.where(k != 0, 0.0)) + probs.log()  # avoids the NaN slope of 0 log 0

    def cdf(self, value: Operand) -> Tensor:
        return -((self._validate_sample(value).floor() + 1) * (-self.probs).log1p()).expm1()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
