"""TransformedDistribution: a random variable passed through one-to-one transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..autograd import no_grad
from ..errors import ShapeError
from ..tensor import Tensor
from . import constraints
from ._halves import holds_caches, holds_halves, rounded_once
from .distribution import Distribution, sum_rightmost
from .independent import Independent
from .transforms import ComposeTransform, Transform


class TransformedDistribution(Distribution):
    """The distribution of f(x) for x from base_distribution. transforms is a Transform, or several that are applied in
    order. The base distribution is expanded to the shape of their parameters. log_prob(y) is the log_prob() of x =
    f^-1(y) minus log |df / dx| (change of variables).

    >>> d = norch.distributions
    >>> log_normal = d.TransformedDistribution(d.Normal(0.0, 1.0), d.ExpTransform())
    >>> log_normal.log_prob(norch.tensor(1.0))
    tensor(-0.9189)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for transform in self.transforms:
            if not isinstance(transform, Transform):
                raise TypeError(f"TransformedDistribution: expected transforms, not {type(transform).__name__}")
        self._transform = f = ComposeTransform(self.transforms)
        shape, event = base_distribution.batch_shape + base_distribution.event_shape, len(base_distribution.event_shape)
        needed, has = f.domain.event_dim, f.codomain.event_dim
        if len(shape) < needed:
            raise ShapeError(f"TransformedDistribution: events need {needed} axes, but the shape is {tuple(shape)}")
        image = tuple(f.forward_shape(shape))
        wider = tuple(f.inverse_shape(image))
        if wider != tuple(shape):  # so that each element of the batch has its own draw
            base_distribution = base_distribution.expand(wider[: len(wider) - event])
        self.base_dist = Independent(base_distribution, needed - event) if needed > event else base_distribution
        cut = len(image) - has - max(event - needed, 0)
        super().__init__(image[:cut], image[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return self._drawn(lambda base: base.sample(sample_shape))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._drawn(lambda base: base.rsample(sample_shape))

    def _drawn(self, draw: Callable[[Distribution], Tensor]) -> Tensor:
        """The image of a draw of the base distribution. With 16-bit floats it is computed in float32, and stays finite
        when it is rounded.
        """
        if not holds_halves((self,)) or holds_caches(self):
            return self._transform(draw(self.base_dist))
        return self._transform._inside(rounded_once(lambda d: d._transform(draw(d.base_dist)), self, finite=True))

    def log_prob(self, value: Any) -> Tensor:
        y, event = self._validate_sample(value), len(self.event_shape)
        lost: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform._inv_call(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            lost = lost + sum_rightmost(transform.log_abs_det_jacobian(x, y), event - transform.domain.event_dim)
            y = x
        return sum_rightmost(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape)) - lost

    def cdf(self, value: Any) -> Tensor:
        below = self.base_dist.cdf(self._transform._inv_call(self._validate_sample(value)))
        return self._of_increasing(below)

    def icdf(self, value: Any) -> Tensor:
        return self._transform(self.base_dist.icdf(self._of_increasing(self._tensor(value))))

    def _of_increasing(self, p: Tensor) -> Tensor:
        """p, or 1 - p where the transform decreases."""
        sign = self._transform.sign
        return sign * (p - 0.5) + 0.5

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> TransformedDistribution:
        wider = tuple(self._transform.inverse_shape((*batch_shape, *self.event_shape)))
        base = self.base_dist.expand(wider[: len(wider) - len(self.base_dist.event_shape)])
        expanded = TransformedDistribution(base, self.transforms, self._validate_args)
        return self._filled(expanded, self._get_checked_instance(self._declared, _instance))

    def _tensor(self, value: Any) -> Tensor:
        return self.base_dist._tensor(value)

    def __repr__(self) -> str:
        return f"TransformedDistribution({self.base_dist}, {self.transforms})"
