"""Gamma, and differentiable draws of the gamma distribution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..autograd.function import Function, once_differentiable
from ..dtype import finfo
from ..ops.create import full_like
from ..ops.pointwise import where
from ..ops.random import rand_like, randn_like
from ..ops.special import igamma, igammac
from ..ops.transcendental import xlogy
from ..tensor import Tensor
from . import constraints
from .distribution import broadcast_all
from .exp_family import ExponentialFamily


class _StandardGamma(Function):
    """Gamma draws with rate 1. Their derivative with respect to the concentration a is that of the quantile function,
    -P'(a, z) / p(z; a), where P is the cumulative distribution function, P' its derivative by a, and p the density
    (Figurnov et al., Implicit Reparameterization Gradients, NeurIPS 2018).
    """

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        z = _log_of_draw(concentration.double()).exp().to(concentration.dtype)
        z = z.clamp(finfo(z.dtype).tiny, finfo(z.dtype).max)
        ctx.save_for_backward(concentration, z)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        concentration, z = ctx.saved_tensors
        return g * standard_gamma_slope(concentration, z)


class _LogStandardGamma(Function):
    """Logarithms of gamma draws with rate 1."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        log_z = _log_of_draw(concentration)
        ctx.save_for_backward(concentration, log_z)
        return log_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        a, log_z = ctx.saved_tensors
        z = log_z.clamp(min=_SMALL).exp()
        # For small z, P(a, z) is z^a / gamma(a + 1), so the quantile's derivative has a closed form.
        return g * where(log_z < _SMALL, ((a + 1).digamma() - log_z) / a, standard_gamma_slope(a, z) / z)


_SMALL = -40.0  # log of a number that is negligible beside 1 in float64


def log_standard_gamma(concentration: Tensor) -> Tensor:
    """Logarithms of gamma draws with rate 1, in float64. They do not underflow for small concentrations, as the draws
    do.
    """
    drawn: Tensor = _LogStandardGamma.apply(concentration.double())
    return drawn


def standard_gamma(concentration: Tensor) -> Tensor:
    """Gamma draws with rate 1, in the shape and dtype of concentration."""
    drawn: Tensor = _StandardGamma.apply(concentration)
    return drawn


def _log_of_draw(a: Tensor) -> Tensor:
    """Logarithms of draws by rejection (Marsaglia and Tsang, A Simple Method for Generating Gamma Variables, ACM TOMS
    26, 2000). For a concentration below 1, a draw for concentration + 1 is multiplied by a power of a uniform number
    (section 6).
    """
    flat = where(a < 1, a + 1, a).reshape(-1)
    d = flat - 1 / 3
    c = (9 * d).rsqrt()
    logs = full_like(flat, 0.0)
    left = (flat == flat).nonzero().squeeze(1)  # a NaN would be rejected forever
    while left.numel():
        of_d, x = d[left], randn_like(logs[left])
        v = (1 + c[left] * x) ** 3
        log_v = where(v > 0, v, 1.0).log()
        accepted = (v > 0) & (rand_like(v).log() < x * x / 2 + of_d * (1 - v + log_v))
        logs[left[accepted]] = of_d[accepted].log() + log_v[accepted]
        left = left[~accepted]
    log_draw = where(flat == flat, logs, flat).reshape(a.shape)
    return where(a < 1, log_draw + rand_like(a).clamp(min=1e-300).log() / a, log_draw)


def standard_gamma_slope(concentration: Tensor, z: Tensor) -> Tensor:
    """The derivative of draws z with respect to their concentration. P' is a five-point difference quotient of the
    incomplete gamma function of the tail that contains z.
    """
    a, x = concentration.detach().double(), z.detach().double()
    step = 1e-3 * a.minimum(a.sqrt())

    def slope(tail: Any) -> Tensor:
        near, far = (tail(a + k * step, x) - tail(a - k * step, x) for k in (1, 2))
        return (8 * near - far) / (12 * step)

    by_a = where(x < a, slope(igamma), -slope(igammac))
    log_density = (a - 1) * x.log() - x - a.lgamma()
    lost = z <= finfo(z.dtype).tiny  # whether the draw underflowed
    return where(lost, 0.0, (-by_a * (-log_density).exp()).to(z.dtype))


class Gamma(ExponentialFamily):
    """The gamma distribution, with the density rate^concentration x^(concentration - 1) exp(-rate x) /
    gamma(concentration) for x > 0. concentration and rate are positive numbers, or tensors that broadcast.

    >>> norch.distributions.Gamma(norch.tensor([1.0, 4.0]), 2.0).mean
    tensor([0.5000, 2.0000])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        a, b = natural_params
        return (a + 1).lgamma() - (a + 1) * (-b).log()

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = standard_gamma(self.concentration.expand(shape)) / self.rate
        limits = finfo(drawn.dtype)
        return drawn.clamp(limits.tiny, limits.max)

    def log_prob(self, value: Any) -> Tensor:
        x = self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return xlogy(a, rate) + xlogy(a - 1, x) - rate * x - a.lgamma()

    def cdf(self, value: Any) -> Tensor:
        return igamma(self.concentration, self.rate * self._validate_sample(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()
