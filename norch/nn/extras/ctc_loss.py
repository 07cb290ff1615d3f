"""ctc_loss(): connectionist temporal classification (Graves et al., "Connectionist Temporal
Classification", 2006), in recorded operations on log-probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...dtype import float32, float64, int64
from ...errors import ArgumentError, ShapeError
from ...ops._halves import composed
from ...ops._operand import tensor_of
from ...ops.composed.pad import pad
from ...ops.copy import stack
from ...ops.create import arange
from ...ops.pointwise import logaddexp, where
from ...ops.values import as_tensor
from ...tensor import Tensor
from ..functional._loss import reduced

_LOG_ZERO = -1e30  # in place of -inf: its sums and differences are finite


@composed
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
    with blanks between labels, and at least one between equal labels (section 4.1, equations 6 to 8).

    log_probs: (T, N, C), the result of log_softmax(), or (T, C) without a batch. targets: classes other than blank,
    (N, S), or concatenated (sum of target_lengths). input_lengths and target_lengths: N integers. The loss is (N), or
    () without a batch, before the reduction; "mean" divides each loss by the length of its target first. Targets longer
    than their input have the loss inf, or 0 with zero_infinity.

    The gradient is that of this formula in log_probs. PyTorch returns the gradient of logits before log_softmax(); both
    give the same gradient of such logits.

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
    path = labels.new_full((n, 2 * longest + 1), blank)
    path[:, 1::2] = labels
    emit = x.gather(2, path.expand(steps, -1, -1)).clamp(min=_LOG_ZERO).unbind(0)
    # Skipping the blank between two labels is allowed if they differ.
    skips = pad((path[:, 2:] != blank) & (path[:, 2:] != path[:, :-2]), (2, 0)) if longest else path < 0
    skip_cost = where(skips, 0.0, x.new_full((), _LOG_ZERO))
    ends, limits = (as_tensor(lengths, dtype=int64, device=x.device) for lengths in (sizes, times))
    # The state before the first step: the first blank.
    alpha = pad(x.new_zeros(n, 1), (0, 2 * longest), value=_LOG_ZERO)
    for t in range(steps if n else 0):
        previous = pad(alpha, (2, 0), value=_LOG_ZERO)
        new = stack([alpha, previous[:, 1:-1], previous[:, :-2] + skip_cost]).logsumexp(0) + emit[t]
        alpha = new if t < min(times) else where((limits > t).unsqueeze(1), new, alpha)
    last = alpha.gather(1, (2 * ends).unsqueeze(1)).squeeze(1)
    label = alpha.gather(1, (2 * ends - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    loss = -logaddexp(last, where(ends > 0, label, _LOG_ZERO))
    loss = where(loss > -_LOG_ZERO / 2, 0.0 if zero_infinity else math.inf, loss).to(dtype)
    if reduction == "mean":
        return (loss / ends.clamp(min=1)).mean()
    return reduced(loss.squeeze(0) if unbatched else loss, reduction)


def _numbers(lengths: Tensor | Sequence[int]) -> list[int]:
    """Lengths as a list; those in a tensor are read."""
    if isinstance(lengths, (list, tuple)) and all(type(n) is int for n in lengths):
        return list(lengths)
    return as_tensor(lengths, dtype=int64).reshape(-1).tolist()


def _labels(targets: Tensor, sizes: list[int], longest: int, unbatched: bool) -> Tensor:
    """The targets as (N, longest), with 0 after the end of each."""
    if targets.ndim == 1 and not unbatched:
        if targets.shape[0] != sum(sizes):
            raise ShapeError(f"ctc_loss: {targets.shape[0]} targets for target_lengths {sizes}")
        parts = targets.split(sizes)
        return stack([pad(part, (0, longest - part.shape[0])) for part in parts]) if sizes else targets.reshape(0, 0)
    rows = targets.unsqueeze(0) if unbatched and targets.ndim == 1 else targets
    if rows.ndim != 2 or rows.shape[0] != len(sizes) or rows.shape[1] < longest:
        raise ShapeError(f"ctc_loss: targets of shape {tuple(targets.shape)} for target_lengths {sizes}")
    ends = as_tensor(sizes, dtype=int64, device=rows.device).unsqueeze(1)
    return where(arange(longest, device=rows.device) < ends, rows[:, :longest], 0)
