"""The losses as modules: each keeps its options and calls its function in functional.py."""

from __future__ import annotations

import functools
from typing import Any

from ..tensor import Tensor
from . import functional as F
from .distance import PairwiseDistance
from .functional_loss import older
from .module import Module


def _older(init: Any) -> Any:
    """An __init__ with a reduction, that takes size_average and reduce as well."""

    @functools.wraps(init)
    def accepting(
        self: Any, *given: Any, size_average: bool | None = None, reduce: bool | None = None, **named: Any
    ) -> None:
        if size_average is not None or reduce is not None:
            named["reduction"] = older("mean", size_average, reduce)
        init(self, *given, **named)

    return accepting


class _Loss(Module):
    @_older
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"{reduction!r} is not a valid value for reduction ('none', 'mean' or 'sum')")
        self.reduction = reduction


class MSELoss(_Loss):
    """The mean of (input - target)^2; reduction "sum" or "none" gives the sum, or every square.

    >>> norch.nn.MSELoss()(norch.zeros(2), norch.tensor([1.0, 3.0]))
    tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The mean of |input - target|; reduction "sum" or "none" gives the sum, or every distance."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """d^2 / (2 beta) near the target, |d| - beta / 2 beyond beta from it."""

    @_older
    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """d^2 / 2 near the target, delta * (|d| - delta / 2) beyond delta from it."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """target * (log(target) - input) of log-probabilities; reduction "batchmean" is the divergence itself."""

    @_older
    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__("mean" if reduction == "batchmean" else reduction)
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class NLLLoss(_Loss):
    """-input at the target class: log-probabilities (N, C, ...) and class indices (N, ...).

    weight: (C), the weight of each class; samples of class ignore_index do not count.
    """

    weight: Tensor | None

    @_older
    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_Loss):
    """The cross-entropy of logits (N, C, ...) against class indices (N, ...) or probabilities (N, C, ...).

    weight: (C); label_smoothing in [0, 1] mixes the target with the uniform distribution. Stable at logits
    of any size. A class index out of range raises an IndexError.

    >>> norch.nn.CrossEntropyLoss()(norch.zeros(3, 2), norch.tensor([0, 1, 1]))
    tensor(0.6931)
    """

    weight: Tensor | None

    @_older
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options: dict[str, Any] = {"ignore_index": self.ignore_index, "label_smoothing": self.label_smoothing}
        return F.cross_entropy(input, target, self.weight, reduction=self.reduction, **options)


class CTCLoss(_Loss):
    """Connectionist temporal classification (Graves et al. 2006): nn.functional.ctc_loss() says of what.

    >>> log_probs = norch.zeros(5, 2, 4).log_softmax(-1)
    >>> norch.nn.CTCLoss()(log_probs, norch.tensor([[1, 2], [3, 3]]), [5, 5], [2, 2]).shape
    norch.Size([])
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        options: Any = {"reduction": self.reduction, "zero_infinity": self.zero_infinity}
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, **options)


class BCELoss(_Loss):
    """Binary cross-entropy of probabilities against targets in [0, 1] of the same shape; weight broadcasts."""

    weight: Tensor | None

    @_older
    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of logits against targets in [0, 1] of the same shape, without overflow.

    weight: broadcasts to the loss; pos_weight: the factor of the positive term, broadcasts too.
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    @_older
    def __init__(
        self, weight: Tensor | None = None, *, reduction: str = "mean", pos_weight: Tensor | None = None
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class PoissonNLLLoss(_Loss):
    """Minus the log-likelihood of a Poisson distribution. See functional.poisson_nll_loss."""

    @_older
    def __init__(
        self, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """Minus the log-likelihood of normal distributions. See functional.gaussian_nll_loss."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Distances that are to be small (target 1) or beyond margin (-1). See functional.hinge_embedding_loss."""

    @_older
    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target input)), for targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """Which of two inputs is to be the larger one. See functional.margin_ranking_loss."""

    @_older
    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """Vectors that are to be alike (target 1) or not (-1). See functional.cosine_embedding_loss."""

    @_older
    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """An anchor that is to be nearer to one than to another. See functional.triplet_margin_loss."""

    @_older
    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: margin must be positive, got {margin}")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        options = (self.margin, self.p, self.eps, self.swap)
        return F.triplet_margin_loss(anchor, positive, negative, *options, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with another distance. See functional.triplet_margin_with_distance_loss."""

    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: margin must be positive, got {margin}")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            *(anchor, positive, negative),
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class MultiLabelSoftMarginLoss(_Loss):
    """Binary cross-entropy of logits, a class at a time. See functional.multilabel_soft_margin_loss."""

    weight: Tensor | None

    @_older
    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_Loss):
    """A class that is to be above the others by margin. See functional.multi_margin_loss."""

    weight: Tensor | None

    @_older
    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p is 1 or 2, not {p}")
        self.register_buffer("weight", weight)
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)
