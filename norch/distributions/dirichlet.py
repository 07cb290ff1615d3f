"""Dirichlet, of the probabilities of several classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..dtype import finfo
from ..errors import ShapeError
from ..ops.pointwise import where
from ..ops.transcendental import xlogy
from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .gamma import log_standard_gamma


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of the probabilities x of several classes: the density is proportional to the product
    of x^(concentration - 1). concentration (..., classes) is positive. Draws are gamma draws divided by their sum. They
    are computed as logarithms, because the gamma draws of small concentrations underflow.

    >>> norch.distributions.Dirichlet(norch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if not isinstance(concentration, Tensor) or not concentration.ndim:
            raise ShapeError("Dirichlet: concentration must have at least 1 dimension, the classes last")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration - 1,)

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        return Dirichlet(natural_params[0] + 1, validate_args=False)._log_beta()

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        likeliest = above / above.sum(-1, True)
        corner = (self.concentration == self.concentration.amax(-1, True)).type_as(likeliest)
        return where((self.concentration < 1).all(-1, keepdim=True), corner / corner.sum(-1, True), likeliest)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        logs = log_standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        limits = finfo(self.concentration.dtype)
        parts = logs.softmax(-1).to(self.concentration.dtype)
        return parts.clamp(min=limits.tiny, max=1 - limits.eps / 2)  # the density at 0 and 1 may be infinite

    def log_prob(self, value: Any) -> Tensor:
        x, a = self._validate_sample(value), self.concentration
        return xlogy(a - 1, x).sum(-1) - self._log_beta()

    def _log_beta(self) -> Tensor:
        """The logarithm of the multivariate beta function."""
        return self.concentration.lgamma().sum(-1) - self.concentration.sum(-1).lgamma()

    def entropy(self) -> Tensor:
        a, total = self.concentration, self.concentration.sum(-1)
        of_classes = ((a - 1) * a.digamma()).sum(-1)
        return self._log_beta() + (total - a.shape[-1]) * total.digamma() - of_classes
