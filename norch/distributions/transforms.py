"""Transforms of random variables: functions with an inverse and the log-determinant of their Jacobian."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._package.exports import publish
from ..dtype import finfo
from ..errors import ShapeError
from ..nn.functional import pad, softplus
from ..ops.composed.shape import broadcast_shapes
from ..ops.create import arange
from ..tensor import Tensor
from . import constraints
from ._transform_base import Increasing, Transform
from ._transform_shapes import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
)
from .distribution import sum_rightmost
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip
publish(globals())


class AffineTransform(Transform):
    """loc + scale x. loc and scale are numbers or tensors; event_dim is the number of axes of an event.

    >>> norch.distributions.AffineTransform(loc=1.0, scale=2.0)(norch.tensor([0.0, 3.0]))
    tensor([1., 7.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale if isinstance(self.scale, Tensor) else x.new_tensor(self.scale)
        log = scale.abs().log().expand(x.shape)
        return sum_rightmost(log, self.event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return broadcast_shapes(shape, *(x.shape for x in (self.loc, self.scale) if isinstance(x, Tensor)))

    inverse_shape = forward_shape


class ExpTransform(Increasing):
    """exp(x).

    >>> norch.distributions.ExpTransform().inv(norch.tensor([1.0]))
    tensor([0.])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """x^exponent of positive x.

    >>> norch.distributions.PowerTransform(norch.tensor(2.0))(norch.tensor([3.0]))
    tensor([9.])
    """

    bijective = True

    domain = codomain = constraints.positive

    @property
    def sign(self) -> Any:
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else math.copysign(1, self.exponent)

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return broadcast_shapes(shape, self.exponent.shape) if isinstance(self.exponent, Tensor) else shape

    inverse_shape = forward_shape


def _clipped(p: Tensor) -> Tensor:
    """p clamped away from 0 and 1."""
    info = finfo(p.dtype)
    return p.clamp(min=info.tiny, max=1 - info.eps)


class SigmoidTransform(Increasing):
    """1 / (1 + exp(-x)).

    >>> norch.distributions.SigmoidTransform()(norch.tensor([0.0]))
    tensor([0.5000])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped(x.sigmoid())

    def _inside(self, y: Tensor) -> Tensor:
        return _clipped(y)

    def _inverse(self, y: Tensor) -> Tensor:
        return _clipped(y).logit()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Increasing):
    """log(1 + exp(x)).

    >>> norch.distributions.SoftplusTransform()(norch.tensor([0.0]))
    tensor([0.6931])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Increasing):
    """tanh(x).

    >>> norch.distributions.TanhTransform()(norch.tensor([0.0]))
    tensor([0.])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)^2), which does not cancel
        return 2 * (math.log(2.0) - x - softplus(-2 * x))


class AbsTransform(Transform):
    """The absolute value |x|, which is not one-to-one. The inverse of y is y.

    >>> norch.distributions.AbsTransform()(norch.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _with_axes(shape: Sequence[int], count: int, name: str) -> Sequence[int]:
    if len(shape) < count:
        raise ShapeError(f"{name}: shape {tuple(shape)} has too few axes for events of {count}")
    return shape


class SoftmaxTransform(Transform):
    """softmax(x) along the last axis. The inverse is log(y), one of the x whose image is y.

    >>> norch.distributions.SoftmaxTransform()(norch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _with_axes(shape, 1, "SoftmaxTransform")

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Maps n numbers to n + 1 probabilities, which are pieces of a stick of length 1. Each number takes the fraction
    sigmoid(x - log(numbers left)) of the rest of the stick, so that zeros give equal probabilities.

    >>> norch.distributions.StickBreakingTransform()(norch.zeros(1))
    tensor([0.5000, 0.5000])
    """

    bijective = True

    domain, codomain = constraints.real_vector, constraints.simplex

    def _parts(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        return x - arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        part = _clipped(self._parts(x).sigmoid())
        return pad(part, (0, 1), value=1.0) * pad((1 - part).cumprod(-1), (1, 0), value=1.0)

    def _inside(self, y: Tensor) -> Tensor:
        return y.clamp(min=finfo(y.dtype).tiny)

    def _inverse(self, y: Tensor) -> Tensor:
        first = y[..., :-1]
        left = (1 - first.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return first.log() - left.log() + (first - self._parts(first))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = self._parts(x)
        return (y[..., :-1].log() - parts - softplus(-parts)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        *batch, n = _with_axes(shape, 1, "StickBreakingTransform")
        return (*batch, n + 1)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        *batch, n = _with_axes(shape, 1, "StickBreakingTransform")
        return (*batch, n - 1)


class LowerCholeskyTransform(Transform):
    """Maps square matrices to lower triangular ones with a positive diagonal, by exp().

    >>> norch.distributions.LowerCholeskyTransform()(norch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Maps square matrices to L L^T, where L is the image of LowerCholeskyTransform.

    >>> norch.distributions.PositiveDefiniteTransform()(norch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        from ..linalg import cholesky

        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Maps n (n - 1) / 2 numbers to the lower triangular factor (n, n) of a correlation matrix. tanh(x) are the partial
    correlations, row by row (Lewandowski, Kurowicka and Joe 2009).

    >>> norch.distributions.CorrCholeskyTransform()(norch.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    bijective = True

    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), -1)
        left = (1 - partial.square()).sqrt().cumprod(-1)
        unit = x.new_ones(partial.shape[-1:]).diag_embed()
        return (partial + unit) * pad(left[..., :-1], (1, 0), value=1.0)

    def _inside(self, y: Tensor) -> Tensor:
        most = 1 - finfo(y.dtype).eps
        return y.tril(-1).clamp(-most, most) + y - y.tril(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = pad(1 - y.square().cumsum(-1)[..., :-1], (1, 0), value=1.0)
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), -2)
        return left.log().sum(-1) / 2 + TanhTransform().log_abs_det_jacobian(x, x).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        *batch, count = _with_axes(shape, 1, "CorrCholeskyTransform")
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ShapeError(f"CorrCholeskyTransform: {count} numbers are not n (n - 1) / 2 for any n")
        return (*batch, n, n)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        *batch, rows, columns = _with_axes(shape, 2, "CorrCholeskyTransform")
        if rows != columns:
            raise ShapeError(f"CorrCholeskyTransform: a matrix of {rows} rows and {columns} columns is not square")
        return (*batch, rows * (rows - 1) // 2)


class CumulativeDistributionTransform(Increasing):
    """The cumulative distribution function of a distribution.

    >>> uniform = norch.distributions.Uniform(norch.tensor(0.0), norch.tensor(4.0))
    >>> norch.distributions.CumulativeDistributionTransform(uniform)(norch.tensor([1.0]))
    tensor([0.2500])
    """

    codomain = constraints.unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


identity_transform = ComposeTransform([])
for _name in __all__[:-1]:
    globals()[_name].__module__ = __name__
