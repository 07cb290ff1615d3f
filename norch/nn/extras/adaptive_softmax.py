"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes, rare ones in clusters (Grave, Joulin, Cissé, Grangier and
Jégou, "Efficient softmax approximation for GPUs", 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...autograd.levels import holds
from ...errors import ArgumentError, ShapeError
from ...ops.composed.shape import hstack
from ...ops.pointwise import where
from ...tensor import Tensor
from ..container import ModuleList, Sequential
from ..linear import Linear
from ..module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of targets among n_classes, sorted by frequency, for inputs (N, in_features) or (in_features).

    The adaptive softmax of Grave et al. (2017). Classes below cutoffs[0] are in the head, beside an entry for each
    cluster; the cluster i, of the classes from cutoffs[i] to the next cutoff, has a projection to in_features /
    div_value^(i + 1) features. head_bias: whether the head has a bias. ValueError for cutoffs that do not rise from
    above 0 to below n_classes.

    layer(input, target) returns (output, loss): the log probability of each target, (N) or (), and the mean of their
    negatives. Targets outside the classes raise an ArgumentError.

    >>> layer = norch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10])
    >>> layer(norch.ones(3, 8), norch.tensor([0, 5, 19])).output.shape
    norch.Size([3])
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        rising = all(a < b for a, b in zip([0, *cutoffs], [*cutoffs, n_classes], strict=True))
        if not cutoffs or not rising or any(int(cutoff) != cutoff for cutoff in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1, not {cutoffs}"
            )
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        place = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            hidden = int(in_features // div_value ** (i + 1))
            first = Linear(in_features, hidden, bias=False, **place)
            self.tail.append(Sequential(first, Linear(hidden, high - low, bias=False, **place)))

    def reset_parameters(self) -> None:
        """Initializes all weights again."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> _ASMoutput:
        """(output, loss) as described in the class."""
        if input.ndim != target.ndim + 1 or target.ndim > 1 or input.shape[:-1] != target.shape:
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: input {tuple(input.shape)} and target {tuple(target.shape)} do not fit"
            )
        x, y = (input, target) if target.ndim else (input.unsqueeze(0), target.unsqueeze(0))
        if y.numel() and not 0 <= int(y.min()) <= int(y.max()) < self.n_classes:
            raise ArgumentError(f"AdaptiveLogSoftmaxWithLoss: target values should be in [0, {self.n_classes - 1}]")
        head = self.head(x).log_softmax(1)
        output = head.gather(1, y.clamp(max=self.shortlist_size - 1).unsqueeze(1)).squeeze(1)
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            rows = ((y >= low) & (y < high)).nonzero().squeeze(1)
            if rows.numel():
                inside = self.tail[i](x.index_select(0, rows)).log_softmax(1)
                chosen = inside.gather(1, (y.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
                chosen = chosen + head.index_select(0, rows)[:, self.shortlist_size + i]
                output = output.index_copy(0, rows, chosen)
        return _ASMoutput(output if target.ndim else output.squeeze(0), -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes, (N, n_classes)."""
        return self._of_all(input, self.head(input).log_softmax(1))

    def _of_all(self, x: Tensor, head: Tensor) -> Tensor:
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            parts.append(tail(x).log_softmax(1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return hstack(parts)

    def predict(self, input: Tensor) -> Tensor:
        """The class of the highest log probability for each input, (N)."""
        head = self.head(input).log_softmax(1)
        best = head.argmax(1)
        if holds(best < self.shortlist_size):
            return best
        return where(best < self.shortlist_size, best, self._of_all(input, head).argmax(1))
