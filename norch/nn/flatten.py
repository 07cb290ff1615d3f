"""Layers that change the shape or the order of elements. Flatten and Unflatten return views if strides allow it."""

from __future__ import annotations

from ..ops.view import flatten
from ..tensor import Tensor
from . import functional as F
from ._layer import Layer, options

__all__ = ["ChannelShuffle", "Flatten", "PixelShuffle", "PixelUnshuffle", "Unflatten"]


@options
class Flatten(Layer, function=flatten):
    """Joins the axes from start_dim to end_dim into one; by default all but the first, the batch. IndexError for an
    axis out of range.

    >>> norch.nn.Flatten()(norch.zeros(8, 3, 4)).shape
    norch.Size([8, 12])
    """

    start_dim: int = 1
    end_dim: int = -1


@options
class Unflatten(Layer):
    """Splits the axis `dim` into the sizes unflattened_size, one of which may be -1. ShapeError if they do not multiply
    to the size of the axis.

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
    """(..., C * r^2, H, W) to (..., C, H * r, W * r), with r = upscale_factor: channels become blocks of pixels (Shi et
    al. 2016, section 3.2). ShapeError if r^2 does not divide the channels.

    >>> norch.nn.PixelShuffle(2)(norch.ones(1, 8, 3, 3)).shape
    norch.Size([1, 2, 6, 6])
    """

    upscale_factor: int


@options
class PixelUnshuffle(Layer, function=F.pixel_unshuffle):
    """The inverse of PixelShuffle: (..., C, H * r, W * r) to (..., C * r^2, H, W), with r = downscale_factor.
    ShapeError if r does not divide the sizes.

    >>> norch.nn.PixelUnshuffle(2)(norch.ones(1, 2, 6, 6)).shape
    norch.Size([1, 8, 3, 3])
    """

    downscale_factor: int


@options
class ChannelShuffle(Layer, function=F.channel_shuffle):
    """Interleaves the channels (axis 1) of `groups` groups, so that the next grouped convolution mixes them (Zhang et
    al. 2018, section 3.1): channel i of group g moves to position i * groups + g. ShapeError if groups does not divide
    the channels.

    >>> norch.nn.ChannelShuffle(2)(norch.arange(4).reshape(1, 4, 1)).flatten()
    tensor([0, 2, 1, 3])
    """

    groups: int
