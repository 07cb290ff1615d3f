"""Binomial, the distribution of the number of successes among independent trials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..autograd import no_grad
from ..dtype import float32, promote_types
from ..nn.functional import logsigmoid
from ..ops.create import full_like
from ..ops.pointwise import where
from ..ops.random import rand
from ..tensor import Tensor
from . import constraints
from .distribution import ByProbs, broadcast_all
from .gamma import standard_gamma

_FEW = 16  # Up to this many trials are drawn one by one.


class Binomial(ByProbs):
    """The binomial distribution: the number of successes among total_count trials, each with the probability probs.
    total_count is a number or tensor of whole numbers. Pass probs or logits, a number or tensor. The parameters
    broadcast; draws have the dtype of probs or logits.

    >>> norch.distributions.Binomial(4, norch.tensor([0.5, 1.0])).mean
    tensor([2., 4.])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    _to_probs, _to_logits = staticmethod(Tensor.sigmoid), staticmethod(Tensor.logit)

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        parameter, count = broadcast_all(self._choose(probs, logits), total_count)
        self.__dict__[self._by], self.total_count = parameter, count.type_as(parameter)
        super().__init__(parameter.shape, validate_args=validate_args)

    def _parameter_names(self) -> list[str]:
        return [self._by, "total_count"]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            p = self.probs.expand(shape)
            return _drawn(self.total_count.expand(shape).double(), p.double()).to(p.dtype)

    def log_prob(self, value: Any) -> Tensor:
        k, n, x = self._validate_sample(value), self.total_count, self.logits
        return (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma() + k * x + n * logsigmoid(-x)

    def entropy(self) -> Tensor:
        terms = self.log_prob(self.enumerate_support(expand=False))
        return -(terms.exp() * terms).sum(0)

    def _values(self) -> Tensor:
        most = self.total_count.amax()
        if not bool((self.total_count == most).all()):
            raise NotImplementedError("Binomial: enumerate_support() needs the same total_count in the whole batch")
        return full_like(most, 1.0).expand(int(most.item()) + 1).cumsum(0) - 1


def _drawn(n: Tensor, p: Tensor) -> Tensor:
    """Draws by order statistics of uniform numbers: the median has a beta distribution, and comparing it with p decides
    half of the trials (Devroye, Non-Uniform Random Variate Generation, 1986, section X.4.4). The last _FEW trials are
    drawn one by one."""
    successes = full_like(n, 0.0)
    while bool((n > _FEW).any()):
        many = n > _FEW
        i = ((n + 1) / 2).floor()
        first, other = standard_gamma(where(many, i, 1.0)), standard_gamma(where(many, n + 1 - i, 1.0))
        middle = first / (first + other)
        below = many & (middle <= p)
        successes = where(below, successes + i, successes)
        n = where(below, n - i, where(many, i - 1, n))
        p = where(below, (p - middle) / (1 - middle), where(many, p / middle, p)).clamp(0, 1)
    trials = rand((_FEW, *n.shape), dtype=promote_types(n.dtype, float32), device=n.device) < p
    order = full_like(n, 1.0).expand(_FEW, *n.shape).cumsum(0)
    return where(p == p, successes + (trials & (order <= n)).type_as(n).sum(0), p)  # NaN for a NaN p
