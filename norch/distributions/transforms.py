"""Transforms of random variables: functions with an inverse and the logarithm of the Jacobian's determinant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._exports import publish
from ..dtype import finfo
from ..errors import ArgumentError
from ..nn.functional import softplus
from ..ops.composed.shape import broadcast_shapes
from ..tensor import Tensor
from .distribution import holds, sum_rightmost

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform", "TanhTransform",
    "Transform", "identity_transform",
]  # fmt: skip
publish(globals())


class Transform:
    """A one-to-one function of tensors. A subclass has _call(x), _inverse(y) and log_abs_det_jacobian(x, y), the
    logarithm of |dy / dx| summed over the last event_dim axes; sign is that of the derivative, where it has one.

    cache_size: 1 keeps the last x and y, so that the inverse of y is that very x, where computing it would lose digits,
    as of tanh near 1; 0 keeps none.

    >>> exp = norch.distributions.ExpTransform()
    >>> exp.inv(exp(norch.tensor(2.0)))
    tensor(2.)
    """

    bijective = True
    _cached: tuple[Tensor | None, Tensor | None] = None, None  # the last x and y
    _cache_size = 0

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ArgumentError(f"{type(self).__name__}: cache_size is 0 or 1, not {cache_size!r}")
        self._cache_size = cache_size

    @property
    def event_dim(self) -> int:
        """How many last axes belong to one event."""
        return 0

    @property
    def sign(self) -> Any:
        """1 where it increases, -1 where it decreases."""
        return 1

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        known, image = self._cached
        if x is not known or image is None:
            image = self._call(x)
            self._cached = x, image
        return image

    def _inv_call(self, y: Tensor) -> Tensor:
        """The inverse of y, from the cache if y is in it."""
        if not self._cache_size:
            return self._inverse(y)
        x, known = self._cached
        if y is not known or x is None:
            x = self._inverse(y)
            self._cached = x, y
        return x

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _InverseTransform(self)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the result for a tensor of this shape."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the inverse for a tensor of this shape."""
        return shape

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: no _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy / dx| at x, with y its image."""
        raise NotImplementedError(f"{type(self).__name__}: no log_abs_det_jacobian")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(_parameters(self), _parameters(other))

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: without the cache."""
        return {name: x for name, x in self.__dict__.items() if name != "_cached"}

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _parameters(transform: object) -> dict[str, Any]:
    return {name: x for name, x in transform.__dict__.items() if name not in ("_cached", "_cache_size")}


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(
        holds(x == b[key]) if isinstance(x, Tensor) else x == b[key] for key, x in a.items()
    )


class _InverseTransform(Transform):
    def __init__(self, transform: Transform):
        super().__init__()
        self.transform = transform

    @property
    def event_dim(self) -> int:
        return self.transform.event_dim

    @property
    def sign(self) -> Any:
        return self.transform.sign

    @property
    def inv(self) -> Transform:
        return self.transform

    def _call(self, x: Tensor) -> Tensor:
        return self.transform._inv_call(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.transform(y)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.transform.forward_shape(shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"{self.transform!r}.inv"


class AffineTransform(Transform):
    """loc + scale x. loc, scale: numbers or tensors; event_dim: how many last axes belong to one event."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale if isinstance(self.scale, Tensor) else x.new_tensor(self.scale)
        log = scale.abs().log().expand(x.shape)
        return sum_rightmost(log, self.event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return broadcast_shapes(shape, *(x.shape for x in (self.loc, self.scale) if isinstance(x, Tensor)))

    inverse_shape = forward_shape


class ExpTransform(Transform):
    """exp(x)."""

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """x^exponent of positive x."""

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return broadcast_shapes(shape, self.exponent.shape) if isinstance(self.exponent, Tensor) else shape

    inverse_shape = forward_shape


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    def _call(self, x: Tensor) -> Tensor:
        info = finfo(x.dtype)
        return x.sigmoid().clamp(min=info.tiny, max=1 - info.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        info = finfo(y.dtype)
        return y.clamp(min=info.tiny, max=1 - info.eps).logit()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """tanh(x)."""

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)^2), which does not cancel
        return 2 * (math.log(2.0) - x - softplus(-2 * x))


class ComposeTransform(Transform):
    """The transforms in parts, the first one first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = list(parts)

    @property
    def event_dim(self) -> int:
        return max((part.event_dim for part in self.parts), default=0)

    @property
    def sign(self) -> Any:
        return math.prod((part.sign for part in self.parts), start=1)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

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
        found = x.new_zeros(())
        for part in self.parts:
            image = part(x)
            found = found + sum_rightmost(part.log_abs_det_jacobian(x, image), self.event_dim - part.event_dim)
            x = image
        return found

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


identity_transform = ComposeTransform([])
