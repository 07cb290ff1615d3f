"""Conditions on the parameters of distributions and on their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from .._package.exports import publish
from ..dtype import bool_, finfo, float32, promote_types
from ..errors import ArgumentError
from ..ops.copy import cat as join
from ..ops.copy import stack as pile
from ..ops.create import full
from ..tensor import Tensor


class Constraint:
    """A condition on tensors. check(value) gives a bool for each event, which has event_dim axes. is_discrete says that
    the allowed values are isolated. A subclass defines check(), and event_dim and is_discrete if they are not 0 and
    False.

    >>> norch.distributions.constraints.positive.check(norch.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _says: ClassVar[str] = ""  # the condition in words, for messages; attributes in braces

    def check(self, value: Tensor) -> Tensor:
        """Whether each event of value satisfies the condition."""
        raise NotImplementedError(f"{type(self).__name__}: no check()")

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={x}" for name, x in vars(self).items() if name.endswith("_bound"))
        return f"{type(self).__name__.lstrip('_')}({bounds})"

    def __str__(self) -> str:
        """The condition in words."""
        return self._says.format(**vars(self)) if self._says else repr(self)


class _Dependent(Constraint):
    """A condition that depends on other values."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError("a dependent constraint does not say whether it is_discrete")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError("a dependent constraint does not say its event_dim")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """A copy with these attributes."""
        is_discrete = self._is_discrete if is_discrete is NotImplemented else is_discrete
        event_dim = self._event_dim if event_dim is NotImplemented else event_dim
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("a dependent constraint cannot be checked")


def is_dependent(constraint: Any) -> bool:
    """Whether the constraint depends on other values."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A decorator that makes a property of instances. On the class, it is a dependent constraint."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ):
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """base_constraint on events that have reinterpreted_batch_ndims more axes. Every element has to satisfy it."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        good = self.base_constraint.check(value)
        if good.ndim < (axes := self.reinterpreted_batch_ndims):
            raise ValueError(f"a value of {value.ndim} axes, but the constraint is on events of {self.event_dim}")
        return good.all(tuple(range(-axes, 0))) if axes else good

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"

    def __str__(self) -> str:
        return str(self.base_constraint)


class MixtureSameFamilyConstraint(Constraint):
    """The conditions of all components of a mixture, which lie along the last axis of their batch."""

    def __init__(self, base_constraint: Constraint):
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise ValueError(f"a value of {value.ndim} axes, but the constraint is on events of {self.event_dim}")
        good = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return good.flatten(value.ndim - self.event_dim).all(-1) if good.ndim > value.ndim - self.event_dim else good

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"

    def __str__(self) -> str:
        return str(self.base_constraint)


class _Real(Constraint):
    _says = "a number"

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Between(Constraint):
    """Numbers between lower_bound and upper_bound, or beyond one of them. The bounds are numbers or tensors."""

    _open: tuple[str, ...] = ()  # the bounds that are excluded

    def check(self, value: Tensor) -> Tensor:
        good = value % 1 == 0 if self.is_discrete else None
        for name, bound in vars(self).items():
            low, high = (bound, value) if name == "lower_bound" else (value, bound)
            inside = low < high if name in self._open else low <= high
            good = inside if good is None else good & inside
        return good  # type: ignore[return-value]


class _Above(_Between):
    def __init__(self, lower_bound: Any):
        self.lower_bound = lower_bound


class _Below(_Between):
    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound


class _Within(_Between):
    def __init__(self, lower_bound: Any, upper_bound: Any):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


def _is_zero(bound: Any) -> bool:
    return isinstance(bound, int | float) and bound == 0


class _GreaterThan(_Above):
    _open = ("lower_bound",)

    def __str__(self) -> str:
        return "positive" if _is_zero(self.lower_bound) else f"more than {self.lower_bound}"


class _GreaterThanEq(_Above):
    def __str__(self) -> str:
        return "not negative" if _is_zero(self.lower_bound) else f"at least {self.lower_bound}"


class _LessThan(_Below):
    _open, _says = ("upper_bound",), "less than {upper_bound}"


class _Interval(_Within):
    def __str__(self) -> str:
        numbers = all(isinstance(x, int | float) for x in vars(self).values())
        return f"in [{self.lower_bound:g}, {self.upper_bound:g}]" if numbers else "in [low, high]"


class _HalfOpenInterval(_Within):
    _open, _says = ("upper_bound",), "in [{lower_bound}, {upper_bound})"


class _IntegerInterval(_Within):
    is_discrete, _says = True, "a whole number in {lower_bound} ... {upper_bound}"


class _IntegerLessThan(_Below):
    is_discrete, _says = True, "a whole number up to {upper_bound}"


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def __str__(self) -> str:
        return f"a whole number, {'not negative' if self.lower_bound == 0 else f'at least {self.lower_bound}'}"


class _Boolean(Constraint):
    is_discrete, _says = True, "0 or 1"

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim, _says = True, 1, "one 1 among 0s"

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim, _says = 1, "not negative, with the sum 1"

    def check(self, value: Tensor) -> Tensor:
        most = max(1e-6, 2.0 ** (1 - value.dtype.digits))  # the rounding error of 16-bit floats
        wide = value.to(promote_types(value.dtype, float32))
        return (value >= 0).all(-1) & ((wide.sum(-1) - 1).abs() < most)


class _Multinomial(Constraint):
    is_discrete, event_dim, _says = True, 1, "not negative, with a sum of at most {upper_bound}"

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Square(Constraint):
    event_dim, _says = 2, "a square matrix"

    def check(self, value: Tensor) -> Tensor:
        return full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=bool_, device=value.device)


class _LowerTriangular(Constraint):
    event_dim, _says = 2, "lower triangular"

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    _says = "lower triangular with a positive diagonal"

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    _says = "lower triangular with a positive diagonal and rows of length 1"

    def check(self, value: Tensor) -> Tensor:
        away = (value.detach().square().sum(-1).sqrt() - 1).abs()
        return super().check(value) & (away <= 10 * value.shape[-1] * finfo(value.dtype).eps).all(-1)


class _Symmetric(_Square):
    _says = "symmetric"

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-1] != value.shape[-2]:
            return super().check(value)
        return ((value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs()).all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    _says = "symmetric and positive semidefinite"

    def check(self, value: Tensor) -> Tensor:
        from ..linalg import eigvalsh

        symmetric = super().check(value)
        return symmetric & (eigvalsh(value.detach()) >= 0).all(-1) if bool(symmetric.all()) else symmetric


class _PositiveDefinite(_Symmetric):
    _says = "symmetric and positive definite"

    def check(self, value: Tensor) -> Tensor:
        from ..linalg import cholesky_ex

        square = value.shape[-1] == value.shape[-2]
        symmetric = super().check(value)
        return symmetric & (cholesky_ex(value.detach()).info == 0) if square else symmetric


class _Parts(Constraint):
    """A constraint for each part of a tensor along an axis."""

    cseq: list[Constraint]
    dim: int

    def __str__(self) -> str:
        return " and ".join(map(str, self.cseq))

    @property
    def is_discrete(self) -> bool:
        return any(each.is_discrete for each in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(each.event_dim for each in self.cseq)

    def _along(self, value: Tensor) -> None:
        if not -value.ndim <= self.dim < value.ndim:
            raise ArgumentError(f"a constraint on parts along axis {self.dim}, but the value has {value.ndim} axes")


class _Cat(_Parts):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ArgumentError(f"{len(self.lengths)} lengths for {len(self.cseq)} constraints")

    def check(self, value: Tensor) -> Tensor:
        self._along(value)
        return join([each.check(part) for each, part in zip(self.cseq, self._pieces(value), strict=True)], self.dim)

    def _pieces(self, value: Tensor) -> Iterator[Tensor]:
        start = 0
        for length in self.lengths:
            yield value.narrow(self.dim, start, length)
            start += length


class _Stack(_Parts):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        self.cseq, self.dim = list(cseq), dim

    @property
    def event_dim(self) -> int:
        dim = max(each.event_dim for each in self.cseq)
        return dim + (self.dim + dim < 0)

    def check(self, value: Tensor) -> Tensor:
        self._along(value)
        parts = zip(self.cseq, value.unbind(self.dim), strict=True)
        return pile([each.check(part) for each, part in parts], self.dim)


dependent, dependent_property, independent = _Dependent(), _DependentProperty, _IndependentConstraint
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
multinomial, cat, stack = _Multinomial, _Cat, _Stack
real, boolean, one_hot, simplex = _Real(), _Boolean(), _OneHot(), _Simplex()
real_vector = independent(real, 1)
positive, nonnegative, unit_interval = _GreaterThan(0.0), _GreaterThanEq(0.0), _Interval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
square, symmetric, lower_triangular = _Square(), _Symmetric(), _LowerTriangular()
lower_cholesky, corr_cholesky = _LowerCholesky(), _CorrCholesky()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
publish(globals())
