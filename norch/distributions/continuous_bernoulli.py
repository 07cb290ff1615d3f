"""ContinuousBernoulli, of numbers between 0 and 1 (Loaiza-Ganem and Cunningham 2019)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..nn.functional import binary_cross_entropy_with_logits, softplus
from ..ops.pointwise import where
from ..ops.random import rand
from ..tensor import Tensor
from . import constraints
from .distribution import ByProbs, broadcast_all
from .exp_family import ExponentialFamily
from .utils import clamp_probs


class ContinuousBernoulli(ByProbs, ExponentialFamily):
    """The continuous Bernoulli distribution (Loaiza-Ganem and Cunningham 2019), with the density C probs^x (1 -
    probs)^(1 - x) for x in [0, 1], where C = l / tanh(l / 2) and l is the logit. Pass probs or logits, a number or a
    tensor.

    Near l = 0 power series replace the formulas. lims has no effect: PyTorch uses it for the limits of its series.

    >>> norch.distributions.ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample, has_enumerate_support = True, False
    _samples_apart = True
    _to_probs = staticmethod(lambda logits: clamp_probs(logits.sigmoid()))
    _to_logits = staticmethod(Tensor.logit)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        self.__dict__[self._by], self._lims = parameter, lims
        super().__init__(parameter.shape, validate_args=validate_args)
        if probs is not None:
            self.__dict__["probs"] = clamp_probs(parameter)

    def _options(self) -> dict[str, Any]:
        return {"lims": self._lims}

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        (logits,) = natural_params
        return softplus(logits) - ContinuousBernoulli(logits=logits, validate_args=False)._log_constant()

    def _near(self) -> tuple[Tensor, Tensor, Tensor]:
        """Three tensors: whether the logit is near 0; the logit where it is near 0, else 0; the logit elsewhere, else
        1.
        """
        near = self.logits.abs() < 0.1
        return near, where(near, self.logits, 0.0), where(near, 1.0, self.logits)

    def _log_constant(self) -> Tensor:
        near, small, x = self._near()
        u, half = (small / 2).square(), x / 2
        powers = u * (1 / 3 + u * (-7 / 90 + u * (62 / 2835 - u * 127 / 18900)))
        return math.log(2) + where(near, powers, (half / half.tanh()).log())

    @property
    def mean(self) -> Tensor:
        near, small, x = self._near()
        u = small.square()
        powers = small * (1 / 12 - u * (1 / 720 - u * (1 / 30240 - u / 1209600)))
        return where(near, 0.5 + powers, -(-x).expm1().reciprocal() - x.reciprocal())

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        near, small, x = self._near()
        u = small.square()
        powers = 1 / 12 - u * (1 / 240 - u * (1 / 6048 - u * (1 / 172800 - u / 5322240)))
        return where(near, powers, x.square().reciprocal() - (2 * (x / 2).sinh()).square().reciprocal())

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._rounded(self.icdf(self._noise(rand, self._extended_shape(sample_shape)))).clamp(0, 1)

    def log_prob(self, value: Operand) -> Tensor:
        logits, x = broadcast_all(self.logits, self._validate_sample(value))
        return self._log_constant() - binary_cross_entropy_with_logits(logits, x.to(logits.dtype), reduction="none")

    def cdf(self, value: Operand) -> Tensor:
        p = self._validate_sample(value).clamp(0, 1)
        return self._mirrored(p, lambda p, logit: (logit * p).expm1() / logit.expm1())

    def icdf(self, value: Operand) -> Tensor:
        return self._mirrored(self._tensor(value), lambda p, logit: (p * logit.expm1()).log1p() / logit)

    def _mirrored(self, p: Tensor, function: Any) -> Tensor:
        """function(p, -|logit|), which does not overflow; for positive logits 1 - function(1 - p, ...); p where that is
        0."""
        zero, positive = self.logits == 0, self.logits > 0
        values = function(where(positive, 1 - p, p), -where(zero, 1.0, self.logits).abs())
        return where(zero, p, where(positive, 1 - values, values))

    def entropy(self) -> Tensor:
        return softplus(self.logits) - self.logits * self.mean - self._log_constant()
