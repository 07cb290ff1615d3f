"""CTCLoss, a layer over functional.ctc_loss()."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from ..loss import _Loss


class CTCLoss(_Loss):
    """-log of the probability that a sequence of labels is read from log_probs, over all alignments with blanks (Graves
    et al. 2006, section 4.1).

    loss(log_probs, targets, input_lengths, target_lengths): log_probs is (T, N, C), the result of log_softmax(), or (T,
    C); targets are integers (N, S), or concatenated; lengths are N integers. blank: the class of blanks. zero_infinity:
    a target longer than its input has the loss 0, not inf. reduction as in MSELoss; "mean" first divides each loss by
    the length of its target. See functional.ctc_loss.

    >>> log_probs = norch.zeros(5, 2, 4).log_softmax(-1)
    >>> norch.nn.CTCLoss()(log_probs, norch.tensor([[1, 2], [3, 3]]), [5, 5], [2, 2]).shape
    norch.Size([])
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        options = self.blank, self.reduction, self.zero_infinity
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, *options)
