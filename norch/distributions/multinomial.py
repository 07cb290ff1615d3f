"""Multinomial, the counts of classes in several draws."""

from __future__ import annotations

from collections.abc import Iterable

from .._package.typing import Operand
from ..autograd import no_grad
from ..errors import ArgumentError
from ..ops.create import arange
from ..ops.pointwise import where
from ..tensor import Tensor
from . import constraints
from .binomial import Binomial
from .categorical import Classes


class Multinomial(Classes):
    """The multinomial distribution: the counts of the classes in total_count draws, an int, with the probabilities
    probs or logits (..., classes). The counts of a value need not sum to total_count: log_prob() takes their sum as the
    number of draws.

    >>> norch.distributions.Multinomial(10, norch.tensor([1.0, 3.0])).mean
    tensor([2.5000, 7.5000])
    """

    has_enumerate_support = False

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(total_count, bool) or not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: total_count must be one int for the whole batch")
        if total_count < 0:
            raise ArgumentError(f"Multinomial: total_count must not be negative, but is {total_count}")
        self.total_count = total_count
        super().__init__(probs, logits, True, validate_args)

    def _options(self) -> dict[str, int]:
        return {"total_count": self.total_count}

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            drawn = self._drawn((*sample_shape, self.total_count)).movedim(len(tuple(sample_shape)), -1)
            counts = self.probs.new_zeros((*drawn.shape[:-1], self._classes))
            return counts.scatter_add(-1, drawn, counts.new_ones(()).expand(drawn.shape))

    def log_prob(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        ways = (x.sum(-1) + 1).lgamma() - (x + 1).lgamma().sum(-1)
        return ways + where(x == 0, 0.0, self.logits * x).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        counts = arange(n + 1, dtype=self.probs.dtype, device=self.probs.device)
        of_counts = Binomial(n, self.probs.unsqueeze(-1), validate_args=False).log_prob(counts).exp()
        ways = (of_counts * (counts + 1).lgamma()).sum((-2, -1))
        return n * super().entropy() - counts.new_tensor(n + 1.0).lgamma() + ways
