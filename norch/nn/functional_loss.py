"""More losses, which functional.py hands on: of pairs, triplets and margins, of Poisson and normal distributions.

Each is the formula of its docstring over elements or samples, and then reduced: "mean" (unless given), "sum", "none".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..autograd import no_grad
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ops._operand import RENAMED_ERRORS, as_operand, rename_errors, renamed_error, tensor_of
from ..ops.composed.distance import pairwise_distance
from ..ops.pointwise import exp, log, minimum, sub, where
from ..ops.view import connect
from ..tensor import Tensor
from .functional_activation import logsigmoid

__all__ = [
    *("cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss"),
    *("margin_ranking_loss", "multi_margin_loss", "multilabel_soft_margin_loss", "poisson_nll_loss"),
    *("soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"),
]


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean, the sum, or the loss itself."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ArgumentError(f"{reduction!r} is not a valid value for reduction ('none', 'mean' or 'sum')")


def older(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction by what older programs give in its place: no mean unless size_average, nothing unless reduce."""
    if size_average is None and reduce is None:
        return reduction
    return "none" if reduce is False else "sum" if size_average is False else "mean"


F = TypeVar("F", bound=Callable[..., Any])


def a_loss(function: F) -> F:
    """rename_errors() of a function with a reduction, that takes size_average and reduce as well."""

    @functools.wraps(function)
    def composed(*arguments: Any, size_average: bool | None = None, reduce: bool | None = None, **named: Any) -> Any:
        if size_average is not None or reduce is not None:
            named["reduction"] = older("mean", size_average, reduce)
        try:
            return function(*arguments, **named)
        except RENAMED_ERRORS as error:
            raise renamed_error(error, function.__name__, (*arguments, *named.values())) from error.__cause__

    return cast(F, composed)


def _zero_if(condition: Tensor, x: Tensor) -> Tensor:
    return where(condition, 0.0, x)


# ---- distances with a quadratic middle ------------------------------------------------------------------------------


# ---- probabilities --------------------------------------------------------------------------------------------------


@a_loss
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target input, for a Poisson distribution whose rate has the logarithm input.

    Without log_input the rate is input: input - target log(input + eps). full adds Stirling's formula for log(target!)
    where target is above 1.
    """
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        some = where(target > 1, target, 1)
        loss = loss + _zero_if(target <= 1, some * log(some) - some + 0.5 * log(2 * math.pi * some))
    return reduced(loss, reduction)


@rename_errors
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, with var at least eps; full adds log(2 pi) / 2.

    var: a number, or of the shape of input, or with one axis of size 1 in place of its own, or no last one.
    """
    if not isinstance(var, Tensor):
        var = input.new_full((), as_operand(var, "gaussian_nll_loss").item()).expand(input.shape)
    shape = tuple(input.shape)
    if tuple(var.shape) != shape:
        if tuple(var.shape) == shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.ndim != len(shape) or [n for n, m in zip(var.shape, shape, strict=True) if n != m] != [1]:
            raise ArgumentError(f"var is of incorrect size: {tuple(var.shape)} beside {shape}")
    if (var < 0).any():
        raise ArgumentError("var has negative numbers")
    with no_grad():
        lift = (eps - var).clamp(min=0)
    var = var + lift  # at least eps, and the gradient passes
    loss = 0.5 * (log(var) + sub(input, target).square() / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


# ---- margins --------------------------------------------------------------------------------------------------------


@a_loss
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, *, reduction: str = "mean") -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    input, target = (tensor_of(x, "hinge_embedding_loss") for x in (input, target))
    apart = _zero_if(target == 1, (margin - input).clamp(min=0))
    return reduced(apart + _zero_if(target == -1, input), reduction)


@a_loss
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target input)), for targets 1 and -1."""
    return reduced(-logsigmoid(target * input), reduction)


@a_loss
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """max(0, margin - target (input1 - input2)): target 1 wants the first ranked higher, -1 the second."""
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(f"as many dimensions are expected of all: {input1.ndim}, {input2.ndim} and {target.ndim}")
    return reduced((-target * sub(input1, input2) + margin).clamp(min=0), reduction)


@a_loss
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1; (N, D) and (N), or (D) and ()."""
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        shapes = f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}"
        raise ShapeError(f"expected (N, D), (N, D) and (N), or (D), (D) and (), got {shapes}")
    lengths = (input1.square().sum(-1) + 1e-12) * (input2.square().sum(-1) + 1e-12)
    cosine = (input1 * input2).sum(-1) / lengths.sqrt()
    alike, apart = where(target == 1, 1 - cosine, 0.0), where(target == -1, (cosine - margin).clamp(min=0), 0.0)
    return reduced(alike + apart, reduction)


@a_loss
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), where d is pairwise_distance() of order p.

    swap: the nearer of anchor and positive is the one that negative is to be far from (Balntas et al. 2016).
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


@rename_errors
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss() with another distance."""
    if margin <= 0:
        raise ArgumentError(f"margin must be positive, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(f"as many dimensions are expected: {anchor.ndim}, {positive.ndim} and {negative.ndim}")
    distance = distance_function or pairwise_distance
    far = distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced((margin + distance(anchor, positive) - far).clamp(min=0), reduction)


@a_loss
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """The binary cross-entropy of logits (..., C) against 0s and 1s, times weight (C), and its mean over classes."""
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)


@a_loss
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Sums over classes i but the target y of max(0, margin - x[y] + x[i])^p / C, times weight[y]; x (N, C) or (C)."""
    if p not in (1, 2):
        raise ArgumentError(f"p is 1 or 2, not {p}")
    input = input.reshape(1) if input.ndim == 0 else input
    if target.dtype.kind not in "iu":
        raise DTypeError(f"expected integer class indices as target, got {target.dtype.name}")
    if input.ndim not in (1, 2) or tuple(target.shape) not in (tuple(input.shape[:-1]), (1,)[: 2 - input.ndim]):
        raise ShapeError(f"target of shape {tuple(target.shape)} does not fit input of shape {tuple(input.shape)}")
    index = target.reshape(*input.shape[:-1], 1).long()
    input = connect(input)
    excess = (margin - input.gather(-1, index) + input).clamp(min=0).scatter(-1, index, 0.0)
    loss = (excess if p == 1 else excess.square()).sum(-1) / input.shape[-1]
    if weight is not None:
        loss = loss * weight.index_select(0, index.flatten()).reshape(loss.shape)
    return reduced(loss, reduction)
