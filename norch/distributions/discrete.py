"""Distributions over finitely many values: Bernoulli, Categorical, OneHotCategorical. Each is given by probabilities or
by their logits: logarithms (up to a constant), or of Bernoulli log(p / (1 - p)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from ..autograd import enable_grad, no_grad
from ..create import arange, eye, full_like
from ..dtype import finfo, int64
from ..errors import ShapeError
from ..nn.functional import binary_cross_entropy_with_logits, one_hot
from ..ops.composed.shape import broadcast_tensors
from ..ops.pointwise import where
from ..random import bernoulli, multinomial
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, clamped, either


class Bernoulli(Distribution):
    """1 with probability probs, else 0; probs or logits: a number or tensor.

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
    @enable_grad()  # whoever asks first, it may be sample()
    def probs(self) -> Tensor:
        """The probabilities of 1."""
        return self.logits.sigmoid()

    @cached_property
    @enable_grad()  # whoever asks first, it may be sample()
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


class _Classes(Distribution):
    """probs or logits (..., classes): their last axis is over the classes of one distribution."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any, logits: Any, one_hot: bool, validate_args: bool | None) -> None:
        self._by = either(self._name(), probs, logits)
        given = logits if probs is None else probs
        if not isinstance(given, Tensor):
            raise TypeError(f"{self._name()}: expected a tensor as {self._by}, not {type(given).__name__}")
        if not given.ndim:
            raise ShapeError(f"{self._name()}: {self._by} must have 1 dimension or more, the last over the classes")
        if probs is None:
            self.__dict__["logits"] = given - given.logsumexp(-1, keepdim=True)
        else:
            self.__dict__["probs"] = given / given.sum(-1, keepdim=True)
        super().__init__(given.shape[:-1], given.shape[-1:] if one_hot else (), validate_args)

    def _given(self) -> list[str]:
        return [self._by]

    @cached_property
    @enable_grad()  # whoever asks first, it may be sample()
    def probs(self) -> Tensor:
        """The probabilities of the classes, (batch_shape, classes)."""
        return self.logits.softmax(-1)

    @cached_property
    @enable_grad()  # whoever asks first, it may be sample()
    def logits(self) -> Tensor:
        """Their logarithms."""
        return clamped(self.probs).log()

    @property
    def param_shape(self) -> Any:
        """The shape of probs and logits, (batch_shape, classes)."""
        return getattr(self, self._by).shape

    @property
    def _classes(self) -> int:
        return self.param_shape[-1]

    def _drawn(self, sample_shape: Iterable[int]) -> Tensor:
        shape = tuple(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._classes)
            return multinomial(rows, math.prod(shape), True).T.reshape(*shape, *self.batch_shape)

    def _at(self, index: Tensor) -> Tensor:
        """The logits at the classes index (..., batch_shape, 1), which broadcasts."""
        index, logits = broadcast_tensors(index, self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)


class Categorical(_Classes):
    """One of the numbers 0 ... classes - 1, int64, with probabilities probs, or those of logits (..., classes).

    probs need not sum to 1: they are divided by their sum.

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

    @property
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

    def log_prob(self, value: Any) -> Tensor:
        return self._at(self._validate_sample(value).to(int64).unsqueeze(-1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._classes, device=self.probs.device).reshape(-1, *(1,) * len(self.batch_shape))
        return values.expand(self._classes, *self.batch_shape) if expand else values


class OneHotCategorical(_Classes):
    """Categorical, whose values are rows of 0s with one 1: (..., classes), of the dtype of probs.

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

    def log_prob(self, value: Any) -> Tensor:
        return self._at(self._validate_sample(value).argmax(-1, keepdim=True))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n, rank = self._classes, len(self.batch_shape)
        values = eye(n, dtype=self.probs.dtype, device=self.probs.device).reshape(n, *(1,) * rank, n)
        return values.expand(n, *self.batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical, with the derivatives of probs in the place of those that draws have not (Bengio et al. 2013).

    >>> logits = norch.zeros(3, requires_grad=True)
    >>> norch.distributions.OneHotCategoricalStraightThrough(logits=logits).rsample().requires_grad
    True
    """

    has_rsample = True

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
