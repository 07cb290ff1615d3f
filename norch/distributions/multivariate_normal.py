"""MultivariateNormal, of vectors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from .. import linalg
from ..autograd import enable_grad
from ..errors import ShapeError
from ..ops.composed.shape import broadcast_shapes
from ..ops.linalg.torch_names import cholesky_inverse
from ..ops.random import randn
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution


class ByCovariance(Distribution):
    """Base of distributions that take a covariance matrix, its inverse (the precision matrix) or its lower triangular
    factor. The other two are computed when they are read.
    """

    _by = "scale_tril"  # which of the three was given

    def _choose(self, **matrices: Tensor | None) -> Tensor:
        """The matrix that is not None. ValueError unless exactly one is."""
        chosen = {name: x for name, x in matrices.items() if x is not None}
        if len(chosen) != 1:
            raise ValueError(f"{self._name()}: give one of {', '.join(matrices)}, not {len(chosen)}")
        ((self._by, matrix),) = chosen.items()
        if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise ShapeError(f"{self._name()}: {self._by} is (..., n, n), not {tuple(matrix.shape)}")
        return matrix

    @cached_property
    @enable_grad()  # the first read may be in sample(), under no_grad()
    def scale_tril(self) -> Tensor:
        """The lower triangular factor L of the covariance L L^T."""
        factor = self._unbroadcasted_scale_tril
        return factor.expand(*self.batch_shape, *factor.shape[-2:])

    @cached_property
    @enable_grad()
    def _unbroadcasted_scale_tril(self) -> Tensor:
        """scale_tril. User-defined subclasses that have no matrix override this name."""
        if self._by == "scale_tril":
            return self.scale_tril
        if self._by == "covariance_matrix":
            return linalg.cholesky(self.covariance_matrix)
        # The precision is U U^T with U upper triangular, found by factorizing the flipped matrix. L is U^-T.
        lower = linalg.cholesky(self.precision_matrix.flip(-2, -1)).flip(-2, -1).mT
        return linalg.solve_triangular(lower, lower.new_ones(lower.shape[-1:]).diag_embed(), upper=False)

    @cached_property
    @enable_grad()
    def covariance_matrix(self) -> Tensor:
        """The covariance, (..., n, n)."""
        return self.scale_tril @ self.scale_tril.mT

    @cached_property
    @enable_grad()
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, (..., n, n)."""
        return cholesky_inverse(self.scale_tril)

    def _distances(self, away: Tensor) -> Tensor:
        """x^T covariance^-1 x for each column x of away (..., n, k): (..., k)."""
        batch = broadcast_shapes(away.shape[:-2], self.scale_tril.shape[:-2])
        scale = self.scale_tril.expand(*batch, *self.scale_tril.shape[-2:])
        return linalg.solve_triangular(scale, away.expand(*batch, *away.shape[-2:]), upper=False).square().sum(-2)

    def _half_log_det(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(ByCovariance):
    """The normal distribution of vectors (..., n) with mean loc. Pass one of covariance_matrix, precision_matrix (its
    inverse), both symmetric and positive definite, and scale_tril, the lower triangular factor of the covariance; all
    are (..., n, n). It needs NumPy and SciPy (norch-dl[linalg]). ValueError unless one matrix is passed; ShapeError for
    shapes that do not fit.

    >>> normal = norch.distributions.MultivariateNormal(norch.zeros(2), norch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> normal.log_prob(norch.zeros(2))
    tensor(-2.3872)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrix = self._choose(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if loc.ndim < 1:
            raise ShapeError(f"MultivariateNormal: loc is (..., n), not {tuple(loc.shape)}")
        batch = broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
        if loc.shape[-1] != matrix.shape[-1]:
            raise ShapeError(f"MultivariateNormal: {loc.shape[-1]} means for a matrix of {matrix.shape[-1]} rows")
        self.loc = loc.expand(*batch, loc.shape[-1])
        self.__dict__[self._by] = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, loc.shape[-1:], validate_args)
        if not isinstance(type(self)._unbroadcasted_scale_tril, cached_property):  # a subclass may override it
            factor: Any = ByCovariance._unbroadcasted_scale_tril
            self._unbroadcasted_scale_tril = factor.func(self)

    def _parameter_names(self) -> list[str]:
        return ["loc", self._by]

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.square().sum(-1)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        noise = self._noise(randn, self._extended_shape(sample_shape))
        return self._rounded(self.loc + (self.scale_tril.to(noise.dtype) @ noise.unsqueeze(-1)).squeeze(-1))

    def log_prob(self, value: Any) -> Tensor:
        distance = self._distances((self._validate_sample(value) - self.loc).unsqueeze(-1)).squeeze(-1)
        return -(self.event_shape[0] * math.log(2 * math.pi) + distance) / 2 - self._half_log_det()

    def _factors(self) -> list[Tensor]:
        """Matrices whose products with their transposes sum to the covariance."""
        return [self.scale_tril]

    def entropy(self) -> Tensor:
        return self.event_shape[0] * (1 + math.log(2 * math.pi)) / 2 + self._half_log_det()
