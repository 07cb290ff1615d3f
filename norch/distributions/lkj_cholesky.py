"""LKJCholesky, of correlation matrices (Lewandowski, Kurowicka and Joe 2009)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..autograd import no_grad
from ..dtype import finfo
from ..errors import ArgumentError
from ..ops.composed.pointwise import mvlgamma
from ..ops.create import arange
from ..ops.pointwise import where
from ..ops.random import randn
from ..tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution, broadcast_all


class LKJCholesky(Distribution):
    """The distribution (Lewandowski, Kurowicka and Joe 2009) of lower triangular factors L (dim, dim) of correlation
    matrices, with a density of L L^T proportional to det(L L^T)^(concentration - 1), uniform for 1. concentration is a
    positive number or tensor. ArgumentError for dim < 2. A draw is made row by row by the onion method: each row is
    uniform on a sphere whose radius has a beta distribution.

    >>> norch.distributions.LKJCholesky(3, 0.5).sample().shape
    norch.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ArgumentError(f"LKJCholesky: dim is 2 or more, not {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _options(self) -> dict[str, Any]:
        return {"dim": self.dim}

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            before = arange(self.dim, dtype=self.concentration.dtype, device=self.concentration.device) - 1
            before = before.clamp(min=0)  # rows before each row but the first
            last = (self.concentration + (self.dim - 2) / 2).unsqueeze(-1)
            radius = Beta(before + 0.5, last - before / 2, validate_args=False).sample(sample_shape).unsqueeze(-1)
            away = self._noise(randn, self._extended_shape(sample_shape)).tril(-1)
            length = away.square().sum(-1, keepdim=True).sqrt()
            row = radius.sqrt() * away / where(length == 0, 1.0, length)
            rest = (1 - row.square().sum(-1)).clamp(min=finfo(row.dtype).tiny)
            return self._rounded(row + rest.sqrt().diag_embed())

    def log_prob(self, value: Operand) -> Tensor:
        diagonal = self._validate_sample(value).diagonal(dim1=-1, dim2=-2)[..., 1:]
        more, eta = self.dim - 1, self.concentration
        order = arange(more - 1, -1, -1, dtype=eta.dtype, device=eta.device) + 2 * (eta.unsqueeze(-1) - 1)
        alpha = eta + more / 2
        normalizer = more * math.log(math.pi) / 2 + mvlgamma(alpha - 0.5, more) - more * alpha.lgamma()
        return (order * diagonal.log()).sum(-1) - normalizer
