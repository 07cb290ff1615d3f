"""The padding layers: functional.pad() with a fixed mode and sizes, at the ends of the last one to three axes.

padding: one size for all ends, or a pair per axis, the last axis first: (left, right, top, bottom, front, back).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

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
    _mode: ClassVar[str] = "constant"
    _unnamed = 1

    def __init_subclass__(cls, axes: int | None = None, mode: str | None = None, **named: Any) -> None:
        super().__init_subclass__(**named)
        for name, value in (("_axes", axes), ("_mode", mode)):
            if value is not None:
                setattr(cls, name, value)

    def __post_init__(self) -> None:
        padding, count = self.padding, 2 * self._axes
        self.padding = tuple(padding) if isinstance(padding, Sequence) else (padding,) * count
        if len(self.padding) != count:
            raise ArgumentError(f"{type(self).__name__}: padding is {count} sizes or one, not {padding}")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)  # type: ignore[arg-type]


@options
class _ConstantPad(_Pad):
    value: float
    _unnamed = 0

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode, self.value)  # type: ignore[arg-type]


class ConstantPad1d(_ConstantPad, axes=1):
    """Pads the last axis of a tensor, of one axis or more, with `value`; padding: (left, right), or one size. Negative
    sizes cut elements off.

    >>> norch.nn.ConstantPad1d((1, 2), 7.0)(norch.ones(1, 2))
    tensor([[7., 1., 1., 7., 7.]])
    """


class ConstantPad2d(_ConstantPad, axes=2):
    """Pads the last two axes with `value`; padding: (left, right, top, bottom), or one size.

    >>> norch.nn.ConstantPad2d((1, 0, 0, 1), 9.0)(norch.tensor([[[1.0, 2.0]]]))
    tensor([[[9., 1., 2.],
             [9., 9., 9.]]])
    """


class ConstantPad3d(_ConstantPad, axes=3):
    """Pads the last three axes with `value`; padding: (left, right, top, bottom, front, back), or one size.

    >>> norch.nn.ConstantPad3d(1, 9.0)(norch.ones(1, 2, 3, 4)).shape
    norch.Size([1, 4, 5, 6])
    """


class _ZeroPad(_ConstantPad):
    _shown, _unnamed = ("padding",), 1

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pads the last axis with zeros; padding: (left, right), or one size.

    >>> norch.nn.ZeroPad1d((1, 2))(norch.tensor([[1.0, 2.0]]))
    tensor([[0., 1., 2., 0., 0.]])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pads the last two axes with zeros; padding: (left, right, top, bottom), or one size.

    >>> norch.nn.ZeroPad2d((1, 0, 0, 1))(norch.tensor([[[1.0, 2.0]]]))
    tensor([[[0., 1., 2.],
             [0., 0., 0.]]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pads the last three axes with zeros; padding: (left, right, top, bottom, front, back), or one size.

    >>> norch.nn.ZeroPad3d(1)(norch.ones(1, 2, 3, 4)).shape
    norch.Size([1, 4, 5, 6])
    """


class ReflectionPad1d(_Pad, axes=1, mode="reflect"):
    """Pads the last axis of (C, L) or (N, C, L) with its reflection at the first and the last element, which are not
    repeated; padding: (left, right), or one size, less than that of the axis: ShapeError otherwise.

    >>> norch.nn.ReflectionPad1d(2)(norch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """


class ReflectionPad2d(_Pad, axes=2, mode="reflect"):
    """ReflectionPad1d for the last two axes of (C, H, W) or (N, C, H, W); padding: (left, right, top, bottom), or one
    size.

    >>> norch.nn.ReflectionPad2d((1, 1, 0, 0))(norch.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[2., 1., 2., 3., 2.]]])
    """


class ReflectionPad3d(_Pad, axes=3, mode="reflect"):
    """ReflectionPad1d for the last three axes of (C, D, H, W) or (N, C, D, H, W); padding: (left, right, top, bottom,
    front, back), or one size.

    >>> norch.nn.ReflectionPad3d(1)(norch.ones(1, 2, 3, 4)).shape
    norch.Size([1, 4, 5, 6])
    """


class ReplicationPad1d(_Pad, axes=1, mode="replicate"):
    """Pads the last axis of (C, L) or (N, C, L) with copies of its first and last element; padding: (left, right), or
    one size.

    >>> norch.nn.ReplicationPad1d(1)(norch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3., 3.]])
    """


class ReplicationPad2d(_Pad, axes=2, mode="replicate"):
    """ReplicationPad1d for the last two axes of (C, H, W) or (N, C, H, W); padding: (left, right, top, bottom), or one
    size.

    >>> norch.nn.ReplicationPad2d((1, 1, 0, 0))(norch.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[1., 1., 2., 3., 3.]]])
    """


class ReplicationPad3d(_Pad, axes=3, mode="replicate"):
    """ReplicationPad1d for the last three axes of (C, D, H, W) or (N, C, D, H, W); padding: (left, right, top, bottom,
    front, back), or one size.

    >>> norch.nn.ReplicationPad3d(1)(norch.ones(1, 2, 3, 4)).shape
    norch.Size([1, 4, 5, 6])
    """


class CircularPad1d(_Pad, axes=1, mode="circular"):
    """Pads the last axis of (C, L) or (N, C, L) with the elements of its other end; padding: (left, right), or one
    size. Sizes larger than the axis raise ShapeError. Dtypes of this and the other layers: all.

    >>> norch.nn.CircularPad1d(1)(norch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """


class CircularPad2d(_Pad, axes=2, mode="circular"):
    """Pads the last two axes of (C, H, W) or (N, C, H, W) with the elements of their other ends; padding: (left, right,
    top, bottom), or one size.

    >>> norch.nn.CircularPad2d((1, 1, 0, 0))(norch.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[3., 1., 2., 3., 1.]]])
    """


class CircularPad3d(_Pad, axes=3, mode="circular"):
    """Pads the last three axes of (C, D, H, W) or (N, C, D, H, W) with the elements of their other ends; padding:
    (left, right, top, bottom, front, back), or one size.

    >>> norch.nn.CircularPad3d(1)(norch.ones(1, 2, 3, 4)).shape
    norch.Size([1, 4, 5, 6])
    """
