"""LowRankMultivariateNormal, of vectors whose covariance has few factors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from .. import linalg
from ..autograd import enable_grad
from ..errors import ShapeError
from ..ops.composed.shape import broadcast_shapes
from ..ops.random import randn
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors (..., n) with mean loc and covariance W W^T + diag(D), where W is cov_factor
    (..., n, m) and D is the positive cov_diag (..., n). Only m x m matrices are factorized (Woodbury identity). It
    needs NumPy and SciPy (norch-dl[linalg]). ShapeError for shapes that do not fit.

    >>> norch.distributions.LowRankMultivariateNormal(norch.zeros(2), norch.ones(2, 1), norch.ones(2)).variance
    tensor([2., 2.])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        n = loc.shape[-1:]
        if not n or cov_factor.ndim < 2 or cov_factor.shape[-2:-1] != n or cov_diag.shape[-1:] != n:
            shapes = ", ".join(str(tuple(x.shape)) for x in (loc, cov_factor, cov_diag))
            raise ShapeError(
                "LowRankMultivariateNormal: loc is (..., n), cov_factor (..., n, m), cov_diag (..., n), not " + shapes
            )
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand(*batch, *n), cov_diag.expand(*batch, *n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, n, validate_args)

    @cached_property
    @enable_grad()  # the first read may be under no_grad()
    def _capacitance(self) -> Tensor:
        """The lower triangular factor of I + W^T D^-1 W."""
        inner = self.cov_factor.mT @ (self.cov_factor / self.cov_diag.unsqueeze(-1))
        return linalg.cholesky(inner + inner.new_ones(inner.shape[-1:]).diag_embed())

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance, (..., n, n)."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, (..., n, n)."""
        return self.cov_diag.reciprocal().diag_embed() - self._whitened.mT @ self._whitened

    @property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        return linalg.cholesky(self.covariance_matrix)

    @property
    def _whitened(self) -> Tensor:
        """L^-1 W^T D^-1, where L is the factor of the capacitance."""
        return linalg.solve_triangular(
            self._capacitance, (self.cov_factor / self.cov_diag.unsqueeze(-1)).mT, upper=False
        )

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        of_factors = self._noise(randn, (*shape[:-1], self.cov_factor.shape[-1]))
        common = (self.cov_factor.to(of_factors.dtype) @ of_factors.unsqueeze(-1)).squeeze(-1)
        return self._rounded(self.loc + common + self.cov_diag.sqrt() * self._noise(randn, shape))

    def _distances(self, away: Tensor) -> Tensor:
        """x^T covariance^-1 x for each column x of away (..., n, k): (..., k)."""
        plain = (away.square() / self.cov_diag.unsqueeze(-1)).sum(-2)
        return plain - (self._whitened @ away).square().sum(-2)

    def _half_log_det(self) -> Tensor:
        return self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.cov_diag.log().sum(-1) / 2

    def _factors(self) -> list[Tensor]:
        return [self.cov_factor, self.cov_diag.sqrt().diag_embed()]

    def log_prob(self, value: Any) -> Tensor:
        distance = self._distances((self._validate_sample(value) - self.loc).unsqueeze(-1)).squeeze(-1)
        return -(self.event_shape[0] * math.log(2 * math.pi) + distance) / 2 - self._half_log_det()

    def entropy(self) -> Tensor:
        return self.event_shape[0] * (1 + math.log(2 * math.pi)) / 2 + self._half_log_det()
