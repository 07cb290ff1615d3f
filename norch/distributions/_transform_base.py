"""Transform, the base class of transforms of random variables, and the inverse of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any
from weakref import ref

from ..errors import ArgumentError
from ..tensor import Tensor
from . import constraints
from ._halves import ComputesWide
from .distribution import holds


class Transform(ComputesWide):
    """A function of tensors, one-to-one if bijective. A subclass defines _call(x), _inverse(y) and
    log_abs_det_jacobian(x, y), which is log |dy / dx| of an event. It also has the constraints domain and codomain on x
    and y, whose event_dim counts the axes of an event, and sign, the sign of its derivative, if it is monotonic.

    cache_size=1 keeps the last x and y, so that inverting y returns x itself. Computing x would lose digits, for
    instance for tanh near 1. cache_size=0 keeps none.

    >>> exp = norch.distributions.ExpTransform()
    >>> exp.inv(exp(norch.tensor(2.0)))
    tensor(2.)
    """

    bijective: Any = False
    domain: Any = constraints.real
    codomain: Any = constraints.real
    _cached: tuple[Tensor | None, Tensor | None] = None, None  # the last x and y
    _inv: Callable[[], Transform | None] | None = None  # a weak reference to the inverse
    _cache_size = 0

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ArgumentError(f"{type(self).__name__}: cache_size is 0 or 1, not {cache_size!r}")
        self._cache_size = cache_size

    @property
    def event_dim(self) -> int:
        """How many last axes of x belong to one event."""
        return self.domain.event_dim

    @property
    def sign(self) -> Any:
        """1 if the transform increases, -1 if it decreases. NotImplementedError if it is not monotonic."""
        raise NotImplementedError(f"{type(self).__name__}: it is not monotonic and has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """This transform with another cache_size."""
        if cache_size == self._cache_size:
            return self
        copied = copy(self)
        copied._cache_size = cache_size
        return copied

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        cached, image = self._cached
        if x is not cached or image is None:
            image = self._call(x)
            self._cached = x, image
        return image

    def _inv_call(self, y: Tensor) -> Tensor:
        """The inverse of y, from the cache if y is in it."""
        if not self._cache_size:
            return self._inverse(y)
        x, cached = self._cached
        if y is not cached or x is None:
            x = self._inverse(y)
            self._cached = x, y
        return x

    @property
    def inv(self) -> Transform:
        """The inverse transform, the same object while the program holds it."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = self._inverted()
            self._inv = ref(inverse)
        return inverse

    def _inverted(self) -> Transform:
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
        """log |dy / dx| at x. y is the image of x."""
        raise NotImplementedError(f"{type(self).__name__}: no log_abs_det_jacobian")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(_parameters(self), _parameters(other))

    def __getstate__(self) -> dict[str, Any]:
        """The state without the cache, for copies and pickles."""
        return {name: x for name, x in self.__dict__.items() if name not in ("_cached", "_inv")}

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _parameters(transform: object) -> dict[str, Any]:
    return {name: x for name, x in transform.__dict__.items() if name not in ("_cached", "_cache_size", "_inv")}


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(
        holds(x == b[key]) if isinstance(x, Tensor) or isinstance(b[key], Tensor) else x == b[key]
        for key, x in a.items()
    )


class _InverseTransform(Transform):
    def __init__(self, transform: Transform):
        super().__init__()
        self.transform = transform

    @property
    def bijective(self) -> Any:
        return self.transform.bijective

    @property
    def domain(self) -> Any:
        return self.transform.codomain

    @property
    def codomain(self) -> Any:
        return self.transform.domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.transform.with_cache(cache_size).inv

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


class Increasing(Transform):
    """Base of elementwise transforms that increase."""

    bijective = True

    @property
    def sign(self) -> Any:
        return 1
