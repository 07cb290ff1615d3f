"""ExponentialFamily, the base of distributions of exponential families."""

from __future__ import annotations

from typing import Any

from ..autograd import grad
from ..tensor import Tensor
from .distribution import Distribution, sum_rightmost


class ExponentialFamily(Distribution):
    """Base of distributions with densities exp(t(x) . n - F(n) + k(x)), where n are the natural parameters. A subclass
    defines _natural_params, a tuple, _log_normalizer(*n), which is F, and _mean_carrier_measure, the expectation of
    k(x). Entropy and divergence follow from the derivatives of F (Nielsen and Nock 2010), unless the subclass has
    formulas for them.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{self._name()}: no _natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        raise NotImplementedError(f"{self._name()}: no _log_normalizer()")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{self._name()}: no _mean_carrier_measure")

    def _expectations(self) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
        """The natural parameters, F of them, and the derivatives of F, which are the expectations of t(x)."""
        params = [x if x.requires_grad else x.detach().requires_grad_() for x in self._natural_params]
        normalizer = self._log_normalizer(*params)
        return params, normalizer, grad(normalizer.sum(), params, create_graph=True)

    def entropy(self) -> Tensor:
        params, normalizer, expected = self._expectations()
        for n, t in zip(params, expected, strict=True):
            normalizer = normalizer - sum_rightmost(n * t, n.ndim - len(self.batch_shape))
        return normalizer - self._mean_carrier_measure
