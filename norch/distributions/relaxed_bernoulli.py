"""RelaxedBernoulli: numbers in (0, 1) that lie near 0 or 1 (Maddison et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..nn.functional import softplus
from ..ops.random import rand
from ..ops.values import as_tensor
from ..tensor import Tensor
from . import constraints
from .distribution import ByProbs, Distribution, broadcast_all
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import clamp_probs


class LogitRelaxedBernoulli(ByProbs):
    """The distribution of (logits + log(u / (1 - u))) / temperature for a uniform u (Maddison et al. 2017). temperature
    is a positive number or tensor. Pass probs or logits, a number or a tensor.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample, has_enumerate_support = True, False
    _to_probs, _to_logits = staticmethod(Tensor.sigmoid), staticmethod(Tensor.logit)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        self.__dict__[self._by] = parameter
        self.temperature = as_tensor(temperature, dtype=parameter.dtype, device=parameter.device)
        super().__init__(parameter.shape, validate_args=validate_args)

    def _options(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        u = clamp_probs(self._noise(rand, self._extended_shape(sample_shape)))
        return self._finite((self.logits + u.logit()) / self.temperature)

    def log_prob(self, value: Operand) -> Tensor:
        away = self.logits - self._validate_sample(value) * self.temperature
        return self.temperature.log() + away - 2 * softplus(away)


class Relaxed(TransformedDistribution):
    """Base of a transformed distribution that has the parameters of its base distribution."""

    has_rsample = True
    base_dist: Any

    def _parameter_names(self) -> list[str]:
        return self.base_dist._parameter_names()

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs)); for classes log(probs)."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1, or those of the classes."""
        return self.base_dist.probs

    __repr__ = Distribution.__repr__


class RelaxedBernoulli(Relaxed):
    """The sigmoid of LogitRelaxedBernoulli, with the same arguments. Its draws in (0, 1) are differentiable; the lower
    the temperature, the nearer they are to 0 or 1.

    >>> norch.distributions.RelaxedBernoulli(0.1, probs=0.9).log_prob(norch.tensor(0.5)).shape
    norch.Size([])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)
