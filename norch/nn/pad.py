"""The padding layers: functional.pad() with a fixed mode and sizes, at the ends of the last one to three axes.

padding: one size for all ends, or a pair per axis, the last axis first: (left, right, top, bottom, front, back).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ArgumentError
from ..tensor import Tensor
from . import functional as F
from ._layer import Layer, options

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


@options
class _Pad(Layer):
    padding: int | Sequence[int]  # then 2 * _axes sizes
    _axes: ClassVar[int]  # the number of padded axes
    _mode: ClassVar[str]
    _unnamed = 1

    def __post_init__(self) -> None:
        given, count = self.padding, 2 * self._axes
        self.padding = tuple(given) if isinstance(given, Sequence) else (given,) * count
        if len(self.padding) != count:
            raise ArgumentError(f"{type(self).__name__}: padding is {count} sizes or one, not {given}")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)  # type: ignore[arg-type]


@options
class _ConstantPad(_Pad):
    value: float
    _mode = "constant"
    _unnamed = 0

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode, self.value)  # type: ignore[arg-type]


class ConstantPad1d(_ConstantPad):
    """Pads the last axis with `value`; padding: (left, right), or one size.

    >>> norch.nn.ConstantPad1d((1, 2), 7.0)(norch.ones(1, 2))
    tensor([[7., 1., 1., 7., 7.]])
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last two axes with `value`; padding: (left, right, top, bottom), or one size."""

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last three axes with `value`; padding: (left, right, top, bottom, front, back), or one size."""

    _axes = 3


class _ZeroPad(_ConstantPad):
    _shown, _unnamed = ("padding",), 1

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pads the last axis with zeros; padding: (left, right), or one size."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pads the last two axes with zeros; padding: (left, right, top, bottom), or one size."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pads the last three axes with zeros; padding: (left, right, top, bottom, front, back), or one size."""


class ReflectionPad1d(_Pad):
    """Pads the last axis with its reflection at the first and last element; padding: (left, right), or one size.

    >>> norch.nn.ReflectionPad1d(2)(norch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Reflects the last two axes; padding: (left, right, top, bottom), or one size."""

    _axes, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Reflects the last three axes; padding: (left, right, top, bottom, front, back), or one size."""

    _axes, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pads the last axis with its first and last element; padding: (left, right), or one size."""

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Replicates the outer elements of the last two axes; padding: (left, right, top, bottom), or one size."""

    _axes, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Replicates the outer elements of the last three axes; padding: six sizes, or one."""

    _axes, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Pads the last axis with the elements of its other end; padding: (left, right), or one size."""

    _axes, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """Pads the last two axes circularly; padding: (left, right, top, bottom), or one size."""

    _axes, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """Pads the last three axes circularly; padding: six sizes, or one."""

    _axes, _mode = 3, "circular"
