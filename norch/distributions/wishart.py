"""Wishart, of covariance matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..errors import ArgumentError
from ..linalg import cholesky
from ..ops.composed.pointwise import mvlgamma
from ..ops.composed.shape import broadcast_shapes
from ..ops.create import arange
from ..ops.pointwise import where
from ..ops.random import randn
from ..ops.values import as_tensor
from ..tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import holds
from .multivariate_normal import ByCovariance


class Wishart(ByCovariance):
    """The Wishart distribution: that of the sum of x x^T over df normal vectors x (n) with mean 0, which is a
    symmetric, positive definite matrix (n, n). df > n - 1 need not be whole. Pass one of the covariance_matrix of x,
    the precision_matrix (its inverse) and scale_tril (its lower triangular factor), all (..., n, n). Draws are made by
    Bartlett's decomposition (1933). It needs NumPy and SciPy (norch-dl[linalg]). ValueError unless one matrix is
    passed.

    >>> norch.distributions.Wishart(3.0, norch.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrix = self._choose(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        degrees = as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch, n = broadcast_shapes(degrees.shape, matrix.shape[:-2]), matrix.shape[-1]
        self.df, self.__dict__[self._by] = degrees.expand(batch), matrix.expand(*batch, n, n)
        super().__init__(batch, (n, n), validate_args)
        if self._validate_args and not holds(self.df > n - 1):
            raise ArgumentError(f"Wishart: df must be more than {n - 1} for matrices of {n} rows")

    def _parameter_names(self) -> list[str]:
        return ["df", self._by]

    @property
    def _n(self) -> int:
        return self.event_shape[-1]

    @property
    def _wide(self) -> Tensor:
        """df with two axes appended, to multiply matrices."""
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._wide * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._wide - self._n - 1
        return where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        return self._wide * (self.covariance_matrix.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        drawn = self._drawn(sample_shape)
        for _ in range(10):  # draws of few degrees may round to singular matrices, which have no density
            good = self.support.check(drawn)
            if holds(good):
                break
            drawn = where(good.unsqueeze(-1).unsqueeze(-1), drawn, self._drawn(sample_shape))
        return self._rounded(drawn)

    def _drawn(self, sample_shape: Iterable[int]) -> Tensor:
        less = arange(self._n, dtype=self.df.dtype, device=self.df.device)
        diagonal = Chi2(self.df.unsqueeze(-1) - less, validate_args=False).rsample(sample_shape).sqrt()
        below = self._noise(randn, self._extended_shape(sample_shape)).tril(-1)
        factor = self.scale_tril.to(below.dtype) @ (below + diagonal.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Any) -> Tensor:
        x, half, n = self._validate_sample(value), self.df / 2, self._n
        factor = cholesky(x)
        trace = self._distances(factor).sum(-1)
        of_x = (2 * half - n - 1) * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return of_x - trace / 2 - half * (n * math.log(2) + 2 * self._half_log_det()) - mvlgamma(half, n)

    def _mean_log_det(self) -> Tensor:
        """The expectation of log det(x)."""
        half, n = self.df / 2, self._n
        slopes = (half.unsqueeze(-1) - arange(n, dtype=half.dtype, device=half.device) / 2).digamma().sum(-1)
        return slopes + n * math.log(2) + 2 * self._half_log_det()

    def _cross_entropy(self, of: Wishart) -> Tensor:
        """The expectation of -of.log_prob(x)."""
        half, n = self.df / 2, self._n
        trace = of.df * self._distances(of.scale_tril).sum(-1)
        normalizer = half * (n * math.log(2) + 2 * self._half_log_det()) + mvlgamma(half, n)
        return normalizer + trace / 2 - (half - (n + 1) / 2) * of._mean_log_det()

    def entropy(self) -> Tensor:
        return self._cross_entropy(self)
