"""The functions behind the layers, with PyTorch's names and argument order.

Everything is composed of recorded tensor operations, so gradients, and gradients of gradients, come by themselves.
Dropout, shuffles, one_hot(), normalize() and the losses in most use stand here. The rest is imported: convolution,
pooling, padding, attention and normalisation from norch/ops, the activations from functional_activation.py, the rarer
losses from functional_loss.py and functional_ctc.py, neighbours and pooling by norms from functional_local.py,
interpolation and patches from functional_resample.py, images at places of their own from functional_grid.py, tables
looked up from embedding.py and embedding_bag.py. What PyTorch takes after its deprecated `size_average` and `reduce` is
keyword-only here.
"""

from __future__ import annotations

import warnings
from typing import Any

from .._lib import flag
from .._lib import int64 as int_
from ..autograd import derivatives as d
from ..dtype import bool_, int64
from ..errors import ArgumentError, DTypeError, Error, ShapeError, rename_error
from ..ops._forms import derived
from ..ops._operand import named_function, rename_errors, tensor_of
from ..ops.activation import huber
from ..ops.attention import scaled_dot_product_attention as scaled_dot_product_attention
from ..ops.composed.adaptive_pool import adaptive_avg_pool1d as adaptive_avg_pool1d
from ..ops.composed.adaptive_pool import adaptive_avg_pool2d as adaptive_avg_pool2d
from ..ops.composed.adaptive_pool import adaptive_max_pool1d as adaptive_max_pool1d
from ..ops.composed.adaptive_pool import adaptive_max_pool2d as adaptive_max_pool2d
from ..ops.composed.distance import cosine_similarity as cosine_similarity
from ..ops.composed.distance import pairwise_distance as pairwise_distance
from ..ops.composed.distance import pdist as pdist
from ..ops.composed.pad import pad as pad
from ..ops.composed.products import bilinear as bilinear
from ..ops.conv import conv1d as conv1d
from ..ops.conv import conv2d as conv2d
from ..ops.conv import conv_transpose1d as conv_transpose1d
from ..ops.conv import conv_transpose2d as conv_transpose2d
from ..ops.matmul import linear as linear
from ..ops.nll import Targets, nll
from ..ops.normalization import batch_norm as batch_norm
from ..ops.normalization import group_norm as group_norm
from ..ops.normalization import instance_norm as instance_norm
from ..ops.normalization import layer_norm as layer_norm
from ..ops.normalization import rms_norm as rms_norm
from ..ops.pointwise import log, log1p, sub, where
from ..ops.pool import avg_pool1d as avg_pool1d
from ..ops.pool import avg_pool2d as avg_pool2d
from ..ops.pool import max_pool1d as max_pool1d
from ..ops.pool import max_pool2d as max_pool2d
from ..ops.random import rand_like
from ..ops.view import tied
from ..tensor import Tensor
from . import functional_activation as _activation
from . import functional_loss as _loss
from .embedding import embedding as embedding
from .embedding_bag import embedding_bag as embedding_bag
from .functional_activation import *  # noqa: F403
from .functional_activation import is_true, log_softmax, logsigmoid
from .functional_ctc import ctc_loss as ctc_loss
from .functional_grid import affine_grid as affine_grid
from .functional_grid import grid_sample as grid_sample
from .functional_local import local_response_norm as local_response_norm
from .functional_local import lp_pool1d as lp_pool1d
from .functional_local import lp_pool2d as lp_pool2d
from .functional_loss import *  # noqa: F403
from .functional_loss import a_loss, older, reduced
from .functional_resample import fold as fold
from .functional_resample import interpolate as interpolate
from .functional_resample import unfold as unfold

# ---- dropout, classes ----------------------------------------------------------------------------------------


def _drops(name: str, p: float, training: bool) -> bool:
    """Whether a dropout does anything."""
    if not (isinstance(p, (int, float)) and 0 <= p <= 1):
        raise ArgumentError(f"{name}: dropout probability has to be between 0 and 1, but got {p!r}")
    return flag(training, f"{name}: training") and p > 0


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """While training, each element is zeroed with probability p, the rest scaled by 1 / (1 - p)."""
    tensor_of(input, "dropout")
    if not _drops("dropout", p, training):
        return input
    if p == 1:
        result = input * 0.0
    else:
        result = input * (rand_like(input) >= p) * (1.0 / (1.0 - p))
    return input.copy_(result) if is_true(inplace, "dropout: inplace") else result


def _dropout_channels(name: str, axes: int) -> Any:
    def function(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if tensor_of(input, name).ndim < 2:
            raise ShapeError(f"{name}: expected 2 or more dimensions, got shape {tuple(input.shape)}")
        if not _drops(name, p, training):
            return input
        lead = 1 if axes == 1 and input.ndim == 2 else 2  # (C, L), or (N, C, ...)
        kept = rand_like(input[(..., *(slice(0, 1),) * (input.ndim - lead))]) >= p
        result = input * kept * (1.0 / (1.0 - p) if p < 1 else 0.0)
        return input.copy_(result) if is_true(inplace, f"{name}: inplace") else result

    about = f"dropout() of whole channels of input (N, C, ...): {axes} axes each (Tompson et al. 2015)."
    return named_function(function, name, about)


dropout1d, dropout2d, dropout3d = (_dropout_channels(f"dropout{axes}d", axes) for axes in (1, 2, 3))


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """dropout() that keeps mean 0 and variance 1 of what selu() gives (Klambauer et al. 2017)."""
    tensor_of(input, "alpha_dropout")
    if not _drops("alpha_dropout", p, training):
        return input
    least = -1.7580993408473766  # what selu() comes to far to the left
    scale = ((1 - p) * (1 + p * least * least)) ** -0.5 if p < 1 else 0.0
    result = where(rand_like(input) >= p, input * scale, least * scale) - p * least * scale
    return input.copy_(result) if is_true(inplace, "alpha_dropout: inplace") else result


@rename_errors
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C r^2, H, W) as (..., C, H r, W r): channels become blocks of pixels (Shi et al. 2016).

    >>> norch.nn.functional.pixel_shuffle(norch.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    shape, r = tuple(tensor_of(input, "pixel_shuffle").shape), upscale_factor
    if len(shape) < 3 or r < 1 or shape[-3] % (r * r):
        raise ShapeError(f"pixel_shuffle: shape {shape} and factor {r}; the channels must be a multiple of its square")
    *lead, c, h, w = shape
    n = len(lead)
    parts = input.reshape(*lead, c // (r * r), r, r, h, w)
    return parts.permute(*range(n + 1), n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // (r * r), h * r, w * r)


@rename_errors
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H r, W r) as (..., C r^2, H, W): undoes pixel_shuffle()."""
    shape, r = tuple(tensor_of(input, "pixel_unshuffle").shape), downscale_factor
    if len(shape) < 3 or r < 1 or shape[-1] % r or shape[-2] % r:
        raise ShapeError(f"pixel_unshuffle: shape {shape} and factor {r}; height and width must be multiples of it")
    *lead, c, h, w = shape
    n = len(lead)
    parts = input.reshape(*lead, c, h // r, r, w // r, r)
    return parts.permute(*range(n + 1), n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r * r, h // r, w // r)


@rename_errors
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, ...) whose channels, in so many groups, are dealt out in turns (Zhang et al. 2018)."""
    shape = tuple(tensor_of(input, "channel_shuffle").shape)
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise ShapeError(f"channel_shuffle: the channels of shape {shape} do not fall into {groups} groups")
    return input.unflatten(1, (groups, -1)).transpose(1, 2).reshape(shape)


@rename_errors
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Integers (...) to int64 (..., num_classes): 1 at the class, 0 elsewhere; -1 counts the classes.

    >>> norch.nn.functional.one_hot(norch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    num_classes = int_(num_classes, "one_hot: num_classes")
    if tensor_of(tensor, "one_hot").dtype.kind not in "iu":
        raise DTypeError(f"one_hot: expected integer classes, got {tensor.dtype.name}")
    if num_classes == -1:
        num_classes = int(tensor.amax().item()) + 1 if tensor.numel() else 0
    if tensor.numel() and (int(tensor.amin().item()) < 0 or int(tensor.amax().item()) >= num_classes):
        raise ArgumentError(f"one_hot: class values must lie in 0 ... {num_classes - 1}")
    zeros = tensor.new_zeros((*tensor.shape, num_classes), dtype=int64)
    return zeros.scatter_(-1, tensor.to(int64).unsqueeze(-1), 1) if tensor.numel() else zeros


# ---- losses -----------------------------------------------------------------------------------------------


def _difference(name: str, input: Tensor, target: Tensor) -> Tensor:
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
            stacklevel=3,
        )
    return difference


def mse_loss(
    input: Tensor,
    target: Tensor,
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of (input - target)^2; sizes that differ but broadcast give a warning.

    >>> norch.nn.functional.mse_loss(norch.zeros(2), norch.tensor([1.0, 3.0]))
    tensor(5.)
    """
    difference = _difference("mse_loss", input, target)
    reduction = older(reduction, size_average, reduce)
    if reduction == "mean" and difference.is_floating_point():
        return difference._mean_square()
    try:
        return reduced(difference.square(), reduction)
    except Error as error:
        rename_error(error, "mse_loss")
        raise


@a_loss
def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The mean of |input - target|."""
    return reduced(_difference("l1_loss", input, target).abs(), reduction)


@a_loss
def smooth_l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The mean of d^2 / (2 beta) where |d| = |input - target| is below beta, and of |d| - beta / 2 elsewhere.

    >>> norch.nn.functional.smooth_l1_loss(norch.zeros(2), norch.tensor([1.0, 3.0]), reduction="none")
    tensor([0.5000, 2.5000])
    """
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    difference = _difference("smooth_l1_loss", input, target)
    if beta == 0:
        return reduced(difference.abs(), reduction)
    loss = reduced(huber(difference, beta), reduction)
    return loss if beta == 1 else loss / beta


@rename_errors
def huber_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """delta times smooth_l1_loss with beta=delta (Huber 1964); weight, a factor of each element, broadcasts."""
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta must be positive, got {delta}")
    difference = _difference("huber_loss", input, target)
    loss = huber(difference, delta)
    return reduced(loss if weight is None else loss * weight, reduction)


@a_loss
def kl_div(input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log(target) - input), where input holds log-probabilities; with log_target, target does too.

    reduction "batchmean" divides the sum by the first size: that is the divergence of Kullback and Leibler.
    """
    if log_target:
        loss = tensor_of(target, "kl_div").exp() * (target - input)
    else:
        loss = tensor_of(target, "kl_div").xlogy(target) - target * input
    if reduction == "batchmean":
        return loss.sum() / max(input.shape[0] if input.ndim else 1, 1)
    return reduced(loss, reduction)


class _Classes:
    """Class indices (N, ...) or () beside an input (N, C, ...) or (C): where they point, and what they weigh, with the
    axis of the classes, `dim`, at size 1."""

    __slots__ = ("at", "dim", "weight")

    def __init__(
        self, name: str, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
    ) -> None:
        shape, wanted, kind = tuple(input.shape), tuple(target.shape), target.dtype  # slices of Size cost more
        if not shape:
            raise ShapeError(f"{name}: expected an input of 1 or more dimensions, got a 0-d tensor")
        self.dim = dim = min(len(shape) - 1, 1)
        if wanted != shape[:dim] + shape[dim + 1 :]:
            raise ShapeError(f"{name}: target of shape {wanted} does not fit input of shape {shape}")
        if kind.is_floating_point or kind is bool_:
            raise DTypeError(f"{name}: expected integer class indices as target, got {kind}")
        if reduction not in ("mean", "sum", "none"):
            reduced(input, reduction)  # says so
        ignored = int_(ignore_index, f"{name}: ignore_index")
        self.at = Targets(target if kind is int64 else target.to(int64), dim, ignored, reduction)
        self.weight = None
        if weight is not None:
            if tuple(tensor_of(weight, name).shape) != shape[dim : dim + 1]:
                raise ShapeError(f"{name}: weight of shape {tuple(weight.shape)} for {shape[dim]} classes")
            self.weight = self.pick(weight.reshape(-1, *(1,) * (len(shape) - dim - 1)).expand(shape))

    def pick(self, input: Tensor) -> Tensor:
        """The entries of input at the classes."""
        return input.gather(self.dim, self.at.index)

    def loss(self, log_probabilities: Tensor) -> Tensor:
        if self.weight is None:
            return nll(log_probabilities, self.at)
        return self.total(-self.pick(log_probabilities))

    def total(self, loss: Tensor, weighted: bool = False) -> Tensor:
        """A loss per sample, masked, weighted (unless it is already) and reduced."""
        valid, reduction = self.at.valid, self.at.reduction
        if self.weight is not None and not weighted:
            loss = loss * self.weight
        loss = where(valid, loss, 0.0)
        if reduction == "none":
            return loss.squeeze(self.dim)
        if reduction == "sum":
            return loss.sum()
        return loss.sum() / (self.at.count if self.weight is None else where(valid, self.weight, 0.0).sum())


@a_loss
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """-input at the target class, where input holds log-probabilities (N, C, ...) or (C).

    target: class indices (N, ...) or (); weight: (C). The mean divides by the weights of the samples, and
    samples whose target is ignore_index count nowhere. A class out of range raises an IndexError.
    """
    input, target = tied(tensor_of(input, "nll_loss")), tensor_of(target, "nll_loss")
    return _Classes("nll_loss", input, target, weight, ignore_index, reduction).loss(input)


@a_loss
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross-entropy between logits (N, C, ...) or (C) and the target, stable at logits of any size.

    target: class indices (N, ...) or (), or probabilities of the input's shape; weight: (C).
    With indices the mean divides by the weights of the samples not ignored, else by the number of samples.

    >>> norch.nn.functional.cross_entropy(norch.tensor([[1e4, 0.0]]), norch.tensor([1]))
    tensor(10000.)
    """
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"label_smoothing must be between 0.0 and 1.0, got {label_smoothing}")
    input, target = tensor_of(input, "cross_entropy"), tensor_of(target, "cross_entropy")
    if target.is_floating_point() and input.ndim > 0:
        if ignore_index >= 0:
            raise ArgumentError(f"cross_entropy: ignore_index {ignore_index} has no meaning beside probabilities")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    classes = _Classes("cross_entropy", input, target, weight, ignore_index, reduction)
    dim = classes.dim
    likelihood = log_softmax(input, dim)
    hard = classes.loss(likelihood)
    if label_smoothing == 0:
        return hard
    surprise = -likelihood
    if weight is not None:
        surprise = surprise * _along(weight, dim, input.ndim)
    soft = classes.total(surprise.sum(dim, keepdim=True), weighted=True)
    return hard * (1.0 - label_smoothing) + soft * (label_smoothing / input.shape[dim])


def _along(weight: Tensor, dim: int, ndim: int) -> Tensor:
    return weight.reshape(*(-1 if axis == dim else 1 for axis in range(ndim)))


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    shape = tuple(input.shape)
    if tuple(target.shape) != shape:
        raise ShapeError(
            f"cross_entropy: probabilities of shape {tuple(target.shape)} do not fit input of shape {shape}"
        )
    dim = 0 if len(shape) == 1 else 1
    if label_smoothing > 0:
        target = target * (1.0 - label_smoothing) + label_smoothing / shape[dim]
    loss = -log_softmax(input, dim) * target
    if weight is not None:
        loss = loss * _along(weight, dim, len(shape))
    return reduced(loss.sum(dim), reduction)


@a_loss
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """-(target * log(sigmoid(input)) + (1 - target) * log(1 - sigmoid(input))), without overflow.

    input, target: the same shape; weight and pos_weight (the factor of the positive term) broadcast to it.
    """
    name = "binary_cross_entropy_with_logits"
    if tuple(tensor_of(input, name).shape) != tuple(tensor_of(target, name).shape):
        raise ShapeError(f"{name}: target size {tuple(target.shape)} must be that of input, {tuple(input.shape)}")
    if pos_weight is None:
        loss = derived(d.LogitLoss, lambda x, t: (1 - t) * x - logsigmoid(x), input, target)
    else:
        loss = (1 - target) * input - logsigmoid(input) * ((pos_weight - 1) * target + 1)
    return reduced(loss if weight is None else loss * weight, reduction)


@a_loss
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)) for probabilities; each log is at least -100.
    binary_cross_entropy_with_logits takes what comes before a sigmoid, and is the safer one.

    input, target: the same shape; weight broadcasts to it. ArgumentError for inputs beyond 0 ... 1.
    """
    name = "binary_cross_entropy"
    if tuple(tensor_of(input, name).shape) != tuple(tensor_of(target, name).shape):
        raise ShapeError(f"{name}: target size {tuple(target.shape)} must be that of input, {tuple(input.shape)}")
    if not bool(((input >= 0) & (input <= 1)).all()):
        raise ArgumentError(f"{name}: all elements of input must lie between 0 and 1")
    loss = derived(
        d.ProbabilityLoss,
        lambda x, t: (t - 1) * log1p(-x).clamp(min=-100.0) - t * log(x).clamp(min=-100.0),
        input,
        target,
    )
    return reduced(loss if weight is None else loss * weight, reduction)


@rename_errors
def normalize(input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12) -> Tensor:
    """input divided by its p-norm along dim, or by eps where that is larger.

    >>> norch.nn.functional.normalize(norch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return tensor_of(input, "normalize") / input.norm(p, dim, keepdim=True).clamp(min=eps)


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "fold",
    "grid_sample",
    "group_norm",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "linear",
    "local_response_norm",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool1d",
    "max_pool2d",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "rms_norm",
    "scaled_dot_product_attention",
    "smooth_l1_loss",
    "unfold",
]
__all__ += _activation.__all__
__all__ += _loss.__all__


def __dir__() -> list[str]:
    """The functions, without what this file works with."""
    return __all__


def __getattr__(name: str) -> Any:
    if name.endswith("_") and name[0] != "_" and hasattr(Tensor, name):
        return getattr(Tensor, name)
    from .. import _left_out

    raise _left_out.missing(__name__, name)
