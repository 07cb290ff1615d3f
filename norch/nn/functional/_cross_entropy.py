"""Cross-entropies: of log-probabilities or logits with classes or probabilities, and binary ones."""

from __future__ import annotations

from ..._binding.library import constants, lib
from ..._binding.numbers import int64 as int_
from ..._package.typing import Any
from ...autograd.grad_mode import mode
from ...dtype import bool_, check_numbers, int64
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ops._entry import composed
from ...ops._operand import tensor_of
from ...ops.cross_entropy import cross_entropy as _of_rows
from ...ops.loss import logit_cross_entropy, probability_cross_entropy
from ...ops.nll import Targets, nll
from ...ops.pointwise import where
from ...tensor import Tensor
from ._activation import log_softmax, logsigmoid
from ._loss import legacy_reduction, reduced

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "nll_loss"]


def _targets(
    name: str, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Targets:
    """Class indices (N, ...) or () for an input (N, C, ...) or (C), checked, with the weight of each class."""
    shape, target_shape, dtype = lib.norch_shape(input), lib.norch_shape(target), target.dtype
    if not shape:
        raise ShapeError(f"{name}: expected an input of 1 or more dimensions, got a 0-d tensor")
    dim = min(len(shape) - 1, 1)
    if target_shape != (wanted := shape[:dim] + shape[dim + 1 :]):
        hint = ""
        if target_shape[dim : dim + 1] == (1,) and target_shape[:dim] + target_shape[dim + 1 :] == wanted:
            hint = f"; target.squeeze({dim}) has the shape of class indices"
        raise ShapeError(f"{name}: target of shape {target_shape} does not fit input of shape {shape}{hint}")
    if dtype.is_floating_point or dtype is bool_:
        raise DTypeError(f"{name}: expected integer class indices as target, got {dtype}; target.long() casts them")
    if reduction not in ("mean", "sum", "none"):
        reduced(input, reduction)  # raises the error
    is_small = type(ignore_index) is int and abs(ignore_index) < 1 << 62
    ignored = ignore_index if is_small else int_(ignore_index, f"{name}: ignore_index")
    if weight is not None and tuple(tensor_of(weight, name).shape) != shape[dim : dim + 1]:
        raise ShapeError(f"{name}: weight of shape {tuple(weight.shape)} for {shape[dim]} classes")
    if weight is not None and weight._dtype != input._dtype:
        raise DTypeError(f"{name}: weight is {weight.dtype.name} but input is {input.dtype.name}")
    return Targets(target if dtype is int64 else target.to(int64), ignored, weight, reduction)


def _log_likelihood(log_probabilities: Tensor, targets: Targets) -> tuple[Tensor, Any]:
    """The negative log-likelihood of the targets, reduced, and the divisor of a mean."""
    weight, reduction = targets.weight, targets.reduction
    if weight is None or not (mode.enabled and weight.requires_grad):
        return nll(log_probabilities, targets)
    each = Targets(targets.target, targets.ignored, None, "none")
    of_targets = nll(-_along(weight, log_probabilities.ndim).expand(log_probabilities.shape), each)[0]
    losses, count = nll(log_probabilities, each)[0] * of_targets, of_targets.sum()
    return (losses.sum() / count if reduction == "mean" else reduced(losses, reduction)), count


@composed(autocast="float32")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-weight[target] * input[target], with input log-probabilities (N, C, ...) or (C).

    target: class indices (N, ...) or (); weight: (C). Samples with target ignore_index contribute 0. "mean" divides by
    the sum of the weights of the other samples. A class out of range raises IndexError.

    >>> norch.nn.functional.nll_loss(norch.tensor([[-0.5, -1.0], [-2.0, -0.25]]), norch.tensor([0, 1]))
    tensor(0.3750)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    input, target = tensor_of(input, "nll_loss"), tensor_of(target, "nll_loss")
    return _log_likelihood(input, _targets("nll_loss", input, target, weight, ignore_index, reduction))[0]


@composed(autocast="float32")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """nll_loss() of log_softmax(input), with input logits (N, C, ...) or (C) of any size.

    target: class indices (N, ...) or (), or probabilities of the shape of input; weight: (C). For indices "mean"
    divides by the sum of the weights, as in nll_loss(), for probabilities by the number of samples. label_smoothing
    mixes the target with the uniform distribution (Szegedy et al. 2016, section 7).

    >>> norch.nn.functional.cross_entropy(norch.tensor([[1e4, 0.0]]), norch.tensor([1]))
    tensor(10000.)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    if type(label_smoothing) is not float:
        check_numbers("cross_entropy", label_smoothing=label_smoothing)
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"label_smoothing must be between 0.0 and 1.0, got {label_smoothing}")
    input, target = tensor_of(input, "cross_entropy"), tensor_of(target, "cross_entropy")
    if target.dtype.is_floating_point and input.ndim > 0:
        if ignore_index >= 0:
            raise ArgumentError(f"cross_entropy: ignore_index {ignore_index} cannot be used with probabilities")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    targets = _targets("cross_entropy", input, target, weight, ignore_index, reduction)
    ndim = input.ndim
    if weight is None and ndim <= 2 and input.dtype.is_floating_point:
        return _of_rows(input, targets.target, targets.ignored, reduction, label_smoothing)
    dim = min(ndim - 1, 1)
    log_probabilities = log_softmax(input, dim)
    hard, count = _log_likelihood(log_probabilities, targets)
    if label_smoothing == 0:
        return hard
    losses = -log_probabilities
    if weight is not None:
        losses = losses * _along(weight, ndim)
    soft = where(targets.target == targets.ignored, 0.0, losses.sum(dim))
    soft = soft if reduction == "none" else soft.sum()
    if reduction == "mean":
        soft = soft / count
    return hard * (1.0 - label_smoothing) + soft * (label_smoothing / (input.shape[dim] or 1))


def _along(weight: Tensor, ndim: int) -> Tensor:
    """weight (C) as (C, ...), of one dimension less than ndim, but at least one."""
    return weight.reshape(-1, *(1,) * (ndim - 2))


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    """cross_entropy() with probabilities as target."""
    shape = lib.norch_shape(input)
    if lib.norch_shape(target) != shape:
        raise ShapeError(
            f"cross_entropy: probabilities of shape {tuple(target.shape)} do not fit input of shape {shape}; "
            "if they are class indices, cast them: target.long()"
        )
    dim = 0 if len(shape) == 1 else 1
    if label_smoothing > 0:
        target = target * (1.0 - label_smoothing) + label_smoothing / (shape[dim] or 1)
    loss = -log_softmax(input, dim) * target
    if weight is not None:
        loss = loss * _along(weight, len(shape))
    return reduced(loss.sum(dim), reduction)


def _of_one_shape(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both tensors. ShapeError unless they have the same shape."""
    input, target = tensor_of(input, name), tensor_of(target, name)
    if lib.norch_shape(input) != lib.norch_shape(target):
        raise ShapeError(f"{name}: target size {tuple(target.shape)} must be that of input, {tuple(input.shape)}")
    return input, target


@composed(autocast="float32")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """-(target * log(sigmoid(input)) + (1 - target) * log(1 - sigmoid(input))), without overflow.

    input, target: the same shape, ShapeError otherwise. weight and pos_weight, the factor of the positive term,
    broadcast to it.

    >>> norch.nn.functional.binary_cross_entropy_with_logits(norch.tensor([0.0, 100.0]), norch.ones(2))
    tensor(0.3466)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    input, target = _of_one_shape("binary_cross_entropy_with_logits", input, target)
    if pos_weight is None:
        loss = logit_cross_entropy(input, target)
    else:
        loss = (1 - target) * input - logsigmoid(input) * ((pos_weight - 1) * target + 1)
    return reduced(loss if weight is None else loss * weight, reduction)


@composed(autocast="float32 refused")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)) for probabilities, with each log clamped to at least -100.
    binary_cross_entropy_with_logits() is more accurate: it takes the argument of the sigmoid.

    input, target: the same shape, ShapeError otherwise; weight broadcasts to it. ArgumentError for an input or a target
    outside [0, 1].

    >>> norch.nn.functional.binary_cross_entropy(norch.tensor([0.5, 0.5]), norch.tensor([1.0, 0.0]))
    tensor(0.6931)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    input, target = _of_one_shape("binary_cross_entropy", input, target)
    both = (input >= 0) & (input <= 1) & (target >= 0) & (target <= 1)
    lib.norch_check(both, constants["CHECK_PROBABILITIES"])
    loss = probability_cross_entropy(input, target)
    return reduced(loss if weight is None else loss * weight, reduction)
