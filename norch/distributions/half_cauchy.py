"""HalfCauchy, the distribution of absolute values of Cauchy variables."""

from __future__ import annotations

import math

from .._package.typing import Operand
from ..ops.create import full_like
from ..tensor import Tensor
from .cauchy import Cauchy
from .half_normal import Half


class HalfCauchy(Half):
    """The half-Cauchy distribution: that of |x| for x from Cauchy(0, scale). scale is a positive number or tensor.

    >>> norch.distributions.HalfCauchy(1.0).cdf(norch.tensor(1.0))
    tensor(0.5000)
    """

    _whole = Cauchy

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return full_like(self.scale, math.inf)

    def cdf(self, value: Operand) -> Tensor:
        return (self._validate_sample(value) / self.scale).atan() * (2 / math.pi)
