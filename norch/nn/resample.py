"""Upsample, Unfold and Fold: functional.interpolate(), unfold() and fold() as layers."""

from __future__ import annotations

from typing import Any

from . import functional as F
from ._layer import Layer, options

__all__ = ["Fold", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


@options
class Upsample(Layer, function=F.interpolate):
    """Resamples images (N, C, ...) to a size or by a factor. See functional.interpolate.

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
    """The patches of images, as columns. See functional.unfold; sizes as in Conv2d.

    >>> norch.nn.Unfold(2)(norch.ones(1, 3, 4, 4)).shape
    norch.Size([1, 12, 9])
    """

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


@options
class Fold(Layer, function=F.fold):
    """Sums patches to images of output_size: the adjoint of Unfold. See functional.fold.

    >>> norch.nn.Fold(output_size=(4, 4), kernel_size=2, stride=2)(norch.ones(1, 12, 4)).shape
    norch.Size([1, 3, 4, 4])
    """

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1
