"""ctc_loss(): connectionist temporal classification (Graves et al., "Connectionist Temporal
Classification", 2006), by forward and backward variables in logarithms: a step of the recursion is a few operations on
the states of all sequences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...autograd.derivative import derivative
from ...autograd.grad_mode import mode, no_grad
from ...autograd.record import is_recorded, record
from ...dtype import float32, float64, int64
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ops._entry import composed
from ...ops._operand import tensor_of
from ...ops.composed.pad import pad
from ...ops.copy import cat, stack
from ...ops.create import arange
from ...ops.pointwise import where
from ...ops.transcendental import logaddexp
from ...ops.values import as_tensor
from ...tensor import Tensor
from ..functional._loss import reduced

_LOG_ZERO = -1e30  # in place of -inf: its sums and differences are finite


@composed(autocast="float32 -")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of the targets: the sum over all alignments, in which each label takes one step or more,
    with blanks between labels, and at least one blank between equal labels (Graves et al. 2006, section 4.1, equations
    6 to 8).

    log_probs is (T, N, C), the result of log_softmax(), or (T, C) without a batch. targets are classes other than
    blank, (N, S), or concatenated (sum of target_lengths). input_lengths and target_lengths are N integers. Before the
    reduction the loss is (N), or () without a batch; "mean" first divides each loss by the length of its target.
    Targets longer than their input have the loss inf, or 0 with zero_infinity.

    The gradient is the derivative of this formula by log_probs. PyTorch returns the gradient of the logits before
    log_softmax(); for such logits both give the same gradient.

    >>> even = norch.full((2, 1, 2), 0.5).log()
    >>> norch.nn.functional.ctc_loss(even, norch.tensor([[1]]), [2], [1]).exp()  # alignments: 1 1, 1 _, _ 1
    tensor(1.3333)
    """
    name, x = "ctc_loss", tensor_of(log_probs, "ctc_loss")
    unbatched = x.ndim == 2
    x = x.unsqueeze(1) if unbatched else x
    if x.ndim != 3:
        raise ShapeError(f"{name}: expected log_probs (T, N, C) or (T, C), got shape {tuple(log_probs.shape)}")
    steps, n, classes = x.shape
    dtype = x.dtype
    x = x if dtype in (float32, float64) else x.float()
    if not hasattr(blank, "__index__"):
        raise TypeError(f"{name}: blank is an integer, not {type(blank).__name__}")
    if not 0 <= blank < classes:
        raise ArgumentError(f"{name}: blank {blank} is not one of the {classes} classes")
    times, sizes = map(_numbers, (input_lengths, target_lengths))
    if len(times) != n or len(sizes) != n:
        raise ShapeError(f"{name}: {len(times)} input_lengths and {len(sizes)} target_lengths for a batch of {n}")
    if n and not (0 <= min(times) and max(times) <= steps and 0 <= min(sizes)):
        raise ArgumentError(f"{name}: input_lengths lie in 0 ... {steps}, not {times}; target_lengths are {sizes}")
    longest = max(sizes, default=0)
    labels = _labels(tensor_of(targets, name), sizes, longest, unbatched).to(x.device)
    # The 2 S + 1 states of the path: a blank around each label.
    path = labels.new_full((2 * longest + 1, n), blank)
    path[1::2] = labels.mT
    emit = x.mT.gather(1, path.expand(steps, -1, -1)).clamp(min=_LOG_ZERO)
    loss = _losses(emit, path, blank, times, sizes)
    loss = where(loss > -_LOG_ZERO / 2, 0.0 if zero_infinity else math.inf, loss).to(dtype)
    if reduction == "mean":
        return (loss / as_tensor([max(size, 1) for size in sizes], dtype=int64, device=x.device)).mean()
    return reduced(loss.squeeze(0) if unbatched else loss, reduction)


def _losses(emit: Tensor, path: Tensor, blank: int, times: list[int], sizes: list[int]) -> Tensor:
    """The losses (N) of the log-probabilities emit (T, L, N) of the L states of path (L, N). The recursion is not
    recorded; its gradient is computed at the same time.
    """
    if not emit.numel() or not is_recorded((emit,)):
        return _loss_at_end(_forward_variables(emit, path, blank), times, sizes)
    with no_grad():
        loss, posteriors = _losses_and_posteriors(emit, path, blank, times, sizes)
    return record(_CTC, loss, (emit,), (posteriors, path, blank, times, sizes))


def _gradient(
    g: Tensor, emit: Tensor, posteriors: Tensor, path: Tensor, blank: int, times: list[int], sizes: list[int]
) -> Tensor:
    if mode.enabled:  # of recorded operations, for derivatives of the gradient
        posteriors = _losses_and_posteriors(emit, path, blank, times, sizes)[1]
    return posteriors * -g


_CTC = derivative("ctc_loss", ("emit",), tensors=("posteriors", "path"), grad=_gradient)


def _forward_variables(emit: Tensor, path: Tensor, blank: int) -> list[Tensor]:
    """The logarithms of the forward variables (equations 5 to 7) before the first step and after each: (L + 2, N), with
    two states of probability 0 before the path. States are rows, which the steps shift without a copy.
    """
    nowhere = emit.new_full((2, emit.shape[2]), _LOG_ZERO)
    # Skipping the blank between two labels is allowed if they differ.
    skips = where((path[2:] != blank) & (path[2:] != path[:-2]), 0.0, nowhere[0])
    skip_cost = cat([nowhere, skips])[: path.shape[0]]
    start = emit.new_full((2 + path.shape[0], emit.shape[2]), _LOG_ZERO)
    start[2] = 0.0  # the state before the first step: the first blank
    variables = [start]
    for step in emit.unbind(0):
        alpha = variables[-1]
        reached = logaddexp(logaddexp(alpha[2:], alpha[1:-1]), alpha[:-2] + skip_cost)
        variables.append(cat([nowhere, reached + step]))
    return variables


def _loss_at_end(variables: Sequence[Tensor] | Tensor, times: list[int], sizes: list[int]) -> Tensor:
    """-log of the sum of the last two states of each target after its last step (equation 8)."""
    rows, columns = variables[0].shape
    chosen = sorted(set(times))
    place = {time: i * rows for i, time in enumerate(chosen)}
    last = [(place[time] + 2 * size + 2) * columns + i for i, (time, size) in enumerate(zip(times, sizes))]
    index = as_tensor([last, [i - columns for i in last]], dtype=int64, device=variables[0].device)
    ends = stack([variables[time] for time in chosen or [0]]).take(index)
    return -logaddexp(ends[0], ends[1])


def _losses_and_posteriors(
    emit: Tensor, path: Tensor, blank: int, times: list[int], sizes: list[int]
) -> tuple[Tensor, Tensor]:
    """The losses, and the probability of each state at each step given the target: the product of its forward and
    backward variables over the probability of the target, as in equations 14 to 16. The backward variables are the
    forward variables of the sequence and the path read from their ends, and computed in the same loop.
    """
    steps, states, n = emit.shape
    limits, ends = as_tensor([times, sizes], dtype=int64, device=emit.device).unbind(0)
    time = limits - 1 - arange(steps, device=emit.device)[:, None, None]
    state = 2 * ends - arange(states, device=emit.device)[:, None]
    inside = (time >= 0) & (state >= 0)
    column = state.clamp(min=0) * n + arange(n, device=emit.device)
    mirror = time.clamp(min=0) * (states * n) + column
    both = cat([emit, emit.take(mirror)], 2), cat([path, path.take(column)], 1)
    variables = stack(_forward_variables(*both, blank))
    loss = _loss_at_end(variables, times, sizes)
    alpha, beta = variables[1:, 2:, :n], variables[1:, 2:, n:].take(mirror)
    # Both have the emission of the step. The sum over the states is the probability of the target at each step:
    # softmax() divides by it, and by the rounding errors that the states have in common.
    posteriors = where(inside, alpha + beta - emit, _LOG_ZERO).softmax(1)
    return loss, where(inside & (loss < -_LOG_ZERO / 2), posteriors, 0.0)


def _numbers(lengths: Tensor | Sequence[int]) -> list[int]:
    """Lengths as a list; those in a tensor are read."""
    if isinstance(lengths, (list, tuple)) and all(type(n) is int for n in lengths):
        return list(lengths)
    read = as_tensor(lengths)
    if read.numel() and read.dtype.kind not in "iu":
        raise DTypeError(f"ctc_loss: lengths are integers, not {read.dtype.name}")
    return read.to(int64).reshape(-1).tolist()


def _labels(targets: Tensor, sizes: list[int], longest: int, unbatched: bool) -> Tensor:
    """The targets as (N, longest), with 0 after the end of each."""
    if targets.ndim == 1 and not unbatched:
        if targets.shape[0] != sum(sizes):
            raise ShapeError(f"ctc_loss: {targets.shape[0]} targets for target_lengths {sizes}")
        if not sizes or min(sizes) == longest:
            return targets.reshape(len(sizes), longest)
        return stack([pad(part, (0, longest - part.shape[0])) for part in targets.split(sizes)])
    rows = targets.unsqueeze(0) if unbatched and targets.ndim == 1 else targets
    if rows.ndim != 2 or rows.shape[0] != len(sizes) or rows.shape[1] < longest:
        raise ShapeError(f"ctc_loss: targets of shape {tuple(targets.shape)} for target_lengths {sizes}")
    if not sizes or min(sizes) == longest:
        return rows[:, :longest]
    ends = as_tensor(sizes, dtype=int64, device=rows.device).unsqueeze(1)
    return where(arange(longest, device=rows.device) < ends, rows[:, :longest], 0)
