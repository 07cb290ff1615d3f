"""Upsample, Unfold and Fold: functional.interpolate(), unfold() and fold() as layers."""

from __future__ import annotations

from typing import Any

from . import functional as F
from ._layer import Layer, options

__all__ = ["Fold", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


@options
class Upsample(Layer, function=F.interpolate):
    """Resamples images (N, C, ...) of one to three spatial axes to `size`, or by scale_factor. mode: "nearest",
    "linear", "bilinear", "bicubic" or "trilinear", for the number of axes. ShapeError for other numbers of dimensions.
    functional.interpolate describes the arguments.

    >>> norch.nn.Upsample(scale_factor=2, mode="bilinear")(norch.zeros(1, 3, 4, 5)).shape
    norch.Size([1, 3, 8, 10])
    """

    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def __post_init__(self) -> None:
        factor = self.scale_factor
        self.scale_factor = tuple(map(float, factor)) if isinstance(factor, (list, tuple)) else factor and float(factor)

    def extra_repr(self) -> str:
        size = "size" if self.scale_factor is None else "scale_factor"
        return f"{size}={getattr(self, size)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample with mode "nearest".

    >>> norch.nn.UpsamplingNearest2d(scale_factor=2)(norch.ones(1, 1, 2, 2)).shape
    norch.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode "bilinear" and align_corners.

    >>> norch.nn.UpsamplingBilinear2d(size=(1, 3))(norch.tensor([[[[0.0, 4.0]]]]))
    tensor([[[[0., 2., 4.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


@options
class Unfold(Layer, function=F.unfold):
    """The patches that a Conv2d with these sizes reads, as columns: (N, C, H, W) to (N, C * KH * KW, patches), or both
    without N. Sizes as in Conv2d. See functional.unfold.

    >>> norch.nn.Unfold(2)(norch.ones(1, 3, 4, 4)).shape
    norch.Size([1, 12, 9])
    """

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


@options
class Fold(Layer, function=F.fold):
    """Sums patches into images of output_size: (N, C * KH * KW, patches) to (N, C, H, W), or both without N. The
    adjoint of Unfold: elements of overlapping patches are added. Sizes as in Conv2d. ShapeError for another number of
    patches. See functional.fold.

    >>> norch.nn.Fold(output_size=(4, 4), kernel_size=2, stride=2)(norch.ones(1, 12, 4)).shape
    norch.Size([1, 3, 4, 4])
    """

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1
