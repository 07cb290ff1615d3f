"""StudentT, with heavy tails."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..ops.pointwise import where
from ..ops.random import randn
from ..tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution, broadcast_all


class StudentT(Distribution):
    """Student's t-distribution: that of loc + scale x / sqrt(y / df) for x from Normal(0, 1) and y from Chi2(df). df >
    0, loc and scale > 0 are numbers, or tensors that broadcast.

    >>> norch.distributions.StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        df = self.df.where(self.df > 2, 3.0)  # elsewhere a constant, whose slope is 0 and not NaN
        finite = self.scale.square() * df / (df - 2)
        return where(self.df <= 1, math.nan, where(self.df <= 2, math.inf, finite))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        x = self._noise(randn, self._extended_shape(sample_shape))
        y = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self._rounded(self.loc + self.scale * x * (y.to(x.dtype) / self.df).rsqrt())

    def log_prob(self, value: Any) -> Tensor:
        x = (self._validate_sample(value) - self.loc) / self.scale
        half = (self.df + 1) / 2
        normalizer = self.scale.log() + (self.df * math.pi).log() / 2 + (self.df / 2).lgamma() - half.lgamma()
        return -half * (x.square() / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        half, rest = (self.df + 1) / 2, self.df / 2
        log_beta = rest.lgamma() + math.lgamma(0.5) - half.lgamma()
        return self.scale.log() + half * (half.digamma() - rest.digamma()) + self.df.log() / 2 + log_beta
