"""Transforms that compose others, apply them to parts of a tensor, or change shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import ref

from .._tensor.size import Size
from ..errors import ArgumentError, ShapeError
from ..ops.copy import cat, stack
from ..tensor import Tensor
from . import constraints
from ._transform_base import Transform
from .distribution import sum_rightmost


class ComposeTransform(Transform):
    """Applies the transforms of the list parts in order.

    >>> exp, double = norch.distributions.ExpTransform(), norch.distributions.AffineTransform(0.0, 2.0)
    >>> norch.distributions.ComposeTransform([exp, double])(norch.tensor([0.0]))
    tensor([2.])
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def _inverted(self) -> Transform:
        inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
        inverse._inv = ref(self)
        return inverse

    @property
    def bijective(self) -> Any:
        return all(part.bijective for part in self.parts)

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        return _widened(self.parts[0].domain, [(part.domain, part.codomain) for part in reversed(self.parts)])

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        return _widened(self.parts[-1].codomain, [(part.codomain, part.domain) for part in self.parts])

    @property
    def sign(self) -> Any:
        return math.prod((part.sign for part in self.parts), start=1)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inside(self, y: Tensor) -> Tensor:
        return self.parts[-1]._inside(y) if self.parts else y

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        event = self.domain.event_dim
        total = x.new_zeros(()) if self.parts else x.new_zeros(x.shape)
        for index, part in enumerate(self.parts, 1):
            image = part(x) if index < len(self.parts) else y
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, image), event - part.domain.event_dim)
            event += part.codomain.event_dim - part.domain.event_dim
            x = image
        return total

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


def _widened(end: Any, parts: list[tuple[Any, Any]]) -> Any:
    """end, the domain or codomain of a chain, with the event_dim that all parts together need. parts has the
    constraints of each part on this side of the chain and on the other.
    """
    event = parts[0][1].event_dim
    for near, far in parts:
        event = max(event + near.event_dim - far.event_dim, near.event_dim)
    return constraints.independent(end, event - end.event_dim) if event > end.event_dim else end


class IndependentTransform(Transform):
    """Applies base_transform to events that have reinterpreted_batch_ndims more axes. log_abs_det_jacobian() sums over
    these.

    >>> transform = norch.distributions.IndependentTransform(norch.distributions.ExpTransform(), 1)
    >>> transform.log_abs_det_jacobian(norch.tensor([1.0, 2.0]), None)
    tensor(3.)
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims

    @property
    def bijective(self) -> Any:
        return self.base_transform.bijective

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.ndim < self.domain.event_dim:
            raise ShapeError(
                f"IndependentTransform: a tensor of {x.ndim} axes, but events have {self.domain.event_dim}"
            )
        return self.base_transform(x)

    def _inside(self, y: Tensor) -> Tensor:
        return self.base_transform._inside(y)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.ndim < self.codomain.event_dim:
            raise ShapeError(
                f"IndependentTransform: a tensor of {y.ndim} axes, but events have {self.codomain.event_dim}"
            )
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Reshapes events from in_shape to out_shape. ShapeError unless both have the same number of elements.

    >>> norch.distributions.ReshapeTransform((4,), (2, 2))(norch.zeros(3, 4)).shape
    norch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ShapeError(
                f"ReshapeTransform: {tuple(in_shape)} and {tuple(out_shape)} have different numbers of elements"
            )

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape: Sequence[int], end: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    cut = len(shape) - len(end)
    if cut < 0 or tuple(shape[cut:]) != tuple(end):
        raise ShapeError(f"ReshapeTransform: events of shape {tuple(end)}, but the tensor has shape {tuple(shape)}")
    return (*shape[:cut], *other)


class _Parts(Transform):
    """Base of transforms that act on the parts of a tensor along an axis."""

    transforms: list[Transform]
    dim: int

    @property
    def bijective(self) -> Any:
        return all(each.bijective for each in self.transforms)

    def _each(self, function: Any, *tensors: Tensor) -> list[Tensor]:
        if not -tensors[0].ndim <= self.dim < tensors[0].ndim:
            raise ShapeError(f"{type(self).__name__}: axis {self.dim} of a tensor with {tensors[0].ndim} axes")
        return [function(*each) for each in zip(self.transforms, *map(self._pieces, tensors), strict=True)]

    def _pieces(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError


class CatTransform(_Parts):
    """Splits a tensor along dim into parts of these lengths, applies one transform of tseq to each, and joins the
    results by norch.cat().

    >>> exp, same = norch.distributions.ExpTransform(), norch.distributions.identity_transform
    >>> norch.distributions.CatTransform([exp, same])(norch.tensor([0.0, 3.0]))
    tensor([1., 3.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ArgumentError(f"CatTransform: {len(self.lengths)} lengths for {len(self.transforms)} transforms")

    @property
    def event_dim(self) -> int:
        return max(each.event_dim for each in self.transforms)

    @property
    def length(self) -> int:
        """The sum of the lengths."""
        return sum(self.lengths)

    @property
    def domain(self) -> Any:
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)

    def _pieces(self, x: Tensor) -> Sequence[Tensor]:
        return x.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return cat(self._each(lambda part, piece: part(piece), x), self.dim)

    def _inside(self, y: Tensor) -> Tensor:
        return cat(self._each(lambda part, piece: part._inside(piece), y), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return cat(self._each(lambda part, piece: part._inv_call(piece), y), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        def slope(part: Transform, a: Tensor, b: Tensor) -> Tensor:
            return sum_rightmost(part.log_abs_det_jacobian(a, b), self.event_dim - part.event_dim)

        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        slopes, dim = self._each(slope, x, y), dim + self.event_dim
        return cat(slopes, dim) if dim < 0 else sum(slopes[1:], slopes[0])


class StackTransform(_Parts):
    """Applies one transform of tseq to each slice of a tensor along dim, and joins the results by norch.stack().

    >>> exp, same = norch.distributions.ExpTransform(), norch.distributions.identity_transform
    >>> norch.distributions.StackTransform([exp, same])(norch.tensor([0.0, 3.0]))
    tensor([1., 3.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim

    @property
    def domain(self) -> Any:
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([each.codomain for each in self.transforms], self.dim)

    def _pieces(self, x: Tensor) -> Sequence[Tensor]:
        return x.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return stack(self._each(lambda part, piece: part(piece), x), self.dim)

    def _inside(self, y: Tensor) -> Tensor:
        return stack(self._each(lambda part, piece: part._inside(piece), y), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return stack(self._each(lambda part, piece: part._inv_call(piece), y), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return stack(self._each(lambda part, a, b: part.log_abs_det_jacobian(a, b), x, y), self.dim)
