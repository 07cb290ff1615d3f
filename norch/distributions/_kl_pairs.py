"""Divergences between different families, where several families share a formula:

    kl(p, q) = -entropy of p - expectation of log q(x) for x from p

The second term needs a few expectations under p. It is infinite where p has values of density 0 under q.
"""

from __future__ import annotations

import math
from typing import Any

from ..nn.functional import softplus
from ..ops.create import full_like
from ..ops.pointwise import where
from ..ops.transcendental import xlogy
from ..tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant


def _of_logs(low: Tensor, high: Tensor) -> Tensor:
    """The mean of log(x) for x uniform between two positive numbers."""
    low, high = low.clamp(min=0), high.clamp(min=0)
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


# The expectation of log(x) under p.
MEAN_LOG: dict[type, Any] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -p.rate.log() - euler_constant,
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _of_logs(p.low, p.high),
}


def _log_of_uniform(p: Uniform, s: Tensor) -> Tensor:
    width = (p.high - p.low) / s
    return -p.low / s + (-(-width).expm1() / width).log()


# The logarithm of the expectation of exp(-x / s).
LOG_MEAN_EXP: dict[type, Any] = {
    Exponential: lambda p, s: -(1 / (p.rate * s)).log1p(),
    Gamma: lambda p, s: -p.concentration * (1 / (p.rate * s)).log1p(),
    Gumbel: lambda p, s: -p.loc / s + (1 + p.scale / s).lgamma(),
    Normal: lambda p, s: -p.loc / s + (p.scale / s).square() / 2,
    Uniform: _log_of_uniform,
}

# The ends of the support, if they are numbers; None: unbounded.
ENDS: dict[type, tuple[Any, Any]] = {Beta: (0.0, 1.0), ContinuousBernoulli: (0.0, 1.0), Exponential: (0.0, None)}
ENDS |= {Gamma: (0.0, None)}


def _of_family(table: dict[type, Any], p: Any) -> Any:
    """The entry of the family of p; a subclass, such as Chi2 of Gamma, has the entry of its base."""
    return next(table[family] for family in type(p).__mro__ if family in table)


def _ends(p: Any) -> tuple[Any, Any]:
    return (p.low, p.high) if isinstance(p, Uniform) else _of_family(ENDS, p)


def _to_normal(p: Any, q: Normal) -> Tensor:
    away = (p.variance + (p.mean - q.loc).square()) / q.scale.square()
    return away / 2 + q.scale.log() + math.log(2 * math.pi) / 2


def _to_exponential(p: Any, q: Exponential) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _to_gamma(p: Any, q: Gamma) -> Tensor:
    a, rate = q.concentration, q.rate
    return a.lgamma() - a * rate.log() - (a - 1) * _of_family(MEAN_LOG, p)(p) + rate * p.mean


def _to_beta(p: Uniform, q: Beta) -> Tensor:
    of_x, of_rest = _of_logs(p.low, p.high), _of_logs(1 - p.high, 1 - p.low)
    return q._of_both._log_beta() - (q.concentration1 - 1) * of_x - (q.concentration0 - 1) * of_rest


def _to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    return softplus(q.logits) - q.logits * p.mean - q._log_constant()


def _to_gumbel(p: Any, q: Gumbel) -> Tensor:
    mean = (p.mean - q.loc) / q.scale
    return q.scale.log() + mean + (q.loc / q.scale + _of_family(LOG_MEAN_EXP, p)(p, q.scale)).exp()


def _to_pareto(p: Uniform, q: Pareto) -> Tensor:
    return (q.alpha + 1) * MEAN_LOG[Uniform](p) - q.alpha.log() - q.alpha * q.scale.log()


def _to_laplace(p: Normal, q: Laplace) -> Tensor:
    away = (p.loc - q.loc) / (p.scale * math.sqrt(2))
    distance = p.scale * (math.sqrt(2 / math.pi) * (-away.square()).exp() + math.sqrt(2) * away * away.erf())
    return distance / q.scale + (2 * q.scale).log()


def _to_uniform(p: Any, q: Uniform) -> Tensor:
    return (q.high - q.low).log()


# The family of q, its formula, and the families of p.
FINITE: list[tuple[type, Any, tuple[type, ...]]] = [
    (Normal, _to_normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)),
    (Exponential, _to_exponential, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Gamma, _to_gamma, (Beta, Exponential, Pareto, Uniform)),
    (Beta, _to_beta, (Uniform,)),
    (ContinuousBernoulli, _to_continuous_bernoulli, (Beta, ContinuousBernoulli, Uniform)),
    (Gumbel, _to_gumbel, (Exponential, Gamma, Gumbel, Normal, Uniform)),
    (Pareto, _to_pareto, (Uniform,)),
    (Laplace, _to_laplace, (Normal,)),
    (Uniform, _to_uniform, (Beta, ContinuousBernoulli, Uniform)),
]
INFINITE: list[tuple[type, tuple[type, ...]]] = [
    (Pareto, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal)),
    (Uniform, (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto)),
    (Beta, (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto)),
    (ContinuousBernoulli, (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto)),
    (Exponential, (Gumbel, Laplace, Normal)),
    (Gamma, (Gumbel, Laplace, Normal)),
    (Bernoulli, (Poisson,)),
    (Binomial, (Poisson,)),
]


def _inside(p: Any, q: Any) -> Any:
    """Whether the support of q contains that of p, or None if it always does."""
    if isinstance(q, Pareto):
        return p.low >= q.scale
    if not isinstance(p, Uniform) and not isinstance(q, Uniform):
        return None
    if isinstance(q, Normal | Gumbel | Laplace):
        return None
    (low, high), (least, most) = _ends(p), _ends(q)
    above = least <= low
    return above if most is None else above & (high <= most)


def _registered(type_p: type, type_q: type, cross_entropy: Any) -> None:
    @register_kl(type_p, type_q)
    def divergence(p: Any, q: Any) -> Tensor:
        value = cross_entropy(p, q) - p.entropy()
        inside = _inside(p, q)
        return value if inside is None else where(inside, value, math.inf)


def _infinite(p: Any, q: Any) -> Tensor:
    return full_like(getattr(p, p._parameter_names()[0]) + getattr(q, q._parameter_names()[0]), math.inf)


for _q, _formula, _families in FINITE:
    for _p in _families:
        _registered(_p, _q, _formula)
for _q, _families in INFINITE:
    for _p in _families:
        register_kl(_p, _q)(_infinite)
