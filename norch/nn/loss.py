"""The losses as layers: each keeps its options and calls its function in nn.functional, where the formulas are.
MSELoss describes `reduction`, which all have.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from ..errors import one_of
from ..tensor import Tensor
from . import functional as F
from ._layer import KW_ONLY, Layer, options
from .distance import PairwiseDistance
from .functional._loss import legacy_reduction

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss",
    "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


def _with_legacy_reduction(init: Any) -> Any:
    """An __init__ that accepts size_average and reduce in addition, and all options by position, in PyTorch's order:
    that of the function's parameters. A string in the place of size_average is the reduction."""

    @functools.wraps(init)
    def accepting(
        self: Any, *arguments: Any, size_average: bool | None = None, reduce: bool | None = None, **named: Any
    ) -> None:
        if arguments:
            older = {"size_average": size_average, "reduce": reduce}
            named |= {name: value for name, value in older.items() if value is not None}
            function: Any = getattr(self, "_function", F.mse_loss)  # bases of losses of programs have none
            while hasattr(function, "__wrapped__"):
                function = function.__wrapped__
            names = function.__code__.co_varnames
            order = [x for x in names if x in self._options or x in ("size_average", "reduce")]
            first = len(arguments) == 1 and isinstance(arguments[0], str) and order[0] == "size_average"
            by_position = {"reduction": arguments[0]} if first else dict(zip(order, arguments))
            if len(arguments) > len(order) or not by_position.keys().isdisjoint(named):
                raise TypeError(f"{type(self).__name__}: takes {', '.join(order)}, each once")
            return accepting(self, **by_position, **named)
        if size_average is not None or reduce is not None:
            named["reduction"] = legacy_reduction("mean", size_average, reduce)
        init(self, **named)

    return accepting


@options
class _Loss(Layer):
    """Base of the losses. Its option `reduction` is keyword-only; some losses redeclare it as positional."""

    _: KW_ONLY
    reduction: str = "mean"
    _reductions: ClassVar[tuple[str, ...]] = ("none", "mean", "sum")
    _inputs = "input: Tensor, target: Tensor"
    _shown = ()
    _wrap_init: ClassVar[Any] = staticmethod(_with_legacy_reduction)

    def __post_init__(self) -> None:
        if self.reduction not in self._reductions:
            raise ValueError(f"{self.reduction!r} is not a valid value for reduction ('none', 'mean' or 'sum')")


@options
class MSELoss(_Loss, function=F.mse_loss):
    """(input - target)^2, for input and target of the same shape.

    reduction, here and in the other losses: "mean", the default, and "sum" give a 0-d tensor; "none" gives the loss of
    each element, or of each sample where the formula is of samples; ValueError for other values. PyTorch's deprecated
    size_average and reduce are accepted where PyTorch accepts them.

    >>> norch.nn.MSELoss()(norch.zeros(2), norch.tensor([1.0, 3.0]))
    tensor(5.)
    """

    reduction: str = "mean"


@options
class L1Loss(_Loss, function=F.l1_loss):
    """|input - target|; otherwise as MSELoss.

    >>> norch.nn.L1Loss()(norch.zeros(2), norch.tensor([1.0, -3.0]))
    tensor(2.)
    """

    reduction: str = "mean"


@options
class SmoothL1Loss(_Loss, function=F.smooth_l1_loss):
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = input - target (Girshick 2015); otherwise as
    MSELoss.

    >>> norch.nn.SmoothL1Loss(reduction="none")(norch.tensor([0.5, 3.0]), norch.zeros(2))
    tensor([0.1250, 2.5000])
    """

    _: KW_ONLY
    beta: float = 1.0


@options
class HuberLoss(_Loss, function=F.huber_loss):
    """d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2), with d = input - target (Huber 1964); otherwise as
    MSELoss.

    >>> norch.nn.HuberLoss("none", delta=2.0)(norch.tensor([0.5, 3.0]), norch.zeros(2))
    tensor([0.1250, 4.0000])
    """

    reduction: str = "mean"
    delta: float = 1.0
    _wrap_init = None


@options
class KLDivLoss(_Loss, function=F.kl_div):
    """The Kullback-Leibler divergence (Kullback and Leibler 1951), from log-probabilities. See functional.kl_div.
    reduction: "batchmean" too.

    >>> p, q = norch.tensor([[0.5, 0.5]]), norch.tensor([[0.25, 0.75]])
    >>> norch.nn.KLDivLoss(reduction="batchmean")(q.log(), p)
    tensor(0.1438)
    """

    _: KW_ONLY
    log_target: bool = False
    _reductions = ("none", "mean", "sum", "batchmean")


@options
class NLLLoss(_Loss, function=F.nll_loss):
    """-input at the target class: log-probabilities (N, C, ...) and class indices (N, ...).

    weight: (C), a factor for each class; samples of class ignore_index do not count. See functional.nll_loss for what
    "mean" divides by. reduction as in MSELoss.

    >>> scores = norch.tensor([[0.25, 0.75]]).log()
    >>> norch.nn.NLLLoss()(scores, norch.tensor([1]))
    tensor(0.2877)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    ignore_index: int = -100


@options
class CrossEntropyLoss(_Loss, function=F.cross_entropy):
    """The cross-entropy of logits (N, C, ...) with class indices (N, ...) or probabilities (N, C, ...).

    weight, ignore_index: as in NLLLoss; label_smoothing in [0, 1] mixes the target with the uniform distribution.
    Logits of any size do not overflow. A class index out of range raises IndexError. See functional.cross_entropy.

    >>> norch.nn.CrossEntropyLoss()(norch.zeros(3, 2), norch.tensor([0, 1, 1]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    ignore_index: int = -100
    label_smoothing: float = 0.0


@options
class BCELoss(_Loss, function=F.binary_cross_entropy):
    """The binary cross-entropy of probabilities with targets in [0, 1] of the same shape; weight, a factor of the loss,
    broadcasts to it. See functional.binary_cross_entropy. reduction as in MSELoss.

    >>> norch.nn.BCELoss()(norch.tensor([0.5, 0.5]), norch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None = None


@options
class BCEWithLogitsLoss(_Loss, function=F.binary_cross_entropy_with_logits):
    """The binary cross-entropy of logits with targets in [0, 1] of the same shape, without overflow.

    weight: broadcasts to the loss; pos_weight: the factor of the positive term, broadcasts as well. reduction as in
    MSELoss.

    >>> norch.nn.BCEWithLogitsLoss()(norch.tensor([0.0, 100.0]), norch.tensor([1.0, 1.0]))
    tensor(0.3466)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    pos_weight: Tensor | None = None


@options
class PoissonNLLLoss(_Loss, function=F.poisson_nll_loss):
    """The negative log-likelihood of a Poisson distribution. See functional.poisson_nll_loss; reduction as in
    MSELoss.

    >>> norch.nn.PoissonNLLLoss()(norch.zeros(1), norch.tensor([2.0]))
    tensor(1.)
    """

    log_input: bool = True
    full: bool = False
    _: KW_ONLY
    eps: float = 1e-8
    _inputs = "log_input: Tensor, target: Tensor"


@options
class GaussianNLLLoss(_Loss, function=F.gaussian_nll_loss):
    """The negative log-likelihood of normal distributions (Nix and Weigend 1994). See functional.gaussian_nll_loss;
    reduction as in MSELoss.

    >>> norch.nn.GaussianNLLLoss()(norch.zeros(1), norch.tensor([2.0]), norch.ones(1))
    tensor(2.)
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    _inputs = "input: Tensor, target: Tensor, var: Any"
    _wrap_init = None


@options
class HingeEmbeddingLoss(_Loss, function=F.hinge_embedding_loss):
    """Distances: small for target 1, greater than margin for target -1 (Hadsell et al. 2006). See
    functional.hinge_embedding_loss; reduction as in MSELoss.

    >>> norch.nn.HingeEmbeddingLoss(reduction="none")(norch.tensor([0.25, 0.25]), norch.tensor([1, -1]))
    tensor([0.2500, 0.7500])
    """

    margin: float = 1.0


@options
class SoftMarginLoss(_Loss, function=F.soft_margin_loss):
    """log(1 + exp(-target * input)), for targets 1 and -1 of the shape of input; reduction as in MSELoss.

    >>> norch.nn.SoftMarginLoss()(norch.zeros(2), norch.tensor([1, -1]))
    tensor(0.6931)
    """

    reduction: str = "mean"


@options
class MarginRankingLoss(_Loss, function=F.margin_ranking_loss):
    """Ranks input1 above input2 for target 1, below for -1. See functional.margin_ranking_loss; reduction as in
    MSELoss.

    >>> norch.nn.MarginRankingLoss()(norch.tensor([1.0]), norch.tensor([3.0]), norch.tensor([1]))
    tensor(2.)
    """

    margin: float = 0.0
    _inputs = "input1: Tensor, input2: Tensor, target: Tensor"


@options
class CosineEmbeddingLoss(_Loss, function=F.cosine_embedding_loss):
    """Pairs of vectors: similar for target 1, dissimilar for -1. See functional.cosine_embedding_loss; reduction as in
    MSELoss.

    >>> x, y = norch.tensor([[1.0, 0.0]]), norch.tensor([[0.0, 1.0]])
    >>> norch.nn.CosineEmbeddingLoss()(x, y, norch.tensor([1]))
    tensor(1.)
    """

    margin: float = 0.0
    _inputs = "input1: Tensor, input2: Tensor, target: Tensor"


class _TripletLoss(_Loss):
    _inputs = "anchor: Tensor, positive: Tensor, negative: Tensor"
    margin: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.margin <= 0:
            raise ValueError(f"{type(self).__name__}: margin must be positive, got {self.margin}")


@options
class TripletMarginLoss(_TripletLoss, function=F.triplet_margin_loss):
    """An anchor nearer to `positive` than to `negative`, by margin > 0 (Schroff et al. 2015). See
    functional.triplet_margin_loss; p and eps: those of PairwiseDistance; reduction as in MSELoss.

    >>> norch.nn.TripletMarginLoss()(norch.zeros(1, 2), norch.zeros(1, 2), norch.full((1, 2), 3.0))
    tensor(0.)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False


@options
class TripletMarginWithDistanceLoss(_TripletLoss, function=F.triplet_margin_with_distance_loss):
    """TripletMarginLoss with another distance: distance_function(x1, x2), of tensors (N, D), gives (N); by default
    PairwiseDistance().

    >>> loss = norch.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), margin=5.0)
    >>> x, y = norch.tensor([[0.0]]), norch.tensor([[2.0]])
    >>> loss(x, x, y)
    tensor(3.)
    """

    _: KW_ONLY
    distance_function: Any = None
    margin: float = 1.0
    swap: bool = False
    _wrap_init = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()


@options
class MultiLabelMarginLoss(_Loss, function=F.multilabel_margin_loss):
    """The classes of a sample scored above all others by 1. See functional.multilabel_margin_loss; reduction as in
    MSELoss.

    >>> norch.nn.MultiLabelMarginLoss()(norch.tensor([[0.5, 0.0]]), norch.tensor([[0, -1]]))
    tensor(0.2500)
    """


@options
class MultiLabelSoftMarginLoss(_Loss, function=F.multilabel_soft_margin_loss):
    """The binary cross-entropy of logits, averaged over the classes. See functional.multilabel_soft_margin_loss;
    reduction as in MSELoss.

    >>> norch.nn.MultiLabelSoftMarginLoss()(norch.zeros(1, 3), norch.tensor([[1.0, 0.0, 1.0]]))
    tensor(0.6931)
    """

    weight: Tensor | None = None


@options
class MultiMarginLoss(_Loss, function=F.multi_margin_loss):
    """A class scored above the others by margin (Weston and Watkins 1999). See functional.multi_margin_loss; reduction
    as in MSELoss. p: 1 or 2, ValueError otherwise.

    >>> norch.nn.MultiMarginLoss()(norch.tensor([[0.1, 0.2, 0.4, 0.8]]), norch.tensor([3]))
    tensor(0.3250)
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("MultiMarginLoss: p", self.p, (1, 2))
