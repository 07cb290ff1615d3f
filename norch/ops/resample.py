"""An axis resampled by weights (csrc/ops/resample.c), for interpolate()."""

from __future__ import annotations

import sys

from .._binding.library import lib
from .._package.typing import Any, Tensor
from ..autograd.differentiable import differentiable
from .index import index_select
from .pointwise import where

IN_PAGES = sys.platform == "emscripten"  # whose library has no kernels that calls can be composed for


def resampled(x: Tensor, dim: int, index: Tensor, weights: Tensor) -> Tensor:
    """x, float32 or float64, resampled to n elements along dim. Element i is the sum of the elements index[k, i] times
    weights[k, i]. index is int64 (k, n); a negative index means no element.
    """
    return (_composed if x.is_cuda or IN_PAGES else _resampled)(x, dim, index, weights)


@differentiable(  # index and weights depend on sizes only: as in PyTorch, walks free nothing
    "interpolate",
    grad=lambda g, x_meta, dim, index, weights: _resampled_backward(g, dim, index, weights, x_meta.shape[dim]),
)
def _resampled(x: Tensor, dim: int, index: Tensor, weights: Tensor) -> Tensor:
    return lib.norch_resample(x, dim, index, weights)


@differentiable(grad=lambda g, dim, index, weights: _resampled(g, dim, index, weights))
def _resampled_backward(g: Tensor, dim: int, index: Tensor, weights: Tensor, size: int) -> Tensor:
    return lib.norch_resample_backward(g, dim, index, weights, size)


def _composed(x: Any, dim: int, index: Any, weights: Any) -> Any:
    """resampled() as recorded operations, for CUDA."""
    total: Any = None
    shape = [-1, *[1] * (x.ndim - 1 - dim % x.ndim)]
    for places, factors in zip(index.unbind(0), weights.unbind(0)):
        rows = index_select(x, dim, places.clamp(min=0))
        part = where(places.reshape(shape) < 0, 0.0, rows * factors.reshape(shape))
        total = part if total is None else total + part
    return total
