"""Layers that put elements on at the ends of the last axes: functional.pad() with its sizes and its mode kept."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentError
from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Pad(Module):
    axes: int  # how many of the last axes
    mode: str

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, Sequence) else (padding,) * (2 * self.axes)
        if len(self.padding) != 2 * self.axes:
            raise ArgumentError(f"{type(self).__name__}: padding is {2 * self.axes} sizes or one, not {padding}")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPad1d(_Pad):
    """Puts value on at both ends of the last axis; padding: (left, right), or one size. See functional.pad.

    >>> norch.nn.ConstantPad1d((1, 2), 7.0)(norch.ones(1, 2))
    tensor([[7., 1., 1., 7., 7.]])
    """

    axes, mode = 1, "constant"

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """Puts value on around the last two axes; padding: (left, right, top, bottom), or one size."""

    axes = 2


class ConstantPad3d(ConstantPad1d):
    """Puts value on around the last three axes; padding: (left, right, top, bottom, front, back), or one size."""

    axes = 3


class ZeroPad1d(ConstantPad1d):
    """ConstantPad1d with the value 0."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad2d(ZeroPad1d):
    """ConstantPad2d with the value 0."""

    axes = 2


class ZeroPad3d(ZeroPad1d):
    """ConstantPad3d with the value 0."""

    axes = 3


class ReflectionPad1d(_Pad):
    """Mirrors the last axis at its outermost elements; padding: (left, right), or one size.

    >>> norch.nn.ReflectionPad1d(2)(norch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    axes, mode = 1, "reflect"


class ReflectionPad2d(ReflectionPad1d):
    """Mirrors the last two axes; padding: (left, right, top, bottom), or one size."""

    axes = 2


class ReflectionPad3d(ReflectionPad1d):
    """Mirrors the last three axes; padding: (left, right, top, bottom, front, back), or one size."""

    axes = 3


class ReplicationPad1d(_Pad):
    """Repeats the outermost elements of the last axis; padding: (left, right), or one size."""

    axes, mode = 1, "replicate"


class ReplicationPad2d(ReplicationPad1d):
    """Repeats the outermost elements of the last two axes; padding: (left, right, top, bottom), or one size."""

    axes = 2


class ReplicationPad3d(ReplicationPad1d):
    """Repeats the outermost elements of the last three axes; padding: six sizes, or one."""

    axes = 3


class CircularPad1d(_Pad):
    """Goes on from the other end of the last axis; padding: (left, right), or one size."""

    axes, mode = 1, "circular"


class CircularPad2d(CircularPad1d):
    """Goes on from the other ends of the last two axes; padding: (left, right, top, bottom), or one size."""

    axes = 2


class CircularPad3d(CircularPad1d):
    """Goes on from the other ends of the last three axes; padding: six sizes, or one."""

    axes = 3
