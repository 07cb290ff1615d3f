"""Convolutions and transposed convolutions over one, two and three axes. The operations are `ops.conv`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..dtype import dtype as DType
from ..ops import conv as ops
from ..ops.conv import Sizes, per_axis
from ..tensor import Tensor
from . import functional as F
from . import init
from ._layer import FUNCTIONS, changed_options, format_options
from .linear import reset_bias
from .module import Module
from .parameter import Parameter, add_parameters

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Conv(Module):
    """Base of all convolutions. It defines the constructor and forward of Conv1d, Conv2d and Conv3d."""

    _axes: ClassVar[int]
    _conv: ClassVar[str]  # the function of nn.functional
    transposed = False
    _padding_modes: tuple[str, ...] = ("zeros", "reflect", "replicate", "circular")
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if padding_mode not in self._padding_modes:
            raise ValueError(f"{name}: padding_mode {padding_mode!r} is not one of {self._padding_modes}")
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: channels {in_channels} and {out_channels} must be divisible by groups {groups}")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = per_axis(kernel_size, self._axes, name, "kernel_size")
        self.stride = per_axis(stride, self._axes, name, "stride")
        self.padding: Any = padding
        if not isinstance(padding, str):
            self.padding = per_axis(padding, self._axes, name, "padding")
        elif padding not in ("same", "valid"):
            raise ValueError(f"{name}: padding is a number, 'valid' or 'same', not {padding!r}")
        elif padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(f"{name}: padding='same' needs a stride of 1, not {self.stride}")
        self.dilation = per_axis(dilation, self._axes, name, "dilation")
        self.output_padding = (0,) * self._axes
        self.padding_mode = padding_mode
        outer, inner = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        sizes = (outer, inner // groups, *self.kernel_size)
        add_parameters(self, device, dtype, weight=sizes, bias=out_channels if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initializes weight and bias, uniformly in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        reset_bias(self, math.prod(self.weight.shape[1:]))

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """forward() with other weights. Subclasses in programs call it, and override it."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._pairs_of_padding(), self.padding_mode), 0
        return FUNCTIONS[self._conv](input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def _pairs_of_padding(self) -> list[int]:
        """The padding as functional.pad() takes it: both ends of each axis, the last axis first."""
        name = type(self).__name__
        ends = ops.paddings(name, self.padding, self.weight, self.stride, self.dilation, self._axes)
        return [pair for axis in reversed(list(zip(*ends, strict=True))) for pair in axis]

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self._axes, (1,) * self._axes
        shown: dict[str, Any] = {"kernel_size": self.kernel_size, "stride": self.stride}
        shown |= changed_options(self, {"padding": zeros, "dilation": ones, "output_padding": zeros, "groups": 1})
        shown |= {"bias": False} if self.bias is None else {}
        shown |= changed_options(self, {"padding_mode": "zeros"})
        return f"{self.in_channels}, {self.out_channels}, {format_options(shown)}"


class Conv1d(_Conv):
    """Convolution over one axis: (N, in_channels, L) or (in_channels, L) to (N, out_channels, L').

    L' = (L + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down. weight: (out_channels, in_channels
    / groups, kernel_size); bias: (out_channels), or None. Both are initialized uniformly in +-1/sqrt(fan_in).

    stride        the distance between two windows
    padding       the number of elements that are added at each end, "valid" (none), or "same" (L' = L, stride 1)
    padding_mode  the added elements: "zeros", "reflect", "replicate" or "circular"
    dilation      the distance between two elements of a window
    groups        the channels are split into so many groups, each with a separate convolution

    ValueError for other values, and if groups does not divide both numbers of channels. ShapeError for an input with
    another number of channels. As in all libraries, the kernel is not mirrored: this is a cross-correlation.

    >>> norch.nn.Conv1d(2, 3, 5, padding=2)(norch.ones(1, 2, 8)).shape
    norch.Size([1, 3, 8])
    """

    _axes, _conv = 1, "conv1d"


class Conv2d(_Conv):
    """Convolution over two axes: (N, in_channels, H, W) or (in_channels, H, W) to (N, out_channels, H', W').

    weight: (out_channels, in_channels / groups, KH, KW). Sizes are one number or a pair; otherwise as Conv1d.

    >>> norch.nn.Conv2d(1, 16, 3, padding=1)(norch.ones(4, 1, 28, 28)).shape
    norch.Size([4, 16, 28, 28])
    """

    _axes, _conv = 2, "conv2d"


class Conv3d(_Conv):
    """Convolution over three axes: (N, in_channels, D, H, W) or (in_channels, D, H, W) to
    (N, out_channels, D', H', W').

    weight: (out_channels, in_channels / groups, KD, KH, KW). Sizes are one number or three; otherwise as Conv1d.

    >>> norch.nn.Conv3d(1, 16, 3, padding=1)(norch.ones(4, 1, 8, 8, 8)).shape
    norch.Size([4, 16, 8, 8, 8])
    """

    _axes, _conv = 3, "conv3d"


class _ConvTranspose(_Conv):
    transposed = True
    _padding_modes = ("zeros",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        sizes = kernel_size, stride, padding, dilation
        super().__init__(in_channels, out_channels, *sizes, groups, bias, padding_mode, device, dtype)
        self.output_padding = per_axis(output_padding, self._axes, type(self).__name__, "output_padding")

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        options = self.stride, self.padding, self.kernel_size, self._axes, self.dilation
        extra = self._output_padding(input, output_size, *options)
        return FUNCTIONS[self._conv](
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _output_padding(
        self, input: Tensor, output_size: Any, stride: Any, padding: Any, kernel_size: Any, num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:  # fmt: skip
        """The output_padding that gives output_size, or that of the layer for None; ValueError if there is none."""
        if output_size is None:
            return self.output_padding
        wanted = tuple(output_size)[-num_spatial_dims:]
        dilation = (1,) * num_spatial_dims if dilation is None else dilation
        sizes = input.shape[-num_spatial_dims:]
        least = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(sizes, stride, padding, dilation, kernel_size, strict=True)
        ]
        extra = [w - low for w, low in zip(wanted, least, strict=True)]
        if any(not 0 <= e < max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
            raise ValueError(
                f"{type(self).__name__}: output_size {wanted} is out of reach; the least is {tuple(least)}"
            )
        return extra


class ConvTranspose1d(_ConvTranspose):
    """The adjoint of Conv1d: (N, in_channels, L) to (N, out_channels, L'), with L' about stride * L.

    L' = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1. weight: (in_channels,
    out_channels / groups, kernel_size). A Conv1d with a stride s maps s sizes L' to the same L; output_padding, or
    output_size in the call, selects one of them. ValueError if output_size is not one of them, ArgumentError for an
    output_padding that is neither less than the stride nor less than the dilation. padding_mode must be "zeros". The
    other parameters are those of Conv1d.

    >>> norch.nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1)(norch.ones(1, 4, 7)).shape
    norch.Size([1, 2, 14])
    """

    _axes, _conv = 1, "conv_transpose1d"


class ConvTranspose2d(_ConvTranspose):
    """The adjoint of Conv2d: (N, in_channels, H, W) to (N, out_channels, H', W'); otherwise as ConvTranspose1d.

    >>> norch.nn.ConvTranspose2d(4, 2, 2, stride=2)(norch.ones(1, 4, 7, 7)).shape
    norch.Size([1, 2, 14, 14])
    """

    _axes, _conv = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTranspose):
    """The adjoint of Conv3d: (N, in_channels, D, H, W) to (N, out_channels, D', H', W'); otherwise as
    ConvTranspose1d.

    >>> norch.nn.ConvTranspose3d(4, 2, kernel_size=2, stride=2)(norch.ones(1, 4, 3, 3, 3)).shape
    norch.Size([1, 2, 6, 6, 6])
    """

    _axes, _conv = 3, "conv_transpose3d"
