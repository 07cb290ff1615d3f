"""Distribution, the base class."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from .._package.exports import publish
from .._package.typing import Operand, Self
from .._tensor.handle import Size
from ..autograd import no_grad
from ..autograd.levels import BatchedBase
from ..autograd.levels import holds as holds
from ..dtype import finfo, float32, get_default_dtype, promote_types
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ops.composed.shape import broadcast_tensors
from ..ops.values import as_tensor
from ..tensor import Tensor
from ._halves import ComputesWide, holds_halves
from .constraints import Constraint, is_dependent

__all__ = ["Distribution"]


class Distribution(ComputesWide):
    """A batch of distributions, of shape batch_shape, whose values have the shape event_shape.

    Parameters are floats: numbers are float32, or get the dtype and device of the first tensor among the parameters.
    What is computed has that dtype; float16 and bfloat16 are computed in float32 and rounded once. Parameters that do
    not broadcast raise ShapeError.

    A subclass lists its parameters with their constraints in arg_constraints; each is an attribute and a constructor
    argument. Its support is the constraint on its values. It defines log_prob(), and rsample() or sample().

    validate_args says whether parameters and values are checked. A value outside its constraint then raises
    ArgumentError. None stands for the setting of set_default_validate_args(), which is True at first.
    """

    arg_constraints: dict[str, Constraint] = {}
    has_rsample = False
    # Whether sample() ignores the rsample() of a class of the user, which may call sample() in turn
    _samples_apart: ClassVar[bool] = False
    has_enumerate_support = False
    _validate_args = True  # the default for all instances

    def __init__(
        self, batch_shape: Iterable[int] = (), event_shape: Iterable[int] = (), validate_args: bool | None = None
    ):
        self._of_halves = holds_halves(self.__dict__.values())
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name in self._parameter_names():
                if not is_dependent(constraint := self.arg_constraints[name]):
                    self._check(name, getattr(self, name), constraint)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their arguments if validate_args is None."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, not {value!r}")
        Distribution._validate_args = value

    def _parameter_names(self) -> list[str]:
        """The names of the parameters that the constructor received. Others are computed from these when they are
        read.
        """
        lazy, state = cached_property, self.__dict__
        return [x for x in self.arg_constraints if x in state or not isinstance(getattr(type(self), x, None), lazy)]

    def _check(self, name: str, x: Tensor, constraint: Constraint) -> None:
        good = constraint.check(x if self._checks_in is None else x.to(self._checks_in))
        if not holds(good):
            if isinstance(good, BatchedBase):
                raise ArgumentError(f"{self._name()}: {name} must be {constraint}, and is not in some samples of vmap")
            wrong = x[~good].flatten()[0].item() if constraint.event_dim == 0 else x[~good][0].tolist()
            raise ArgumentError(
                f"{self._name()}: {name} of shape {tuple(x.shape)} must be {constraint}, but holds {wrong}"
            )

    def _name(self) -> str:
        return type(self).__name__

    @property
    def support(self) -> Constraint:
        """The constraint on the values."""
        raise NotImplementedError(f"{self._name()}: no support")

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The expected value, (batch_shape, event_shape)."""
        raise NotImplementedError(f"{self._name()}: no mean")

    @property
    def mode(self) -> Tensor:
        """The value of highest density or probability."""
        raise NotImplementedError(f"{self._name()}: no mode")

    @property
    def variance(self) -> Tensor:
        """The variance, element by element."""
        raise NotImplementedError(f"{self._name()}: no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation, element by element."""
        return self.variance.sqrt()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Draws (sample_shape, batch_shape, event_shape), differentiable with respect to the parameters by the
        reparametrisation trick (Kingma and Welling 2014). NotImplementedError unless has_rsample."""
        raise NotImplementedError(f"{self._name()}: its draws have no derivative; use sample()")

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Draws (sample_shape, batch_shape, event_shape) without a derivative."""
        with no_grad():
            return (self._declared if self._samples_apart else type(self)).rsample(self, sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)) under its older name."""
        return self.sample((n,))

    def log_prob(self, value: Operand) -> Tensor:
        """The logarithm of the density or probability of value: (..., batch_shape)."""
        raise NotImplementedError(f"{self._name()}: no log_prob")

    def cdf(self, value: Operand) -> Tensor:
        """The cumulative distribution function: the probability that a draw is at most value."""
        raise NotImplementedError(f"{self._name()}: no cdf in closed form")

    def icdf(self, value: Operand) -> Tensor:
        """The inverse of cdf(), the quantile function."""
        raise NotImplementedError(f"{self._name()}: no icdf in closed form")

    def entropy(self) -> Tensor:
        """The expected -log_prob(), of shape batch_shape."""
        raise NotImplementedError(f"{self._name()}: no entropy in closed form")

    def perplexity(self) -> Tensor:
        """exp(entropy())."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a first axis. With expand they are repeated for the whole batch; without it the axes of the
        batch have size 1. NotImplementedError if the values cannot be listed.
        """
        raise NotImplementedError(f"{self._name()}: its values cannot be listed")

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> Self:
        """This distribution with batch_shape broadcast to another shape, without a copy."""
        rank, wanted = len(self.batch_shape), tuple(batch_shape)
        parameters = {name: getattr(self, name) for name in self._parameter_names()}
        wide = {name: x.expand(wanted + tuple(x.shape[rank:])) for name, x in parameters.items()}
        # A class of the user may have another constructor. It passes the new object as _instance.
        cls: Any = type(self) if _instance is None else self._declared
        expanded = self._filled(cls(**wide, **self._options(), validate_args=False), _instance)
        expanded._validate_args = self._validate_args
        return expanded

    def _options(self) -> dict[str, Any]:
        """The constructor arguments that are not parameters."""
        return {}

    def _filled(self, result: Any, instance: Any) -> Any:
        """result, or instance after it has got the attributes of result."""
        if instance is None:
            return result
        instance.__dict__.update(result.__dict__)
        return instance

    def _get_checked_instance(self, cls: type[Distribution], _instance: Any = None) -> Any:
        """The object that expand() of a subclass fills: _instance, or a new one. NotImplementedError if a subclass of
        cls has its own constructor."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"{self._name()}: a subclass with an __init__ needs an expand() of its own")
        return self.__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Iterable[int] = ()) -> tuple[int, ...]:
        if not hasattr(sample_shape, "__iter__"):
            raise TypeError(
                f"{self._name()}: sample_shape must be a sequence such as (3,), not {type(sample_shape).__name__}"
            )
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def _noise(self, draw: Any, shape: Iterable[int]) -> Tensor:
        """A draw of rand() or randn() on the device of the parameters, in their dtype, or in float32 if that is wider.
        _rounded() rounds what is computed from it to their dtype.
        """
        like = getattr(self, self._parameter_names()[0])
        if not like.dtype.is_floating_point:
            raise DTypeError(f"{self._name()}: draws need parameters of a float dtype, not {like.dtype.name}")
        return draw(shape, dtype=promote_types(like.dtype, float32), device=like.device)

    def _rounded(self, drawn: Tensor) -> Tensor:
        """x, which was computed from _noise(), in the dtype of the parameters."""
        return drawn.to(getattr(self, self._parameter_names()[0]).dtype)

    def _finite(self, drawn: Tensor) -> Tensor:
        """_rounded(x), with the largest number where rounding would give infinity."""
        most = finfo(getattr(self, self._parameter_names()[0]).dtype).max
        return self._rounded(drawn.clamp(-most, most))

    def _tensor(self, value: Operand) -> Tensor:
        """value as a tensor. A number gets the dtype and device of the parameters."""
        if isinstance(value, Tensor):
            return value
        like = getattr(self, self._parameter_names()[0])
        return as_tensor(value, dtype=like.dtype, device=like.device)

    def _validate_sample(self, value: Operand) -> Tensor:
        """value as a tensor. If validate_args, ShapeError for a shape that does not fit, and ArgumentError outside the
        support.
        """
        x = self._tensor(value)
        if self._validate_args:
            shape = tuple(self.batch_shape + self.event_shape)
            event = len(self.event_shape)
            if tuple(x.shape[x.ndim - event :]) != shape[len(shape) - event :] or any(
                a != b and 1 not in (a, b) for a, b in zip(reversed(x.shape), reversed(shape), strict=False)
            ):
                raise ShapeError(
                    f"{self._name()}: a value of shape {tuple(x.shape)} does not fit {shape} (batch, event)"
                )
            self._check("a value", x, self.support)
        return x

    def __repr__(self) -> str:
        parameters = {name: getattr(self, name) for name in self._parameter_names()}
        shown = [
            f"{name}: {x.item() if x.numel() == 1 and not isinstance(x, BatchedBase) else x.shape}"
            for name, x in parameters.items()
        ]
        return f"{self._name()}({', '.join(shown)})"


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last dim axes."""
    return value.sum(tuple(range(-dim, 0))) if dim else value


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcasts tensors and numbers to tensors of one shape. Numbers get the dtype and device of the first tensor."""
    like = next((x for x in values if isinstance(x, Tensor)), None)
    where = {"dtype": get_default_dtype()} if like is None else {"dtype": like.dtype, "device": like.device}
    return broadcast_tensors(*(x if isinstance(x, Tensor) else as_tensor(x, **where) for x in values))


class ByProbs(Distribution):
    """Base of distributions that take probs or logits. The other of the two is computed when it is read."""

    has_enumerate_support = True
    _to_probs: ClassVar[Any]
    _to_logits: ClassVar[Any]  # clamps probs to [eps, 1 - eps], so that logarithms are finite

    def _choose(self, probs: Any, logits: Tensor | None) -> Any:
        """probs or logits, whichever is not None. ValueError for both or none."""
        if (probs is None) == (logits is None):
            raise ValueError(f"{self._name()}: give either probs or logits")
        self._by = "logits" if probs is None else "probs"
        return logits if probs is None else probs

    def _parameter_names(self) -> list[str]:
        return [self._by]

    @cached_property
    def probs(self) -> Tensor:
        """The probabilities: batch_shape, or (batch_shape, classes)."""
        return self._to_probs(self.logits)

    @cached_property
    def logits(self) -> Tensor:
        """log(probs); for two values log(probs / (1 - probs))."""
        eps = finfo(self.probs.dtype).eps
        return self._to_logits(self.probs.clamp(min=eps, max=1 - eps))

    @property
    def param_shape(self) -> Any:
        """The shape of probs and logits."""
        return getattr(self, self._by).shape

    def _values(self) -> Tensor:
        """All values of an event, along a first axis."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count, *event = (values := self._values()).shape
        values = values.reshape(count, *(1,) * len(self.batch_shape), *event)
        return values.expand(count, *self.batch_shape, *event) if expand else values


publish(globals())
