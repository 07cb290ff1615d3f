"""FisherSnedecor, of the ratio of two variances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..dtype import finfo
from ..ops.pointwise import where
from ..ops.transcendental import xlogy
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .gamma import Gamma


class FisherSnedecor(Distribution):
    """The F-distribution: that of (x / df1) / (y / df2) for x from Chi2(df1) and y from Chi2(df2). df1 and df2 are
    positive numbers, or tensors that broadcast.

    >>> norch.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        return where(b > 4, 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4)), math.nan)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        over, under = (Gamma(n / 2, n / 2, validate_args=False).rsample(sample_shape) for n in (self.df1, self.df2))
        limits = finfo(over.dtype)
        return (over / under.clamp(min=limits.tiny)).clamp(limits.tiny, limits.max)

    def log_prob(self, value: Operand) -> Tensor:
        x, a, b = self._validate_sample(value), self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + xlogy(a - 1, x) - (a + b) * (ratio * x).log1p() - beta
