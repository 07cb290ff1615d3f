"""The losses as layers: each keeps its options and calls its function in nn.functional, where the formulas are.
MSELoss describes `reduction`, which all losses have.
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
    """An __init__ that also accepts size_average and reduce, and all options by position, in the order of the
    function's parameters, which is PyTorch's. A string in the position of size_average is the reduction.
    """

    @functools.wraps(init)
    def accepting(
        self: Any, *arguments: Any, size_average: bool | None = None, reduce: bool | None = None, **named: Any
    ) -> None:
        if arguments:
            older = {"size_average": size_average, "reduce": reduce}
            named |= {name: value for name, value in older.items() if value is not None}
            function: Any = getattr(self, "_function", F.mse_loss)  # bases of losses in programs have no such attribute
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
    """(input - target)^2, for floats of the same shape. Other shapes broadcast, with a warning; integers and complex
    numbers raise DTypeError.

    reduction, here and in the other losses: "mean", the default, and "sum" give a 0-d tensor; "none" gives the loss of
    each element, or of each sample where the formula is one of samples. Other values raise ValueError. PyTorch's
    deprecated size_average and reduce are accepted where PyTorch accepts them.

    >>> norch.nn.MSELoss()(norch.zeros(2), norch.tensor([1.0, 3.0]))
    tensor(5.)
    """

    reduction: str = "mean"


@options
class L1Loss(_Loss, function=F.l1_loss):
    """|input - target|. Shapes, dtypes and reduction as in MSELoss.

    >>> norch.nn.L1Loss()(norch.zeros(2), norch.tensor([1.0, -3.0]))
    tensor(2.)
    """

    reduction: str = "mean"


@options
class SmoothL1Loss(_Loss, function=F.smooth_l1_loss):
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = input - target (Girshick 2015, section 2.3).
    Shapes, dtypes and reduction as in MSELoss; beta = 0 gives L1Loss.

    >>> norch.nn.SmoothL1Loss(reduction="none")(norch.tensor([0.5, 3.0]), norch.zeros(2))
    tensor([0.1250, 2.5000])
    """

    _: KW_ONLY
    beta: float = 1.0


@options
class HuberLoss(_Loss, function=F.huber_loss):
    """d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2), with d = input - target (Huber 1964). Shapes, dtypes
    and reduction as in MSELoss; delta must be positive, ArgumentError otherwise.

    >>> norch.nn.HuberLoss("none", delta=2.0)(norch.tensor([0.5, 3.0]), norch.zeros(2))
    tensor([0.1250, 4.0000])
    """

    reduction: str = "mean"
    delta: float = 1.0
    _wrap_init = None


@options
class KLDivLoss(_Loss, function=F.kl_div):
    """target * (log(target) - input), which sums to the Kullback-Leibler divergence (Kullback and Leibler 1951).

    input: log-probabilities; target: probabilities, or with log_target log-probabilities, of the same shape. reduction:
    as in MSELoss, or "batchmean", the sum divided by the first size. That is the divergence as a mean over samples;
    "mean" divides by the number of elements instead.

    >>> p, q = norch.tensor([[0.5, 0.5]]), norch.tensor([[0.25, 0.75]])
    >>> norch.nn.KLDivLoss(reduction="batchmean")(q.log(), p)
    tensor(0.1438)
    """

    _: KW_ONLY
    log_target: bool = False
    _reductions = ("none", "mean", "sum", "batchmean")


@options
class NLLLoss(_Loss, function=F.nll_loss):
    """-input at the target class.

    input: log-probabilities (N, C, ...) or (C); target: integers (N, ...) or (), the class indices. weight: (C), a
    factor for each class. Samples whose class is ignore_index do not count. "mean" divides by the sum of the weights of
    the samples that count. reduction as in MSELoss. A class out of range raises IndexError, a target of floats
    DTypeError.

    >>> scores = norch.tensor([[0.25, 0.75]]).log()
    >>> norch.nn.NLLLoss()(scores, norch.tensor([1]))
    tensor(0.2877)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    ignore_index: int = -100


@options
class CrossEntropyLoss(_Loss, function=F.cross_entropy):
    """-log(softmax(input)) at the target class: NLLLoss of LogSoftmax, for logits of any size without overflow.

    input: logits (N, C, ...) or (C). target: class indices, integers (N, ...) or (); or probabilities of the shape of
    input. weight, ignore_index: as in NLLLoss. label_smoothing, in [0, 1], mixes the target with the uniform
    distribution (Szegedy et al. 2016, section 7). reduction as in MSELoss. A class out of range raises IndexError, a
    target of another shape ShapeError.

    >>> norch.nn.CrossEntropyLoss()(norch.zeros(3, 2), norch.tensor([0, 1, 1]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    ignore_index: int = -100
    label_smoothing: float = 0.0


@options
class BCELoss(_Loss, function=F.binary_cross_entropy):
    """-(target * log(input) + (1 - target) * log(1 - input)): the binary cross-entropy of probabilities.

    input, target: the same shape, ShapeError otherwise, with elements in [0, 1], ArgumentError otherwise. Logarithms
    are clamped to at least -100. weight: a factor of the loss; it broadcasts. reduction as in MSELoss.
    BCEWithLogitsLoss is more accurate.

    >>> norch.nn.BCELoss()(norch.tensor([0.5, 0.5]), norch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None = None


@options
class BCEWithLogitsLoss(_Loss, function=F.binary_cross_entropy_with_logits):
    """BCELoss of sigmoid(input), computed without overflow.

    input: logits; target: of the same shape, ShapeError otherwise. weight: a factor of the loss; pos_weight: a factor
    of the term of target 1, for example the ratio of negative to positive samples of each class. Both broadcast.
    reduction as in MSELoss.

    >>> norch.nn.BCEWithLogitsLoss()(norch.tensor([0.0, 100.0]), norch.tensor([1.0, 1.0]))
    tensor(0.3466)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    pos_weight: Tensor | None = None


@options
class PoissonNLLLoss(_Loss, function=F.poisson_nll_loss):
    """exp(input) - target * input: the negative log-likelihood of counts that are Poisson distributed, with the
    logarithm of the rate as input.

    Without log_input, input is the rate: input - target * log(input + eps). full adds Stirling's approximation of
    log(target!) where target > 1. input, target: the same shape. reduction as in MSELoss.

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
    """(log(var) + (input - target)^2 / var) / 2: the negative log-likelihood of normal distributions (Nix and Weigend
    1994), without the constant log(2 pi) / 2, which full adds.

    loss(input, target, var): input, the means, and target have the same shape; var has that shape, or size 1 or no axis
    in place of the last one, or is a number. var counts as at least eps; negative elements raise ArgumentError.
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
    """input where target is 1, max(0, margin - input) where target is -1 (Hadsell et al. 2006). input is usually a
    distance of pairs: small for similar ones, at least margin for others.

    input, target: the same shape, or shapes that broadcast. reduction as in MSELoss.

    >>> norch.nn.HingeEmbeddingLoss(reduction="none")(norch.tensor([0.25, 0.25]), norch.tensor([1, -1]))
    tensor([0.2500, 0.7500])
    """

    margin: float = 1.0


@options
class SoftMarginLoss(_Loss, function=F.soft_margin_loss):
    """log(1 + exp(-target * input)), for targets 1 and -1. input, target: the same shape, or shapes that broadcast;
    reduction as in MSELoss.

    >>> norch.nn.SoftMarginLoss()(norch.zeros(2), norch.tensor([1, -1]))
    tensor(0.6931)
    """

    reduction: str = "mean"


@options
class MarginRankingLoss(_Loss, function=F.margin_ranking_loss):
    """max(0, margin - target * (input1 - input2)): 0 if input1 is greater by margin where target is 1, and input2 where
    it is -1.

    loss(input1, input2, target): shapes that broadcast and have the same number of dimensions, ShapeError otherwise.
    reduction as in MSELoss.

    >>> norch.nn.MarginRankingLoss()(norch.tensor([1.0]), norch.tensor([3.0]), norch.tensor([1]))
    tensor(2.)
    """

    margin: float = 0.0
    _inputs = "input1: Tensor, input2: Tensor, target: Tensor"


@options
class CosineEmbeddingLoss(_Loss, function=F.cosine_embedding_loss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1, with cos the cosine of the angle between input1
    and input2.

    loss(input1, input2, target): (N, D), (N, D) and (N), or (D), (D) and (); ShapeError otherwise. reduction as in
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
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), with d the PairwiseDistance of order p (Schroff et
    al. 2015, section 3.1).

    All three: (N, D) or (D). swap: the smaller of d(anchor, negative) and d(positive, negative) counts (Balntas et al.
    2016). eps: that of PairwiseDistance. reduction as in MSELoss. A margin that is not positive raises ValueError.

    >>> norch.nn.TripletMarginLoss()(norch.zeros(1, 2), norch.zeros(1, 2), norch.full((1, 2), 3.0))
    tensor(0.)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False


@options
class TripletMarginWithDistanceLoss(_TripletLoss, function=F.triplet_margin_with_distance_loss):
    """TripletMarginLoss with another distance: distance_function(x1, x2) takes tensors (N, D) and gives (N); the
    default is PairwiseDistance().

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
    """The sum over the classes y of a sample, and over all other classes i, of max(0, 1 - x[y] + x[i]) / C.

    x, the input: (N, C) or (C). target: integers of the same shape, the classes of a sample followed by -1; what
    follows the first -1 is not read. The loss has the shape (N) or () before the reduction, which is as in MSELoss. A
    class out of range raises IndexError, other shapes ShapeError.

    >>> norch.nn.MultiLabelMarginLoss()(norch.tensor([[0.5, 0.0]]), norch.tensor([[0, -1]]))
    tensor(0.2500)
    """


@options
class MultiLabelSoftMarginLoss(_Loss, function=F.multilabel_soft_margin_loss):
    """BCEWithLogitsLoss averaged over the classes: input and target (N, C) give (N) before the reduction, which is as
    in MSELoss. weight: (C), a factor for each class.

    >>> norch.nn.MultiLabelSoftMarginLoss()(norch.zeros(1, 3), norch.tensor([[1.0, 0.0, 1.0]]))
    tensor(0.6931)
    """

    weight: Tensor | None = None


@options
class MultiMarginLoss(_Loss, function=F.multi_margin_loss):
    """The sum over the classes i other than y of max(0, margin - x[y] + x[i])^p / C, times weight[y] (Weston and
    Watkins 1999).

    x, the input: (N, C) or (C); y, the target: integers (N) or (); weight: (C). p: 1 or 2, ArgumentError otherwise.
    reduction as in MSELoss.

    >>> norch.nn.MultiMarginLoss()(norch.tensor([[0.1, 0.2, 0.4, 0.8]]), norch.tensor([3]))
    tensor(0.3250)
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("MultiMarginLoss: p", self.p, (1, 2))
