"""Transforms of random variables: functions with an inverse and the logarithm of the Jacobian's determinant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._exports import publish
from ..dtype import finfo
from ..nn.functional import softplus
from ..tensor import Tensor

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform", "TanhTransform",
    "Transform", "identity_transform",
]  # fmt: skip
publish(globals())


class Transform:
    """A one-to-one function of tensors. A subclass has _call(x), _inverse(y) and log_abs_det_jacobian(x, y), the
    logarithm of |dy / dx| summed over the last event_dim axes; sign is that of the derivative, where it has one.

    >>> exp = norch.distributions.ExpTransform()
    >>> exp.inv(exp(norch.tensor(2.0)))
    tensor(2.)
    """

    bijective = True

    @property
    def event_dim(self) -> int:
        """How many last axes belong to one event."""
        return 0

    @property
    def sign(self) -> Any:
        """1 where it increases, -1 where it decreases."""
        return 1

    def __call__(self, x: Tensor) -> Tensor:
        return self._call(x)

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _Inverse(self)

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: no _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy / dx| at x, with y its image."""
        raise NotImplementedError(f"{type(self).__name__}: no log_abs_det_jacobian")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(self.__dict__, other.__dict__)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(
        bool((x == b[key]).all()) if isinstance(x, Tensor) else x == b[key] for key, x in a.items()
    )


class _Inverse(Transform):
    def __init__(self, transform: Transform):
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
        return self.transform._inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.transform._call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"{self.transform!r}.inv"


class AffineTransform(Transform):
    """loc + scale x. loc, scale: numbers or tensors; event_dim: how many last axes belong to one event."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0):
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
        return log.sum(tuple(range(-self.event_dim, 0))) if self.event_dim else log


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

    def __init__(self, exponent: Any):
        self.exponent = exponent

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()


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

    def __init__(self, parts: Sequence[Transform]):
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
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        found = x.new_zeros(())
        for part in self.parts:
            image = part(x)
            log = part.log_abs_det_jacobian(x, image)
            more = self.event_dim - part.event_dim
            found = found + (log.sum(tuple(range(-more, 0))) if more else log)
            x = image
        return found

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


identity_transform = ComposeTransform([])
