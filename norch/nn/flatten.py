"""Layers that change the shape or the order of elements. Flatten and Unflatten return views where strides allow it."""

from __future__ import annotations

from ..ops.view import flatten
from ..tensor import Tensor
from . import functional as F
from ._layer import Layer, options

__all__ = ["ChannelShuffle", "Flatten", "PixelShuffle", "PixelUnshuffle", "Unflatten"]


@options
class Flatten(Layer, function=flatten):
    """Joins the axes start_dim ... end_dim; by default all but the first, the batch.

    >>> norch.nn.Flatten()(norch.zeros(8, 3, 4)).shape
    norch.Size([8, 12])
    """

    start_dim: int = 1
    end_dim: int = -1


@options
class Unflatten(Layer):
    """Splits the axis `dim` into the sizes `unflattened_size`; one of them may be -1.

    >>> norch.nn.Unflatten(1, (3, 4))(norch.zeros(8, 12)).shape
    norch.Size([8, 3, 4])
    """

    dim: int
    unflattened_size: tuple[int, ...]

    def __post_init__(self) -> None:
        self.unflattened_size = tuple(self.unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


@options
class PixelShuffle(Layer, function=F.pixel_shuffle):
    """(..., C * r^2, H, W) to (..., C, H * r, W * r), with r = upscale_factor (Shi et al. 2016). See
    functional.pixel_shuffle.

    >>> norch.nn.PixelShuffle(2)(norch.ones(1, 8, 3, 3)).shape
    norch.Size([1, 2, 6, 6])
    """

    upscale_factor: int


@options
class PixelUnshuffle(Layer, function=F.pixel_unshuffle):
    """(..., C, H * r, W * r) to (..., C * r^2, H, W), with r = downscale_factor. See functional.pixel_unshuffle.

    >>> norch.nn.PixelUnshuffle(2)(norch.ones(1, 2, 6, 6)).shape
    norch.Size([1, 8, 3, 3])
    """

    downscale_factor: int


@options
class ChannelShuffle(Layer, function=F.channel_shuffle):
    """Interleaves the channels (axis 1) of `groups` groups (Zhang et al. 2018). See functional.channel_shuffle.

    >>> norch.nn.ChannelShuffle(2)(norch.arange(4).reshape(1, 4, 1)).flatten()
    tensor([0, 2, 1, 3])
    """

    groups: int
