"""Power-average pooling, composed of average pooling; the other pools are norch/ops."""

from __future__ import annotations

import math
from typing import Any, cast

from ..._tensor.handle import Handle
from ...dtype import check_numbers
from ...errors import ArgumentError
from ...ops._arguments import named_function
from ...ops._entry import composed
from ...ops._operand import tensor_of
from ...ops.composed.adaptive_pool import adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d
from ...ops.conv import per_axis
from ...ops.pointwise import where
from ...ops.pool import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from ...tensor import Tensor

__all__ = [
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices",
    "max_pool3d_with_indices",
]  # fmt: skip


_MEANS, _MAXIMA = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}, {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


def _lp_pool(axes: int, input: Tensor, p: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    """lp_pool...d(). The gradient is 0 where the mean is 0, because the root has no derivative there."""
    name, pool, extreme = f"lp_pool{axes}d", cast(Any, _MEANS[axes]), cast(Any, _MAXIMA[axes])
    if not isinstance(p, Handle):  # PyTorch allows it, without a gradient
        check_numbers(name, norm_type=p)
    if p == 0:
        raise ArgumentError(f"{name}: norm_type is not 0")
    if math.isinf(p):
        size = tensor_of(input, name).abs()
        options = (kernel_size, stride, 0, 1, ceil_mode)
        return extreme(size, *options) if p > 0 else -extreme(-size, *options)
    mean = pool(tensor_of(input, name) ** p, kernel_size, stride, 0, ceil_mode)
    count = math.prod(per_axis(kernel_size, axes, name, "kernel_size"))
    zero = mean == 0
    return where(zero, 0.0 if p > 0 else math.inf, (where(zero, 1.0, mean) * count) ** (1 / p))


@composed
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1 / p) of each window of input (N, C, L) or (C, L), with p = norm_type; see lp_pool2d().

    >>> norch.nn.functional.lp_pool1d(norch.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@composed
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1 / p) of each window of input (N, C, H, W) or (C, H, W), with p = norm_type.

    stride: kernel_size by default. p = 1 is the sum, p = inf the maximum of |x|, p = -inf its minimum. The gradient of
    a window with sum 0 is 0. norm_type 0 raises ArgumentError.

    >>> norch.nn.functional.lp_pool2d(norch.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@composed
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1 / p) of each window of input (N, C, D, H, W) or (C, D, H, W), with p = norm_type; see
    lp_pool2d().

    >>> norch.nn.functional.lp_pool3d(norch.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
    tensor([[[[5.]]]])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _with_indices(pool: Any) -> Any:
    def function(input: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, Tensor]:
        return pool(input, *arguments, **{**named, "return_indices": True})

    name = f"{pool.__name__}_with_indices"
    sizes = ", ".join("2" * (int(pool.__name__[-2]) + 1))
    about = f"""{pool.__name__}(return_indices=True).

    >>> values, indices = norch.nn.functional.{name}(norch.ones({sizes}), 2)
    >>> indices.dtype
    norch.int64
    """
    return named_function(function, name, about)


max_pool1d_with_indices, max_pool2d_with_indices = _with_indices(max_pool1d), _with_indices(max_pool2d)
max_pool3d_with_indices = _with_indices(max_pool3d)
adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d)
