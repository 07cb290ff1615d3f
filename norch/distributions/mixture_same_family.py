"""MixtureSameFamily: a mixture of distributions of one family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..autograd import no_grad
from ..errors import ShapeError
from ..ops.composed.shape import broadcast_shapes
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """A mixture: a draw takes a class from mixture_distribution, then a value from that entry of component_distribution
    along its last batch axis. TypeError if mixture_distribution is not a Categorical; ShapeError if the numbers of
    classes differ.

    >>> weights = norch.distributions.Categorical(norch.tensor([1.0, 3.0]))
    >>> two = norch.distributions.Normal(norch.tensor([0.0, 4.0]), 1.0)
    >>> norch.distributions.MixtureSameFamily(weights, two).mean
    tensor(3.)
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise TypeError(f"MixtureSameFamily: expected a Categorical, not {type(mixture_distribution).__name__}")
        if not isinstance(component_distribution, Distribution):
            raise TypeError(f"MixtureSameFamily: expected a distribution, not {type(component_distribution).__name__}")
        batch, classes = component_distribution.batch_shape, mixture_distribution.param_shape[-1]
        # Components that are to be broadcast to the batch of the mixture would share their draws.
        wide = broadcast_shapes((*mixture_distribution.batch_shape, classes), batch)
        if not batch or batch[-1] != classes or wide != batch:
            raise ShapeError(
                f"MixtureSameFamily: {classes} classes in a batch of shape {tuple(mixture_distribution.batch_shape)} "
                f"do not fit components of batch shape {tuple(batch)}"
            )
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _weighed(self, x: Tensor) -> Tensor:
        """The sum over the components (the axis before the event's) of x times their probabilities."""
        event = (1,) * len(self.event_shape)
        probs = self.mixture_distribution.probs
        return (x * probs.reshape(*probs.shape, *event)).sum(-1 - len(event))

    @property
    def mean(self) -> Tensor:
        return self._weighed(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances plus the variance of the means."""
        away = self.component_distribution.mean - self.mean.unsqueeze(-1 - len(self.event_shape))
        return self._weighed(self.component_distribution.variance + away.square())

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            shape = tuple(sample_shape)
            event = len(self.event_shape)
            of_all = self.component_distribution.sample(shape)
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(shape)
            index = chosen.reshape(*chosen.shape, *(1,) * (1 + event))
            index = index.expand(*chosen.shape, 1, *self.event_shape)
            return of_all.gather(-1 - event, index).squeeze(-1 - event)

    def log_prob(self, value: Any) -> Tensor:
        x = self._tensor(value).unsqueeze(-1 - len(self.event_shape))
        return (self.component_distribution.log_prob(x) + self.mixture_distribution.logits).logsumexp(-1)

    def cdf(self, value: Any) -> Tensor:
        below = self.component_distribution.cdf(self._tensor(value).unsqueeze(-1))
        return (below * self.mixture_distribution.probs).sum(-1)

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> MixtureSameFamily:
        wanted = tuple(batch_shape)
        components = self.component_distribution.expand((*wanted, self.component_distribution.batch_shape[-1]))
        expanded = MixtureSameFamily(self.mixture_distribution.expand(wanted), components, self._validate_args)
        return self._filled(expanded, self._get_checked_instance(MixtureSameFamily, _instance))

    def _tensor(self, value: Any) -> Tensor:
        return self.component_distribution._tensor(value)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution}, {self.component_distribution})"
