"""The rows of a table whose gradient is a sparse tensor, for nn.functional.embedding(sparse=True)."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import mode
from ..autograd.node import Node
from ..autograd.record import gradient_edge
from ..autograd.transpose import walking
from ..dtype import int64
from ..ops.embedding import embedding_rows
from ..tensor import Tensor
from .coo import unchecked


class SparseEmbedding(Node):
    """The rows of a table (rows, columns): their gradients, at their indices."""

    __slots__ = ("index", "padding", "shape")

    def __init__(self, edge: Node, index: Tensor, padding: int | None, shape: Any):
        super().__init__(edge)
        self.index, self.padding, self.shape = index, padding, shape

    def propagate(self, g: Any) -> tuple[Any, ...]:
        index, g = self.index, g.reshape(-1, self.shape[1])
        if walking.exact:
            return (g.new_zeros(self.shape).index_add(0, index, g),)
        if self.padding is not None:
            read = (index != self.padding).nonzero().view(-1)
            index, g = index[read], g.index_select(0, read)
        return (unchecked(index.unsqueeze(0), g, self.shape),)


def rows_of(table: Tensor, index: Tensor, padding: int | None) -> Tensor:
    """The rows of a table at integers of any shape. Row padding, unless None, gets no gradient."""
    out = embedding_rows(table.detach(), index, None, False)
    if mode.enabled and (edge := gradient_edge(table)) is not None:
        flat = index.reshape(-1).to(int64, copy=True)  # the program may write to index before backward()
        out._node = SparseEmbedding(edge, flat, padding, table.shape)
    return out
