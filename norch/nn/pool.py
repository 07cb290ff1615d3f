"""The pooling layers, over windows of the last one to three axes; the operations are in `ops.pool`.

MaxPool2d describes the parameters that they share.
"""

from __future__ import annotations

from typing import Any

from ..ops.pool import Sizes
from . import functional as F
from ._layer import Layer, options

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d",
]  # fmt: skip


@options
class _MaxPool(Layer):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False
    _shown, _result = ("kernel_size", "stride", "padding", "dilation", "ceil_mode"), "Any"

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class MaxPool1d(_MaxPool, function=F.max_pool1d):
    """The maximum of each window along the last axis: (N, C, L) to (N, C, L'); otherwise as MaxPool2d.

    >>> norch.nn.MaxPool1d(2)(norch.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """


class MaxPool2d(_MaxPool, function=F.max_pool2d):
    """The maximum of each window: (N, C, H, W) to (N, C, H', W').

    kernel_size, stride (kernel_size by default), padding (at most half of kernel_size, of elements that are never the
    maximum) and dilation: one number or one per axis, as in Conv1d. return_indices: a pair of the result and the flat
    indices of the maxima. ceil_mode: sizes of the result are rounded up, not down, so that windows may end beyond the
    padded input.

    >>> norch.nn.MaxPool2d(2)(norch.ones(1, 3, 28, 28)).shape
    norch.Size([1, 3, 14, 14])
    """


class MaxPool3d(_MaxPool, function=F.max_pool3d):
    """The maximum of each window: (N, C, D, H, W) to (N, C, D', H', W'); otherwise as MaxPool2d.

    >>> norch.nn.MaxPool3d(2)(norch.ones(1, 4, 6, 8)).shape
    norch.Size([1, 2, 3, 4])
    """


@options
class AvgPool1d(Layer, function=F.avg_pool1d):
    """The mean of each window along the last axis: (N, C, L) to (N, C, L'); otherwise as AvgPool2d.

    >>> norch.nn.AvgPool1d(2)(norch.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[3.0000, 2.5000]])
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    _shown = ("kernel_size", "stride", "padding")

    def __post_init__(self) -> None:
        sizes = self.kernel_size, self.kernel_size if self.stride is None else self.stride, self.padding
        self.kernel_size, self.stride, self.padding = (x if isinstance(x, (tuple, list)) else (x,) for x in sizes)


@options
class _AvgPool(Layer):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None
    _shown = ("kernel_size", "stride", "padding")

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class AvgPool2d(_AvgPool, function=F.avg_pool2d):
    """The mean of each window: (N, C, H, W) to (N, C, H', W').

    count_include_pad: padding counts as zeros in the mean. divisor_override: the divisor instead of the window's size.
    Otherwise as MaxPool2d.

    >>> norch.nn.AvgPool2d(2)(norch.ones(1, 3, 4, 4)).shape
    norch.Size([1, 3, 2, 2])
    """


class AvgPool3d(_AvgPool, function=F.avg_pool3d):
    """The mean of each window: (N, C, D, H, W) to (N, C, D', H', W'); otherwise as AvgPool2d.

    >>> norch.nn.AvgPool3d(2)(norch.ones(1, 4, 6, 8)).shape
    norch.Size([1, 2, 3, 4])
    """


@options
class _AdaptivePool(Layer):
    output_size: Any
    _shown = ("output_size",)


class AdaptiveAvgPool1d(_AdaptivePool, function=F.adaptive_avg_pool1d):
    """The means of output_size windows that cover the last axis.

    >>> norch.nn.AdaptiveAvgPool1d(2)(norch.tensor([[1.0, 5.0, 2.0, 4.0]]))
    tensor([[3., 3.]])
    """


class AdaptiveAvgPool2d(_AdaptivePool, function=F.adaptive_avg_pool2d):
    """The means of output_size windows that cover the last two axes; None keeps the size of an axis.

    >>> norch.nn.AdaptiveAvgPool2d(1)(norch.ones(2, 3, 7, 5)).shape
    norch.Size([2, 3, 1, 1])
    """


class AdaptiveAvgPool3d(_AdaptivePool, function=F.adaptive_avg_pool3d):
    """The means of output_size windows that cover the last three axes; None keeps the size of an axis.

    >>> norch.nn.AdaptiveAvgPool3d(2)(norch.ones(3, 8, 8, 8)).shape
    norch.Size([3, 2, 2, 2])
    """


@options
class _AdaptiveMaxPool(_AdaptivePool):
    return_indices: bool = False
    _result = "Any"


class AdaptiveMaxPool1d(_AdaptiveMaxPool, function=F.adaptive_max_pool1d):
    """The maxima of output_size windows that cover the last axis; return_indices as in MaxPool2d.

    >>> norch.nn.AdaptiveMaxPool1d(2)(norch.tensor([[1.0, 3.0, 7.0, 5.0]]))
    tensor([[3., 7.]])
    """


class AdaptiveMaxPool2d(_AdaptiveMaxPool, function=F.adaptive_max_pool2d):
    """The maxima of output_size windows that cover the last two axes; None keeps the size of an axis; return_indices as
    in MaxPool2d.

    >>> norch.nn.AdaptiveMaxPool2d(1)(norch.arange(4.0).reshape(1, 2, 2))
    tensor([[[3.]]])
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPool, function=F.adaptive_max_pool3d):
    """The maxima of output_size windows that cover the last three axes; otherwise as AdaptiveMaxPool2d.

    >>> norch.nn.AdaptiveMaxPool3d(2)(norch.ones(3, 8, 8, 8)).shape
    norch.Size([3, 2, 2, 2])
    """


@options
class _LPPool(Layer):
    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class LPPool1d(_LPPool, function=F.lp_pool1d):
    """(sum of x^p)^(1 / p) of each window along the last axis, with p = norm_type: (N, C, L) to (N, C, L'); otherwise
    as MaxPool2d.

    >>> norch.nn.LPPool1d(2, kernel_size=2)(norch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """


class LPPool2d(_LPPool, function=F.lp_pool2d):
    """(sum of x^p)^(1 / p) of each window, with p = norm_type: (N, C, H, W) to (N, C, H', W'); otherwise as MaxPool2d.

    >>> norch.nn.LPPool2d(2, 2)(norch.ones(1, 1, 2, 2))
    tensor([[[[2.]]]])
    """


class LPPool3d(_LPPool, function=F.lp_pool3d):
    """(sum of x^p)^(1 / p) of each window, with p = norm_type: (N, C, D, H, W) to (N, C, D', H', W'); otherwise as
    MaxPool2d.

    >>> norch.nn.LPPool3d(2, kernel_size=2)(norch.ones(1, 4, 6, 8)).shape
    norch.Size([1, 2, 3, 4])
    """
