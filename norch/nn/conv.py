"""Convolutions and transposed convolutions over one and two axes. The products are recorded operations, `ops.conv`."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import dtype as DType
from ..ops import conv as F  # noqa: N812
from ..ops.composed.pad import pad
from ..ops.conv import Sizes, per_axis
from ..tensor import Tensor
from . import init
from .module import Module
from .parameter import Parameter, blank


class _Conv(Module):
    """What all of them share: their numbers, their weight and bias, and how they print."""

    axes: int
    transposed = False
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        output_padding: Sizes,
        dilation: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: DType | None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        modes = ("zeros",) if self.transposed else ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(f"{name}: padding_mode {padding_mode!r} is none of {modes}")
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: channels {in_channels} and {out_channels} must be divisible by groups {groups}")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = per_axis(kernel_size, self.axes, name, "kernel_size")
        self.stride = per_axis(stride, self.axes, name, "stride")
        self.padding = padding if isinstance(padding, str) else per_axis(padding, self.axes, name, "padding")
        self.dilation = per_axis(dilation, self.axes, name, "dilation")
        self.output_padding = per_axis(output_padding, self.axes, name, "output_padding")
        self.padding_mode = padding_mode
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"{name}: padding is a number, 'valid' or 'same', not {padding!r}")
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(f"{name}: padding='same' needs a stride of 1, not {self.stride}")
        outer, inner = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = blank(self, outer, inner // groups, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", blank(self, out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, uniform in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * self.axes:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self.axes:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * self.axes:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Forward(_Conv):
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
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            0,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _laid_out(self, input: Tensor) -> tuple[Tensor, Any]:
        """The input, and the zeros still to be put around it: none where another padding_mode has done so."""
        if self.padding_mode == "zeros":
            return input, self.padding
        name = type(self).__name__
        ends = F.paddings(name, self.padding, self.weight, self.stride, self.dilation, self.axes)
        pairs = [pair for axis in reversed(list(zip(*ends, strict=True))) for pair in axis]
        return pad(input, pairs, self.padding_mode), 0


class Conv1d(_Forward):
    """Convolution along one axis: (N, in_channels, L) or (in_channels, L) to (N, out_channels, L').

    weight: (out_channels, in_channels / groups, K), uniform in +-1/sqrt(fan_in); bias: (out_channels), likewise,
    or None. padding: a number, "valid" or "same"; padding_mode: what is put there, "zeros", "reflect",
    "replicate" or "circular".

    >>> norch.nn.Conv1d(2, 3, 5, padding=2)(norch.ones(1, 2, 8)).shape
    norch.Size([1, 3, 8])
    """

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        x, padding = self._laid_out(input)
        return F.conv1d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_Forward):
    """Convolution over two axes: (N, in_channels, H, W) or (in_channels, H, W) to (N, out_channels, H', W').

    weight: (out_channels, in_channels / groups, KH, KW); otherwise as Conv1d. Sizes are a number or a pair.

    >>> norch.nn.Conv2d(1, 16, 3, padding=1)(norch.ones(4, 1, 28, 28)).shape
    norch.Size([4, 16, 28, 28])
    """

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        x, padding = self._laid_out(input)
        return F.conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _Transposed(_Conv):
    transposed = True

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
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _extra(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """The output_padding that gives output_size."""
        if output_size is None:
            return self.output_padding
        assert not isinstance(self.padding, str)
        wanted = tuple(output_size)[-self.axes :]
        least = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(
                input.shape[-self.axes :], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        extra = tuple(w - low for w, low in zip(wanted, least, strict=True))
        if any(not 0 <= one < max(s, d) for one, s, d in zip(extra, self.stride, self.dilation, strict=True)):
            raise ValueError(
                f"{type(self).__name__}: output_size {wanted} is out of reach; the least is {tuple(least)}"
            )
        return extra


class ConvTranspose1d(_Transposed):
    """The adjoint of Conv1d: (N, in_channels, L) to (N, out_channels, L'), where stride spreads the elements.

    weight: (in_channels, out_channels / groups, K). output_padding, or output_size in the call, chooses among the sizes
    that a convolution of this stride would have made the same.
    """

    axes = 1

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._extra(input, output_size)
        return F.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,  # type: ignore[arg-type]
            extra,
            self.groups,
            self.dilation,
        )


class ConvTranspose2d(_Transposed):
    """The adjoint of Conv2d: (N, in_channels, H, W) to (N, out_channels, H', W'); otherwise as ConvTranspose1d.

    >>> norch.nn.ConvTranspose2d(4, 2, 2, stride=2)(norch.ones(1, 4, 7, 7)).shape
    norch.Size([1, 2, 14, 14])
    """

    axes = 2

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._extra(input, output_size)
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,  # type: ignore[arg-type]
            extra,
            self.groups,
            self.dilation,
        )
