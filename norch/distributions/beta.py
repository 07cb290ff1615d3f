"""Beta, of one probability."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ops.copy import stack
from ..tensor import Tensor
from . import constraints
from .dirichlet import Dirichlet
from .distribution import broadcast_all
from .exp_family import ExponentialFamily


class Beta(ExponentialFamily):
    """The beta distribution of a probability x: the density is proportional to x^(concentration1 - 1) (1 -
    x)^(concentration0 - 1). concentration1 and concentration0 are positive numbers, or tensors that broadcast. Beta is
    the Dirichlet distribution of two classes.

    >>> norch.distributions.Beta(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def _of_both(self) -> Dirichlet:
        return Dirichlet(stack([self.concentration1, self.concentration0], -1), validate_args=False)

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1 - 1, self.concentration0 - 1

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        return Dirichlet(stack(natural_params, -1) + 1, validate_args=False)._log_beta()

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._of_both.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        return self._of_both.variance[..., 0]

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._of_both.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Tensor:
        x = self._validate_sample(value)
        return self._of_both.log_prob(stack([x, 1 - x], -1))

    def entropy(self) -> Tensor:
        return self._of_both.entropy()
