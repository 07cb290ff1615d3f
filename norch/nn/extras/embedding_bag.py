"""embedding_bag() and EmbeddingBag: sums, means or maxima of bags of rows of a table, composed of embedding() and
additions at indices.
"""

from __future__ import annotations

from typing import Any

from ...autograd.halves import widened
from ...autograd.outlive import outlive_writes
from ...dtype import dtype as DType
from ...dtype import int64
from ...errors import ArgumentError, DTypeError, ShapeError, one_of
from ...ops._checks import with_ndim
from ...ops._entry import rename_errors
from ...ops._operand import tensor_of
from ...ops.create import arange, ones_like, zeros
from ...tensor import Tensor
from .. import functional as F
from ..embedding import Embedding
from ..functional._embedding import embedding, padding_row, shorten_rows


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Tensor, int]:
    """The bag of each element of input.flatten(), and the number of bags."""
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError("embedding_bag: offsets need an input of one dimension: with two, each row is a bag")
        rows, length = input.shape
        return arange(rows, device=input.device).repeat_interleave(length), rows
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        other = "no offsets" if offsets is None else f"offsets of shape {tuple(offsets.shape)}"
        raise ShapeError(f"embedding_bag: expected (B, L), or (L) and offsets (B), not {tuple(input.shape)}, {other}")
    starts, length = offsets.tolist(), input.shape[0]
    count = len(starts) - include_last_offset
    bounds = [*starts, length]
    if count < 0 or bounds[0] != 0 or bounds != sorted(bounds):
        raise ArgumentError(f"embedding_bag: offsets must rise from 0 to at most {length}, not {starts}")
    firsts, end = offsets[1:count], bounds[count]
    marks = zeros(end + 1, dtype=int64, device=input.device).index_add(0, firsts, ones_like(firsts, dtype=int64))
    return marks.cumsum(0)[:end], count


@rename_errors
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The mean, sum or maximum (mode "mean", "sum" or "max") of the rows of weight (rows, columns) whose indices are in
    each bag: (B, columns). An empty bag has 0.

    input is (B, L), with a bag in each row, or (L), with bag b starting at offsets[b]; with include_last_offset the
    last offset is the end of the last bag. per_sample_weights, for mode "sum", are factors of the rows, of the shape of
    input. Indices equal to padding_idx are skipped. The other arguments are those of embedding(). ShapeError or
    ArgumentError for other arguments, NotImplementedError for unsupported ones.

    >>> weight = norch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> norch.nn.functional.embedding_bag(norch.tensor([0, 1, 2]), weight, norch.tensor([0, 2]), mode="sum")
    tensor([[2., 4.],
            [4., 5.]])
    """
    one_of("embedding_bag: mode", mode, ("sum", "mean", "max"))
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights are for mode 'sum', not {mode!r}")
    if per_sample_weights is not None and per_sample_weights.shape != tensor_of(input, "embedding_bag").shape:
        shapes = f"{tuple(per_sample_weights.shape)} for an input of shape {tuple(input.shape)}"
        raise ShapeError(f"embedding_bag: per_sample_weights of shape {shapes}")
    if per_sample_weights is not None and per_sample_weights.dtype is not tensor_of(weight, "embedding_bag").dtype:
        kinds = f"{per_sample_weights.dtype.name} for a weight of {weight.dtype.name}"
        raise DTypeError(f"embedding_bag: per_sample_weights of {kinds}")
    x = tensor_of(input, "embedding_bag")
    if padding_idx is not None:
        padding_idx = padding_row(padding_idx, tensor_of(weight, "embedding_bag"), "embedding_bag")
    dense = x.ndim == 2 and x.shape[1] > 0 and offsets is padding_idx is None  # bags of one length
    if dense and mode != "max" and tensor_of(weight, "embedding_bag").dtype.kind in "fc":
        parts = embedding(x, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
        wide = widened(parts)
        wide = wide if per_sample_weights is None else wide * per_sample_weights.unsqueeze(2)
        return (wide.sum(1) if mode == "sum" else wide.mean(1)).to(parts.dtype)
    bag, count = _bags(x, offsets, include_last_offset)
    index = input.flatten()[: bag.shape[0]]
    factors = None if per_sample_weights is None else per_sample_weights.flatten()[: bag.shape[0]]
    if padding_idx is not None:
        kept = (index != padding_idx).nonzero().squeeze(1)
        index, bag, factors = index[kept], bag[kept], None if factors is None else factors[kept]
    if max_norm is not None:
        shorten_rows(x, weight, max_norm, norm_type)  # also rows that are skipped, as in PyTorch
    rows = embedding(index, weight, None, None, norm_type, scale_grad_by_freq, sparse)
    if mode == "max":
        result = rows.new_zeros(count, rows.shape[1]).scatter_reduce(
            0, bag.unsqueeze(1).expand_as(rows), rows, "amax", include_self=False
        )
        return outlive_writes(result, result)  # PyTorch keeps indices
    dtype, rows = rows.dtype, widened(rows)  # sums of halves are rounded once
    rows = rows if factors is None else rows * factors.unsqueeze(1)
    out = rows.new_zeros(count, rows.shape[1]).index_add(0, bag, rows)
    if mode == "mean" and count:
        sizes = bag.new_zeros(count).index_add(0, bag, ones_like(bag))
        out = out / sizes.clamp(min=1).unsqueeze(1).to(out.dtype)
    return out.to(dtype)


class EmbeddingBag(Embedding):
    """The sums, means or maxima (mode "sum", "mean" or "max") of bags of rows of an Embedding, without storing the
    rows. Indices (B, L), with a bag in each row, or (L) with the offsets (B) at which bags begin, give (B,
    embedding_dim).

    weight: (num_embeddings, embedding_dim), initialized from the standard normal distribution, or _weight. The other
    arguments are those of functional.embedding_bag().

    >>> bags = norch.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bags(norch.tensor([1, 2, 4, 5, 4]), norch.tensor([0, 3])).shape
    norch.Size([2, 3])
    """

    _defaults = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "mode": None, "padding_idx": None}

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        table: Any = {"_weight": _weight, "device": device, "dtype": dtype}
        options = max_norm, norm_type, scale_grad_by_freq, sparse
        super().__init__(num_embeddings, embedding_dim, padding_idx, *options, **table)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        options = self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse
        bags = per_sample_weights, self.include_last_offset, self.padding_idx
        return F.embedding_bag(input, self.weight, offsets, *options, *bags)

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A layer with this table (rows, columns). It is not trained if freeze is True. ShapeError unless the table has
        2 dimensions.
        """
        rows, columns = with_ndim(embeddings, "from_pretrained", 2).shape
        options = max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx
        bag = cls(rows, columns, *options)
        bag.weight.requires_grad_(not freeze)
        return bag
