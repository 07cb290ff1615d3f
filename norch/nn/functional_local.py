"""Elements beside their neighbours: local response normalisation, and pooling by norms, composed of pooling."""

from __future__ import annotations

from typing import Any

from ..dtype import check_numbers
from ..errors import ArgumentError, ShapeError
from ..ops._operand import rename_errors, tensor_of
from ..ops.composed.pad import pad
from ..ops.pointwise import where
from ..ops.pool import avg_pool1d, avg_pool2d
from ..tensor import Tensor


@rename_errors
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input (N, C, ...) over (k + alpha m)^beta, where m is the mean of the squares of size channels around each, those
    beyond the ends being 0 (Krizhevsky et al. 2012, section 3.3).

    >>> norch.nn.functional.local_response_norm(norch.ones(1, 3, 1), 3, alpha=3.0, beta=1.0).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """
    x = tensor_of(input, "local_response_norm")
    if x.ndim < 3:
        raise ShapeError(f"local_response_norm: expected (N, C, ...) of 3 dimensions or more, got {tuple(x.shape)}")
    if size < 1:
        raise ArgumentError(f"local_response_norm: size is positive, not {size}")
    around = pad(x.square(), (0, 0) * (x.ndim - 2) + (size // 2, (size - 1) // 2)).unfold(1, size, 1)
    return x / (k + alpha * around.mean(-1)) ** beta


def _powers(x: Tensor, p: float, name: str) -> Tensor:
    check_numbers(name, norm_type=p)
    if p == 0:
        raise ArgumentError(f"{name}: norm_type is not 0")
    return tensor_of(x, name) ** p


def _normed(mean: Tensor, count: int, p: float) -> Tensor:
    zero = mean == 0  # where the root has no derivative, and none is handed back
    return where(zero, 0.0, (where(zero, 1.0, mean) * count) ** (1 / p))


@rename_errors
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1 / p) over windows of input (N, C, L) or (C, L), p being norm_type; as lp_pool2d()."""
    size = kernel_size[0] if isinstance(kernel_size, (tuple, list)) else kernel_size
    return _normed(
        avg_pool1d(_powers(input, norm_type, "lp_pool1d"), kernel_size, stride, 0, ceil_mode), size, norm_type
    )


@rename_errors
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1 / p) over windows of input (N, C, H, W) or (C, H, W), p being norm_type; stride: kernel_size
    unless given. 1 sums, and with large p the largest wins. The gradient at a window whose sum is 0 is 0.

    >>> norch.nn.functional.lp_pool2d(norch.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    high, wide = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size, kernel_size)
    return _normed(
        avg_pool2d(_powers(input, norm_type, "lp_pool2d"), kernel_size, stride, 0, ceil_mode), high * wide, norm_type
    )
