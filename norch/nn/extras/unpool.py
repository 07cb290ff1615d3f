"""Max unpooling: returns the values of a max pooling to their positions, with zeros elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ...errors import ArgumentError, ShapeError
from ...ops._arguments import tensors_of
from ...ops._entry import rename_errors
from ...ops.conv import per_axis
from ...ops.pool import Sizes
from ...tensor import Tensor
from .. import functional as F
from .._layer import Layer, options


def _unpool(
    name: str, axes: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Any:
    x, places = tensors_of((input, indices), name)
    if x.ndim not in (axes + 1, axes + 2) or x.shape != places.shape:
        raise ShapeError(
            f"{name}: expected input and indices of one shape with {axes + 1} (unbatched) or {axes + 2} dimensions, "
            f"got {tuple(x.shape)} and {tuple(places.shape)}"
        )
    kernel, before = per_axis(kernel_size, axes, name, "kernel_size"), per_axis(padding, axes, name, "padding")
    steps = kernel if stride is None or stride == () or stride == [] else per_axis(stride, axes, name, "stride")
    usual = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(x.shape[-axes:], steps, kernel, before, strict=True)]
    sizes = usual if output_size is None else list(output_size)
    sizes = sizes[2:] if len(sizes) == axes + 2 else sizes
    if len(sizes) != axes or any(abs(n - u) >= s for n, u, s in zip(sizes, usual, steps, strict=True)):
        raise ArgumentError(f"{name}: output_size {sizes} is not within {steps} of {usual}")
    spread = x.new_zeros((*x.shape[:-axes], math.prod(sizes))).scatter(-1, places.flatten(-axes), x.flatten(-axes))
    return spread.unflatten(-1, sizes)


@rename_errors(autocast="float32 -")
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """The inverse of max_pool1d() along the last axis of (N, C, L) or (C, L); as max_unpool2d().

    >>> x = norch.tensor([[1.0, 2.0, 4.0, 3.0]])
    >>> norch.nn.functional.max_unpool1d(*norch.nn.functional.max_pool1d(x, 2, return_indices=True), 2)
    tensor([[0., 2., 4., 0.]])
    """
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@rename_errors(autocast="float32 -")
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Zeros, with the values of input (N, C, H, W) or (C, H, W) at indices (Zeiler and Fergus 2014). Both are the
    results of max_pool2d(return_indices=True).

    output_size selects one of the sizes that the pooling maps to the size of input; the default is the smallest without
    padding. ArgumentError for a size that is a stride or more away; IndexError for an index outside it.

    >>> x = norch.tensor([[[1.0, 2.0], [4.0, 3.0]]])
    >>> norch.nn.functional.max_unpool2d(*norch.nn.functional.max_pool2d(x, 2, return_indices=True), 2)
    tensor([[[0., 0.],
             [4., 0.]]])
    """
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@rename_errors(autocast="float32 -")
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """The inverse of max_pool3d() of (N, C, D, H, W) or (C, D, H, W); as max_unpool2d().

    >>> values, indices = norch.nn.functional.max_pool3d(norch.ones(1, 4, 4, 4), 2, return_indices=True)
    >>> norch.nn.functional.max_unpool3d(values, indices, 2).sum()
    tensor(8.)
    """
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


@options
class _MaxUnpool(Layer):
    kernel_size: Any  # then a size per axis, as stride and padding
    stride: Any = None
    padding: Any = 0
    _axes: ClassVar[int]
    _unpool: ClassVar[str]

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride
        for name in ("kernel_size", "stride", "padding"):
            setattr(self, name, per_axis(getattr(self, name), self._axes, type(self).__name__, name))

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return getattr(F, self._unpool)(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """The inverse of MaxPool1d; otherwise as MaxUnpool2d.

    >>> pool, unpool = norch.nn.MaxPool1d(2, return_indices=True), norch.nn.MaxUnpool1d(2)
    >>> unpool(*pool(norch.tensor([[1.0, 2.0, 4.0, 3.0]])))
    tensor([[0., 2., 4., 0.]])
    """

    _axes, _unpool = 1, "max_unpool1d"


class MaxUnpool2d(_MaxUnpool):
    """The inverse of MaxPool2d (Zeiler and Fergus 2014): layer(input, indices, output_size=None) takes the two results
    of MaxPool2d(return_indices=True), and has the values at these indices, and zeros elsewhere. kernel_size, stride and
    padding are those of the MaxPool2d. See functional.max_unpool2d().

    >>> pool, unpool = norch.nn.MaxPool2d(2, return_indices=True), norch.nn.MaxUnpool2d(2)
    >>> unpool(*pool(norch.ones(1, 1, 4, 4))).sum()
    tensor(4.)
    """

    _axes, _unpool = 2, "max_unpool2d"


class MaxUnpool3d(_MaxUnpool):
    """The inverse of MaxPool3d; otherwise as MaxUnpool2d.

    >>> pool, unpool = norch.nn.MaxPool3d(2, return_indices=True), norch.nn.MaxUnpool3d(2)
    >>> unpool(*pool(norch.ones(1, 1, 4, 4, 4))).sum()
    tensor(8.)
    """

    _axes, _unpool = 3, "max_unpool3d"
