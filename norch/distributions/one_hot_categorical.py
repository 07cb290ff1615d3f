"""OneHotCategorical: one of several classes, as a one-hot vector."""

from __future__ import annotations

from collections.abc import Iterable

from .._package.typing import Operand
from ..nn.functional import one_hot
from ..ops.create import eye
from ..tensor import Tensor
from . import constraints
from .categorical import Classes


class OneHotCategorical(Classes):
    """A Categorical whose values are one-hot vectors (..., classes) in the dtype of probs.

    >>> norch.distributions.OneHotCategorical(norch.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, True, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._rows(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _rows(self, index: Tensor) -> Tensor:
        return one_hot(index, self._classes).to(self.probs.dtype)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._rows(self._drawn(sample_shape))

    def log_prob(self, value: Operand) -> Tensor:
        return self._at(self._validate_sample(value).argmax(-1, keepdim=True))

    def _values(self) -> Tensor:
        return eye(self._classes, dtype=self.probs.dtype, device=self.probs.device)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A OneHotCategorical whose draws pass gradients to probs by the straight-through estimator (Bengio et al. 2013).

    >>> logits = norch.zeros(3, requires_grad=True)
    >>> norch.distributions.OneHotCategoricalStraightThrough(logits=logits).rsample().requires_grad
    True
    """

    has_rsample = True

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
