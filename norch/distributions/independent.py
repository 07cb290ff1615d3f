"""Independent: batch axes of a distribution as event axes."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from .._package.typing import Operand
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, sum_rightmost


class Independent(Distribution):
    """Treats the last reinterpreted_batch_ndims batch axes of base_distribution as event axes, so that log_prob() and
    entropy() sum over them.

    >>> normal = norch.distributions.Normal(norch.zeros(3, 2), 1.0)
    >>> diagonal = norch.distributions.Independent(normal, 1)
    >>> diagonal.batch_shape, diagonal.event_shape, diagonal.log_prob(norch.zeros(3, 2)).shape
    (norch.Size([3]), norch.Size([2]), norch.Size([3]))
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        if not isinstance(base_distribution, Distribution):
            raise TypeError(f"Independent: expected a distribution, not {type(base_distribution).__name__}")
        n, batch = reinterpreted_batch_ndims, base_distribution.batch_shape
        if not 0 <= n <= len(batch):
            raise ValueError(f"Independent: reinterpreted_batch_ndims is {n}, but the batch has shape {tuple(batch)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        shape = batch + base_distribution.event_shape
        super().__init__(shape[: len(batch) - n], shape[len(batch) - n :], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def summed(self, x: Tensor) -> Tensor:
        """x summed over the reinterpreted axes."""
        return sum_rightmost(x, self.reinterpreted_batch_ndims)

    def log_prob(self, value: Operand) -> Tensor:
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self.summed(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: enumerate_support() needs reinterpreted_batch_ndims=0")
        return self.base_dist.enumerate_support(expand)

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> Independent:
        n = self.reinterpreted_batch_ndims
        base = self.base_dist.expand((*batch_shape, *self.event_shape[:n]))
        expanded = Independent(base, n, validate_args=self._validate_args)
        return self._filled(expanded, self._get_checked_instance(Independent, _instance))

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


for _name in ("mean", "mode", "variance", "stddev"):
    setattr(Independent, _name, property(attrgetter(f"base_dist.{_name}"), doc=getattr(Distribution, _name).__doc__))
