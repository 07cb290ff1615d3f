"""Connectionist temporal classification (Graves et al. 2006), in recorded operations on logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..dtype import float32, float64, int64
from ..errors import ArgumentError, ShapeError
from ..ops._operand import rename_errors, tensor_of
from ..ops.composed.pad import pad
from ..ops.copy import stack
from ..ops.create import arange
from ..ops.pointwise import logaddexp, where
from ..ops.values import as_tensor
from ..tensor import Tensor
from .functional_loss import reduced

_NEVER = -1e30  # stands for log(0): sums and differences of it are numbers, where those of infinities are not


@rename_errors
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of all ways to say targets in time: each label for one step or more, with blanks between
    any, and between equal ones at least one (Graves et al. 2006, section 4.1, equations 6 to 8).

    log_probs: (T, N, C), as log_softmax() gives them, or (T, C) without a batch. targets: classes other than blank,
    (N, S), or all after another (sum of target_lengths). input_lengths and target_lengths: N integers, how much of each
    counts. The result is (N), or () without a batch, before the reduction; "mean" divides each loss by the length of
    its target first. Targets that do not fit into the time cost inf, or nothing with zero_infinity.

    The gradient is that of this function of log_probs. PyTorch hands back that of logits behind a log_softmax(), in
    front of which both come to the same.

    >>> even = norch.full((2, 1, 2), 0.5).log()
    >>> norch.nn.functional.ctc_loss(even, norch.tensor([[1]]), [2], [1]).exp()  # 1 1, 1 _, _ 1, out of four
    tensor(1.3333)
    """
    name, x = "ctc_loss", tensor_of(log_probs, "ctc_loss")
    alone = x.ndim == 2
    x = x.unsqueeze(1) if alone else x
    if x.ndim != 3:
        raise ShapeError(f"{name}: expected log_probs (T, N, C) or (T, C), got shape {tuple(log_probs.shape)}")
    steps, n, classes = x.shape
    kept = x.dtype
    x = x if kept in (float32, float64) else x.float()
    if not hasattr(blank, "__index__"):
        raise TypeError(f"{name}: blank is an integer, not {type(blank).__name__}")
    if not 0 <= blank < classes:
        raise ArgumentError(f"{name}: blank {blank} is none of {classes} classes")
    times, sizes = (as_tensor(lengths, dtype=int64).reshape(-1).tolist() for lengths in (input_lengths, target_lengths))
    if len(times) != n or len(sizes) != n:
        raise ShapeError(f"{name}: {len(times)} input_lengths and {len(sizes)} target_lengths for a batch of {n}")
    if n and not (0 <= min(times) and max(times) <= steps and 0 <= min(sizes)):
        raise ArgumentError(f"{name}: input_lengths lie in 0 ... {steps}, not {times}; target_lengths are {sizes}")
    longest = max(sizes, default=0)
    labels = _labels(tensor_of(targets, name), sizes, longest, alone).to(x.device)
    # Blanks around each label: the path goes through 2 S + 1 places.
    path = labels.new_full((n, 2 * longest + 1), blank)
    path[:, 1::2] = labels
    emit = x.gather(2, path.expand(steps, -1, -1)).clamp(min=_NEVER).unbind(0)
    # From the place before the last one comes only to a label that differs from the last.
    skips = pad((path[:, 2:] != blank) & (path[:, 2:] != path[:, :-2]), (2, 0)) if longest else path < 0
    unless_skips = where(skips, 0.0, x.new_full((), _NEVER))
    ends, limits = (as_tensor(lengths, dtype=int64, device=x.device) for lengths in (sizes, times))
    # Before the first step one stands at the first blank, from where the first label is one place on.
    alpha = pad(x.new_zeros(n, 1), (0, 2 * longest), value=_NEVER)
    for t in range(steps if n else 0):
        before = pad(alpha, (2, 0), value=_NEVER)
        new = stack([alpha, before[:, 1:-1], before[:, :-2] + unless_skips]).logsumexp(0) + emit[t]
        alpha = new if t < min(times) else where((limits > t).unsqueeze(1), new, alpha)
    last = alpha.gather(1, (2 * ends).unsqueeze(1)).squeeze(1)
    label = alpha.gather(1, (2 * ends - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    loss = -logaddexp(last, where(ends > 0, label, _NEVER))
    loss = where(loss > -_NEVER / 2, 0.0 if zero_infinity else math.inf, loss).to(kept)
    if reduction == "mean":
        return (loss / ends.clamp(min=1)).mean()
    return reduced(loss.squeeze(0) if alone else loss, reduction)


def _labels(targets: Tensor, sizes: list[int], longest: int, alone: bool) -> Tensor:
    """The targets as (N, longest), with 0 behind the end of each, whatever stands there."""
    if targets.ndim == 1 and not alone:
        if targets.shape[0] != sum(sizes):
            raise ShapeError(f"ctc_loss: {targets.shape[0]} targets for target_lengths {sizes}")
        parts = targets.split(sizes)
        return stack([pad(part, (0, longest - part.shape[0])) for part in parts]) if sizes else targets.reshape(0, 0)
    rows = targets.unsqueeze(0) if alone and targets.ndim == 1 else targets
    if rows.ndim != 2 or rows.shape[0] != len(sizes) or rows.shape[1] < longest:
        raise ShapeError(f"ctc_loss: targets of shape {tuple(targets.shape)} for target_lengths {sizes}")
    ends = as_tensor(sizes, dtype=int64, device=rows.device).unsqueeze(1)
    return where(arange(longest, device=rows.device) < ends, rows[:, :longest], 0)
