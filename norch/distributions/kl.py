"""The Kullback-Leibler divergence (1951), the expectation of log(p / q) under p. The types of p and q choose the
formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from .._package.exports import publish
from ..errors import ShapeError
from ..nn.functional import softplus
from ..ops.pointwise import where
from ..ops.transcendental import xlogy
from ..tensor import Tensor
from ._halves import holds_halves, rounded_once
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical, Classes
from .cauchy import Cauchy
from .dirichlet import Dirichlet
from .distribution import Distribution, holds, sum_rightmost
from .exp_family import ExponentialFamily
from .gamma import Gamma
from .geometric import Geometric
from .independent import Independent
from .inverse_gamma import InverseGamma
from .laplace import Laplace
from .log_normal import LogNormal
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .wishart import Wishart

__all__ = ["kl_divergence", "register_kl"]

F = TypeVar("F", bound=Callable[[Any, Any], Tensor])


class _Formulas(dict[tuple[type, type], Callable[[Any, Any], Tensor]]):
    """{types of p and q: formula}. Programs can add formulas, so recordings compare this dict (program/guards.py)."""

    is_compared = True


_FORMULAS = _Formulas()


def register_kl(type_p: type, type_q: type) -> Callable[[F], F]:
    """A decorator that makes kl_divergence() call the function for these types and their subclasses.

    >>> class Mine(norch.distributions.Normal): ...
    >>> @norch.distributions.register_kl(Mine, Mine)
    ... def mine(p, q):
    ...     return norch.zeros(())
    >>> norch.distributions.kl_divergence(Mine(0.0, 1.0), Mine(1.0, 2.0))
    tensor(0.)
    """
    for cls in (type_p, type_q):
        if not isinstance(cls, type):  # other libraries, such as pyro, register classes that derive from something else
            raise TypeError(f"register_kl: expected classes, not {cls!r}")

    def register(function: F) -> F:
        _FORMULAS[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expectation of p.log_prob(x) - q.log_prob(x) under p, of shape batch_shape, in closed form.
    NotImplementedError if no formula is registered for the two types.

    >>> kl = norch.distributions.kl_divergence
    >>> kl(norch.distributions.Normal(0.0, 1.0), norch.distributions.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for type_p in type(p).__mro__:
        for type_q in type(q).__mro__:
            if function := _FORMULAS.get((type_p, type_q)):
                return rounded_once(function, p, q) if holds_halves((p, q)) else function(p, q)
    raise NotImplementedError(f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}")


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log()) / 2


@register_kl(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    of_rates = b * (p.rate / q.rate).log() + a * (q.rate / p.rate - 1)
    return of_rates + b.lgamma() - a.lgamma() + (a - b) * a.digamma()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, total = p.concentration, p.concentration.sum(-1, True)
    away = ((a - q.concentration) * (a.digamma() - total.digamma())).sum(-1)
    return q._log_beta() - p._log_beta() + away


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._of_both, q._of_both)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return xlogy(p.rate, p.rate) - xlogy(p.rate, q.rate) - p.rate + q.rate


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ShapeError(f"kl_divergence: events of shapes {tuple(p.event_shape)} and {tuple(q.event_shape)}")
    away = q._distances((q.loc - p.loc).unsqueeze(-1)).squeeze(-1)
    for factor in p._factors():
        away = away + q._distances(factor).sum(-1)
    return q._half_log_det() - p._half_log_det() + (away - p.event_shape[0]) / 2


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Tensor:
    return q._cross_entropy(p) - p.entropy()


def _weighed(weight: Tensor, log_ratio: Tensor, other: Tensor) -> Tensor:
    """weight log(weight / other). It is 0 where weight is 0, and otherwise inf where other is 0."""
    return where(weight == 0, 0.0, where(other == 0, math.inf, weight * log_ratio))


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = _weighed(p.probs, softplus(-q.logits) - softplus(-p.logits), q.probs)
    return ones + _weighed(1 - p.probs, softplus(q.logits) - softplus(p.logits), 1 - q.probs)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    """kl(p, q) of two binomial distributions. It is infinite where p has more trials than q, because q then gives some
    values of p the probability 0.
    """
    each = _bernoulli(Bernoulli(p.probs, validate_args=False), Bernoulli(q.probs, validate_args=False))
    if not holds(p.total_count >= q.total_count):
        raise NotImplementedError("kl_divergence: binomial q must not have more trials than p")
    return where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _classes(p: Classes, q: Classes) -> Tensor:
    return _weighed(p.probs, p.logits - q.logits, q.probs).sum(-1)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        axes = f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        raise NotImplementedError(f"kl_divergence: events take {axes} axes of the batch")
    return p.summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: transformed distributions must have the same transforms")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the natural parameters (Nielsen and Nock 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}")
    params, normalizer, expected = p._expectations()
    divergence = q._log_normalizer(*q._natural_params) - normalizer
    for mine, other, t in zip(params, q._natural_params, expected, strict=True):
        divergence = divergence - sum_rightmost((other - mine) * t, other.ndim - len(q.batch_shape))
    return divergence


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """The closed form of Chyzak and Nielsen, A closed-form formula for the Kullback-Leibler divergence between Cauchy
    distributions (2019).
    """
    return ((p.scale + q.scale).square() + (p.loc - q.loc).square()).log() - (4 * p.scale * q.scale).log()


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: InverseGamma, q: InverseGamma) -> Tensor:
    return _gamma(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    return where(p.scale < q.scale, math.inf, q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()


publish(globals())
