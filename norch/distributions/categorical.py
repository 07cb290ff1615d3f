"""Categorical: one of several classes, and the base that it shares with OneHotCategorical."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..autograd import no_grad
from ..dtype import finfo, int64
from ..errors import ShapeError
from ..ops._entry import composed
from ..ops.composed.shape import broadcast_tensors
from ..ops.create import arange, full_like
from ..ops.random import multinomial
from ..tensor import Tensor
from . import constraints
from .distribution import ByProbs


@composed
def _logits_of_sum_1(x: Tensor) -> Tensor:
    return x - x.logsumexp(-1, True)


@composed
def _of_sum_1(x: Tensor) -> Tensor:
    return x / x.sum(-1, True)


class Classes(ByProbs):
    """Base of the distributions of one class. probs or logits (..., classes) have the classes along the last axis."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _to_probs, _to_logits = staticmethod(lambda logits: logits.softmax(-1)), staticmethod(Tensor.log)

    def __init__(self, probs: Any, logits: Any, one_hot: bool, validate_args: bool | None) -> None:
        parameter = self._choose(probs, logits)
        if not isinstance(parameter, Tensor):
            raise TypeError(f"{self._name()}: expected a tensor as {self._by}, not {type(parameter).__name__}")
        if not parameter.ndim:
            raise ShapeError(f"{self._name()}: {self._by} must have at least 1 dimension, the classes last")
        by_logits = probs is None
        self.__dict__[self._by] = _logits_of_sum_1(parameter) if by_logits else _of_sum_1(parameter)
        super().__init__(parameter.shape[:-1], parameter.shape[-1:] if one_hot else (), validate_args)

    @property
    def _classes(self) -> int:
        return self.param_shape[-1]

    def _drawn(self, sample_shape: Iterable[int]) -> Tensor:
        shape = tuple(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._classes)
            return multinomial(rows, math.prod(shape), True).T.reshape(*shape, *self.batch_shape)

    def _at(self, index: Tensor) -> Tensor:
        """The logits of the classes in index (..., batch_shape, 1), broadcast."""
        index, logits = broadcast_tensors(index, self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)


class Categorical(Classes):
    """The categorical distribution: draws are classes from 0 to classes - 1, as int64. Pass probs (..., classes), which
    are divided by their sum, or logits, which softmax turns into probabilities.

    >>> policy = norch.distributions.Categorical(norch.tensor([[1.0, 3.0], [1.0, 1.0]]))
    >>> policy.log_prob(norch.tensor([1, 0])).exp()
    tensor([0.7500, 0.5000])
    >>> policy.sample((5,)).shape
    norch.Size([5, 2])
    """

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, False, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._classes - 1)

    @property
    def mean(self) -> Tensor:
        return full_like(self.probs[..., 0], math.nan)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._drawn(sample_shape)

    def log_prob(self, value: Operand) -> Tensor:
        return self._at(self._validate_sample(value).to(int64).unsqueeze(-1))

    def _values(self) -> Tensor:
        return arange(self._classes, device=self.probs.device)
