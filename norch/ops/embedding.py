"""Rows of a table by integers (csrc/ops/index.c), for nn.functional.embedding."""

from __future__ import annotations

from .._binding.library import lib
from .._package.typing import Tensor
from ..autograd.derivative import derivative
from ..autograd.levels import zeros_of
from ..autograd.record import record
from ..autograd.transpose import walking
from .index import KINDS, PUT_ADD, AdvancedIndex, index_write


def embedding_rows(table: Tensor, index: Tensor, padding: int | None, by_frequency: bool) -> Tensor:
    """Rows of a table (rows, columns) by integers of any shape; see nn.functional.embedding."""
    out = lib.norch_index_get(table, KINDS["EMBEDDING"], (index,), (0,), (0,), 0)
    return record(_Embedding, out, (table,), (index, padding, by_frequency))


def _embedding_grad(g: Tensor, table_meta: Tensor, index: Tensor, padding: int | None, by_frequency: bool) -> Tensor:
    """The gradient of the table. padding is the row that gets no gradient, or None. With by_frequency, each gradient of
    a row is divided by the number of times that the row was read. A walk that must be exact does neither.
    """
    if walking.exact:
        padding, by_frequency = None, False
    if padding is not None:
        g = g.masked_fill((index == padding).unsqueeze(-1), 0)
    if by_frequency:
        flat = index.flatten()
        counts = g.new_zeros(table_meta.shape[0]).index_add_(0, flat, g.new_ones(flat.shape))
        g = g / counts[index].unsqueeze(-1)
    return index_write(zeros_of(table_meta, g, index), AdvancedIndex((index,), (0,), 0), g, PUT_ADD)


_Embedding = derivative(
    "embedding",
    ("table",),
    tensors=("index",),
    grad=_embedding_grad,
)
