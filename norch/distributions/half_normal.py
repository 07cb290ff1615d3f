"""HalfNormal, and the base of distributions of |x|."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .._package.typing import Operand
from ..ops.create import zeros_like
from ..ops.pointwise import where
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class Half(TransformedDistribution):
    """Base of distributions of |x|, where the distribution of x is symmetric around 0. scale is a positive number or
    tensor.
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _whole: ClassVar[Any]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._whole(0.0, scale, validate_args=False), AbsTransform(), validate_args)

    expand = Distribution.expand

    @property
    def scale(self) -> Tensor:
        """The scale of the distribution of x."""
        return self.base_dist.scale  # type: ignore[attr-defined]

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    def log_prob(self, value: Operand) -> Tensor:
        x = self._validate_sample(value)
        return where(x >= 0, self.base_dist.log_prob(x) + math.log(2), -math.inf)

    def icdf(self, value: Operand) -> Tensor:
        return self.base_dist.icdf((self._tensor(value) + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)

    __repr__ = Distribution.__repr__


class HalfNormal(Half):
    """The half-normal distribution: that of |x| for x from Normal(0, scale). scale is a positive number or tensor.

    >>> norch.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _whole = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def cdf(self, value: Operand) -> Tensor:
        return (self._validate_sample(value) / (self.scale * math.sqrt(2))).erf()
