"""Upsample, Unfold and Fold: the layers of functional_resample.py."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .functional_resample import fold, interpolate, unfold
from .module import Module


class Upsample(Module):
    """Images (N, C, ...) of another size. See functional.interpolate.

    >>> norch.nn.Upsample(scale_factor=2, mode="bilinear")(norch.zeros(1, 3, 4, 5)).shape
    norch.Size([1, 3, 8, 10])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        several = isinstance(scale_factor, (list, tuple))
        self.size, self.mode, self.align_corners = size, mode, align_corners
        self.scale_factor = tuple(map(float, scale_factor)) if several else scale_factor and float(scale_factor)
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        how = (self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)
        return interpolate(input, *how)

    def extra_repr(self) -> str:
        size = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample of mode "nearest"."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Upsample of mode "bilinear" with align_corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class Unfold(Module):
    """The patches of images. See functional.unfold."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        sizes = f"kernel_size={self.kernel_size}, dilation={self.dilation}"
        return f"{sizes}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """The images to which patches add up. See functional.fold."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"
