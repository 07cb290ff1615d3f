"""NegativeBinomial, the number of successes before a number of failures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..autograd import no_grad
from ..nn.functional import logsigmoid
from ..ops.pointwise import where
from ..ops.random import poisson
from ..tensor import Tensor
from . import constraints
from .distribution import ByProbs, broadcast_all
from .gamma import Gamma


class NegativeBinomial(ByProbs):
    """The negative binomial distribution: the number of successes, each of probability probs, before total_count
    failures. It is a mixture of Poisson distributions with rates from Gamma(total_count, exp(-logits)). total_count is
    at least 0 and need not be whole. Pass probs, in [0, 1), or logits. All are numbers, or tensors that broadcast.

    >>> norch.distributions.NegativeBinomial(2.0, norch.tensor(0.5)).mean
    tensor(2.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    has_enumerate_support = False
    _to_probs, _to_logits = staticmethod(Tensor.sigmoid), staticmethod(Tensor.logit)

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.total_count, parameter = broadcast_all(total_count, self._choose(probs, logits))
        self.__dict__[self._by], self.total_count = parameter, self.total_count.type_as(parameter)
        super().__init__(parameter.shape, validate_args=validate_args)

    def _parameter_names(self) -> list[str]:
        return ["total_count", self._by]

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            none = self.total_count == 0  # 0 failures end the trials before any success
            rates = Gamma(where(none, 1.0, self.total_count), (-self.logits).exp(), validate_args=False)
            return where(none, 0.0, poisson(rates.sample(sample_shape)))

    def log_prob(self, value: Operand) -> Tensor:
        k, n = self._validate_sample(value), self.total_count
        weights = n * logsigmoid(-self.logits) + k * logsigmoid(self.logits)
        ways = (n + k).lgamma() - (k + 1).lgamma() - n.lgamma()
        return weights + where(n + k == 0, 0.0, ways)
