"""RelaxedOneHotCategorical: probabilities near a one-hot vector (Maddison et al., Jang et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..ops.random import rand
from ..ops.values import as_tensor
from ..tensor import Tensor
from . import constraints
from .categorical import Classes
from .relaxed_bernoulli import Relaxed
from .transforms import ExpTransform
from .utils import clamp_probs


class ExpRelaxedCategorical(Classes):
    """The log-softmax of (logits + g) / temperature for Gumbel numbers g (Maddison et al., Jang et al. 2017).
    temperature is a positive number or tensor. Pass probs or logits (..., classes).
    """

    support = constraints.real_vector
    has_rsample, has_enumerate_support = True, False

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, True, validate_args)
        self.temperature = as_tensor(temperature, dtype=self.logits.dtype, device=self.logits.device)

    def _options(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        u = clamp_probs(self._noise(rand, self._extended_shape(sample_shape)))
        return self._finite(((self.logits - (-u.log()).log()) / self.temperature).log_softmax(-1))

    def log_prob(self, value: Operand) -> Tensor:
        more = self._classes - 1
        scores = (self.logits - self._validate_sample(value) * self.temperature).log_softmax(-1)
        return scores.sum(-1) + math.lgamma(more + 1) + more * self.temperature.log()


class RelaxedOneHotCategorical(Relaxed):
    """The exponential of ExpRelaxedCategorical, with the same arguments. Its draws of probabilities are differentiable;
    the lower the temperature, the nearer they are to a one-hot vector.

    >>> norch.distributions.RelaxedOneHotCategorical(0.5, norch.tensor([1.0, 3.0])).event_shape
    norch.Size([2])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
