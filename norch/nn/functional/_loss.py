"""The loss functions of nn.functional, apart from cross-entropies (_cross_entropy.py).

Each computes the formula of its docstring for every element or sample, and then reduces; mse_loss() describes
`reduction`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from ..._binding.library import constants, lib
from ..._binding.numbers import flag
from ..._package.typing import Operand
from ...autograd import no_grad
from ...dtype import check_numbers, get_default_dtype
from ...errors import ArgumentError, DTypeError, Error, ShapeError, one_of, rename_error, stacklevel_of_user
from ...ops._checks import at_least, real_of
from ...ops._entry import composed
from ...ops._operand import as_operand, operand, tensor_of
from ...ops._rows import writes
from ...ops.activation import huber
from ...ops.composed.distance import pairwise_distance
from ...ops.pointwise import exp, log, minimum, where
from ...ops.reduce import mean_over, mean_square
from ...ops.sums import sub
from ...ops.view import connect
from ...tensor import Tensor
from ._activation import logsigmoid

__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of all elements, or the loss itself."""
    if reduction == "mean":
        return mean_over(loss)
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ArgumentError(f"{reduction!r} is not a valid value for reduction ('none', 'mean' or 'sum')")


def legacy_reduction(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that PyTorch's deprecated arguments mean, or `reduction` if both are None."""
    if size_average is None and reduce is None:
        return reduction
    for name, value in (("size_average", size_average), ("reduce", reduce)):
        if value is not None:
            flag(value, name)
            warnings.warn(f"the argument {name} is deprecated; use reduction", stacklevel=stacklevel_of_user())
    return "none" if reduce is False else "sum" if size_average is False else "mean"


# ---- regression -----------------------------------------------------------------------------------------------------


def _difference(name: str, input: Tensor, target: Tensor) -> Tensor:
    """input - target, with a warning if their shapes differ."""
    try:
        difference = sub(input, target)
    except (Error, TypeError) as error:
        rename_error(error, name)
        raise
    shapes = [tuple(x.shape) for x in (input, target) if isinstance(x, Tensor)] if difference._mixed else []
    if len(set(shapes)) == 2:
        warnings.warn(
            f"{name}: using a target size {shapes[1]} that is different to the input size {shapes[0]}; this will "
            "likely lead to incorrect results due to broadcasting",
            stacklevel=stacklevel_of_user(),
        )
    return difference


def _writable(x: Tensor) -> bool:
    """Whether x, which was computed here, may be written to: no node and no recording needs it."""
    return x._node is None and type(x) is Tensor and x.is_floating_point() and not lib.norch_recording()


_write_huber = writes("binary", "huber")


def _huber(difference: Tensor, bound: float) -> Tensor:
    """huber(), in the memory of the difference if possible."""
    out = _write_huber(difference, operand(bound)) if _writable(difference) else NotImplemented
    return huber(difference, bound) if out is NotImplemented else out


@composed(autocast="float32")
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)^2, for input and target of the same shape. Other shapes broadcast, with a warning. DTypeError
    for complex numbers.

    reduction, here and in the other losses, is "mean" (the default) or "sum", which give a 0-d tensor, or "none", which
    gives the loss of each element or sample; ArgumentError for other values. size_average and reduce, bools, are
    PyTorch's older options for it, and take precedence. weight is a factor for each element, of the shape of input;
    "mean" then divides by its sum.

    >>> norch.nn.functional.mse_loss(norch.zeros(2), norch.tensor([1.0, 3.0]))
    tensor(5.)
    """
    difference = _difference("mse_loss", input, target)
    if reduction == "mean" and size_average is reduce is weight is None and difference.is_floating_point():
        return mean_square(difference)
    try:
        reduction = legacy_reduction(reduction, size_average, reduce)
        loss = difference.square_() if _writable(difference) else real_of(difference, "mse_loss").square()
        return reduced(loss, reduction) if weight is None else _weighted(loss, weight, input, reduction)
    except (Error, TypeError) as error:
        rename_error(error, "mse_loss")
        raise


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, reduction: str) -> Tensor:
    """The losses times their weights, reduced. A mean divides by the sum of the weights."""
    _check_weight(weight, input)
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return reduced(loss * weight, reduction)


def _check_weight(weight: Tensor, input: Tensor) -> None:
    if tensor_of(weight, "weight").shape != input.shape:
        raise ShapeError(f"weight has shape {tuple(weight.shape)}, and input {tuple(input.shape)}: they must be equal")


@composed(autocast="float32")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|; shapes and weight as in mse_loss().

    >>> norch.nn.functional.l1_loss(norch.tensor([1.0, 5.0]), norch.tensor([2.0, 2.0]))
    tensor(2.)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    loss = _difference("l1_loss", input, target).abs()
    return reduced(loss, reduction) if weight is None else _weighted(loss, weight, input, reduction)


@composed(autocast="float32")
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = input - target (Girshick 2015).

    >>> norch.nn.functional.smooth_l1_loss(norch.zeros(2), norch.tensor([1.0, 3.0]), reduction="none")
    tensor([0.5000, 2.5000])
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    difference = _difference("smooth_l1_loss", input, target)
    if beta == 0:
        return reduced(difference.abs(), reduction)
    loss = reduced(_huber(difference, beta), reduction)
    return loss if beta == 1 else loss / beta


@composed(autocast="float32")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """delta * smooth_l1_loss() with beta=delta (Huber 1964). weight: a factor for each element; it broadcasts.

    >>> norch.nn.functional.huber_loss(norch.tensor([1.0]), norch.tensor([4.0]), delta=2.0)
    tensor(4.)
    """
    check_numbers("huber_loss", delta=delta)
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta must be positive, got {delta}")
    difference = _difference("huber_loss", input, target)
    loss = _huber(difference, delta)
    return reduced(loss if weight is None else loss * weight, reduction)


# ---- distributions --------------------------------------------------------------------------------------------------


@composed(autocast="float32")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input), with input log-probabilities. log_target: target is log-probabilities as well.

    reduction "batchmean" divides the sum by the first size, which gives the Kullback-Leibler divergence.

    >>> norch.nn.functional.kl_div(norch.tensor([[0.5, 0.5]]).log(), norch.ones(1, 2) / 2, reduction="batchmean")
    tensor(0.)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    if reduction == "mean":
        message = 'kl_div: reduction "mean" divides by the number of elements; "batchmean" gives the divergence'
        warnings.warn(message, stacklevel=stacklevel_of_user())
    target = tensor_of(target, "kl_div")
    if reduction == "batchmean":
        input = tensor_of(input, "kl_div")
    if log_target:
        loss = real_of(target, "kl_div").exp() * (target - input)
    else:
        loss = real_of(target, "kl_div").xlogy(target) - target * real_of(input, "kl_div")
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim else 1)
    return reduced(loss, reduction)


@composed(autocast="float32")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target * input: the negative log-likelihood of a Poisson distribution with log-rate input.

    Without log_input, input is the rate: input - target * log(input + eps). full adds Stirling's approximation of
    log(target!) where target > 1.

    >>> norch.nn.functional.poisson_nll_loss(norch.tensor([0.0]), norch.tensor([3.0]))
    tensor(1.)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    input, target = (real_of(as_operand(x, "poisson_nll_loss"), "poisson_nll_loss") for x in (input, target))
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        n = where(target > 1, target, 1)
        approximation = where(target <= 1, 0.0, n * log(n) - n + 0.5 * log(2 * math.pi * n))
        loss = loss + approximation.to(loss.dtype)
    return reduced(loss, reduction)


@composed
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Operand, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, with var clamped to at least eps; full adds log(2 pi) / 2 (Nix and
    Weigend 1994).

    var: a number, or a tensor of the shape of input, of that shape with one axis of size 1, or of that shape without
    the last axis. ArgumentError for another shape and for negative elements.

    >>> one = norch.tensor([1.0])
    >>> norch.nn.functional.gaussian_nll_loss(one, norch.tensor([3.0]), one)
    tensor(2.)
    """
    input, target = tensor_of(input, "gaussian_nll_loss"), tensor_of(target, "gaussian_nll_loss")
    if not isinstance(var, Tensor):
        dtype = input.dtype if input.is_floating_point() else get_default_dtype()
        var = input.new_full((), as_operand(var, "gaussian_nll_loss").item(), dtype=dtype).expand(input.shape)
    var, shape = as_operand(var, "gaussian_nll_loss"), tuple(input.shape)
    if tuple(var.shape) != shape:
        if tuple(var.shape) == shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.ndim != len(shape) or [n for n, m in zip(var.shape, shape, strict=True) if n != m] != [1]:
            raise ArgumentError(f"var is of incorrect size: {tuple(var.shape)} for an input of shape {shape}")
    lib.norch_check((var < 0).logical_not(), constants["CHECK_VARIANCES"])
    with no_grad():
        below_eps = (eps - var).clamp(min=0)
    var = var + below_eps  # a clamp whose gradient is 1 everywhere
    loss = 0.5 * (log(var) + real_of(sub(input, target), "gaussian_nll_loss").square() / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


# ---- margins --------------------------------------------------------------------------------------------------------


@composed(autocast="float32")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where target is -1.

    >>> norch.nn.functional.hinge_embedding_loss(norch.tensor([0.2, 0.2]), norch.tensor([1, -1]), reduction="none")
    tensor([0.2000, 0.8000])
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    input, target = tensor_of(input, "hinge_embedding_loss"), tensor_of(target, "hinge_embedding_loss")
    dissimilar = where(target == 1, 0.0, (margin - input).clamp(min=0))
    return reduced(dissimilar + where(target == -1, 0.0, input), reduction)


@composed(autocast="float32")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), for targets 1 and -1.

    >>> norch.nn.functional.soft_margin_loss(norch.tensor([0.0]), norch.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    return reduced(-logsigmoid(target * input), reduction)


@composed(autocast="float32")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)): target 1 ranks input1 higher, -1 ranks input2 higher.

    All three have the same number of dimensions: ShapeError otherwise.

    >>> x, y = norch.tensor([1.0]), norch.tensor([3.0])
    >>> norch.nn.functional.margin_ranking_loss(x, y, norch.tensor([1.0]))
    tensor(2.)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    input1, input2, target = (tensor_of(x, "margin_ranking_loss") for x in (input1, input2, target))
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(f"expected the same number of dimensions, got {input1.ndim}, {input2.ndim} and {target.ndim}")
    return reduced((-target * sub(input1, input2) + margin).clamp(min=0), reduction)


@composed(autocast="float32")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where target is -1, with cos the cosine between the inputs.

    input1, input2: (N, D) with target (N), or (D) with target (). ShapeError otherwise.

    >>> x = norch.tensor([[1.0, 0.0]])
    >>> norch.nn.functional.cosine_embedding_loss(x, norch.tensor([[0.0, 1.0]]), norch.tensor([1]))
    tensor(1.)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    input1, input2, target = (tensor_of(x, "cosine_embedding_loss") for x in (input1, input2, target))
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        shapes = f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}"
        raise ShapeError(f"expected (N, D), (N, D) and (N), or (D), (D) and (), got {shapes}")
    squares = (input1.square().sum(-1) + 1e-12) * (input2.square().sum(-1) + 1e-12)
    cosine = (input1 * input2).sum(-1) / squares.sqrt()
    similar, dissimilar = where(target == 1, 1 - cosine, 0.0), where(target == -1, (cosine - margin).clamp(min=0), 0.0)
    return reduced(similar + dissimilar, reduction)


@composed(autocast="float32")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), with d the pairwise_distance() of order p.

    swap: min(d(anchor, negative), d(positive, negative)) replaces d(anchor, negative) (Balntas et al. 2016).
    margin must be positive: ArgumentError otherwise.

    >>> x = norch.tensor([[0.0, 0.0]])
    >>> norch.nn.functional.triplet_margin_loss(x, x, norch.tensor([[3.0, 4.0]]), margin=7.0)
    tensor(2.0000)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


@composed
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
    """triplet_margin_loss() with another distance; pairwise_distance() by default.

    >>> x, y = norch.tensor([[0.0]]), norch.tensor([[2.0]])
    >>> distance = lambda a, b: (a - b).abs().sum(-1)
    >>> norch.nn.functional.triplet_margin_with_distance_loss(x, x, y, distance_function=distance, margin=5.0)
    tensor(3.)
    """
    if margin <= 0:
        raise ArgumentError(f"margin must be positive, got {margin}")
    name = "triplet_margin_with_distance_loss"
    anchor, positive, negative = (tensor_of(x, name) for x in (anchor, positive, negative))
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            f"expected the same number of dimensions, got {anchor.ndim}, {positive.ndim} and {negative.ndim}"
        )
    distance = distance_function or pairwise_distance
    to_negative = distance(anchor, negative)
    if swap:
        to_negative = minimum(to_negative, distance(positive, negative))
    return reduced((margin + distance(anchor, positive) - to_negative).clamp(min=0), reduction)


@composed
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross-entropy of logits (..., C) with targets 0 and 1, times weight (C), averaged over the classes.

    Where target broadcasts, the sum over the last axis of input is divided by the C of input, as in PyTorch.

    >>> norch.nn.functional.multilabel_soft_margin_loss(norch.zeros(1, 2), norch.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    name = "multilabel_soft_margin_loss"
    input, target = tensor_of(input, name), tensor_of(target, name)
    classes = at_least(1, input, name).ndim - 1
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    loss = (loss if weight is None else loss * weight).sum(classes)
    return reduced(loss / input.shape[classes], reduction)


@composed(autocast="float32")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum of max(0, 1 - x[y] + x[i]) / C over the classes y of a sample, and over all classes i that are not among
    them.

    x is input (N, C), (C) or (). target has integers of the same shape: the classes of a sample and then -1; what
    follows a -1 is not read. DTypeError or ShapeError otherwise, IndexError for a class that is out of range.

    >>> target = norch.tensor([[3, 0, -1, 1]])
    >>> norch.nn.functional.multilabel_margin_loss(norch.tensor([[0.1, 0.2, 0.4, 0.8]]), target)
    tensor(0.8500)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    input, target = tensor_of(input, "multilabel_margin_loss"), tensor_of(target, "multilabel_margin_loss")
    if target.dtype.kind not in "iu":
        raise DTypeError(f"expected integer class indices as target, got {target.dtype.name}")
    if input.ndim > 2 or target.shape != input.shape:
        raise ShapeError(f"target of shape {tuple(target.shape)} does not fit input of shape {tuple(input.shape)}")
    input, target = (x.reshape(1) if x.ndim == 0 else x for x in (connect(input), target))
    counts = (target < 0).cumsum(-1) == 0
    index = target.long().where(counts, 0)
    is_target = index.new_zeros(index.shape).scatter_add(-1, index, counts.long()) > 0
    excess = (1 - input.gather(-1, index).unsqueeze(-1) + input.unsqueeze(-2)).relu()
    wanted = counts.unsqueeze(-1) & is_target.logical_not().unsqueeze(-2)
    return reduced(excess.where(wanted, 0.0).sum((-2, -1)) / input.shape[-1], reduction)


@composed(autocast="float32")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over the classes i != y of max(0, margin - x[y] + x[i])^p / C, times weight[y].

    x is input (N, C) or (C), y is target, integers (N) or (), whose shape the losses have; weight: (C); p: 1 or 2.
    ArgumentError, DTypeError or ShapeError otherwise.

    >>> norch.nn.functional.multi_margin_loss(norch.tensor([[0.0, 3.0]]), norch.tensor([0]))
    tensor(2.)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    one_of("p", p, (1, 2))
    input, target = tensor_of(input, "multi_margin_loss"), tensor_of(target, "multi_margin_loss")
    input = input.reshape(1) if input.ndim == 0 else input
    if target.dtype.kind not in "iu":
        raise DTypeError(f"expected integer class indices as target, got {target.dtype.name}")
    if input.ndim not in (1, 2) or tuple(target.shape) not in (tuple(input.shape[:-1]), (1,)[: 2 - input.ndim]):
        raise ShapeError(f"target of shape {tuple(target.shape)} does not fit input of shape {tuple(input.shape)}")
    index = target.reshape(*input.shape[:-1], 1).long()
    input = connect(input)
    excess = (margin - input.gather(-1, index) + input).relu().scatter(-1, index, 0.0)
    loss = (excess if p == 1 else excess.square()).sum(-1) / input.shape[-1]
    if weight is not None:
        loss = loss * weight.index_select(0, index.flatten()).reshape(loss.shape)
    return reduced(loss.reshape(target.shape), reduction)
