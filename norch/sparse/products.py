"""Products of sparse tensors with dense ones and with sparse ones.

Two operations, each the derivative of the other, on the stored elements of a matrix, (rows[k], columns[k]): Spread adds
values[k] * b[columns[k]] to the row rows[k] of a new matrix; Dots gives a[rows[k]] . b[columns[k]] for each k.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..autograd.function import Function
from ..errors import DTypeError, ShapeError
from ..ops.copy import cat, stack
from ..ops.create import empty
from ..tensor import Tensor
from .coo import SparseTensor, coalesced, equal_pairs, indices_and_values, refusal, unchecked

PIECE = 1 << 18  # elements of rows that are read at once: what a cache holds, whatever the number of stored elements


def _pieces(count: int, width: int) -> Iterator[slice]:
    step = max(1, PIECE // max(1, width))
    return (slice(start, start + step) for start in range(0, count, step))


class Spread(Function):
    """(nnz,) values and (columns, width) b to (size, width)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, b: Tensor, rows: Tensor, columns: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(values, b)
        ctx.at = rows, columns
        out = b.new_zeros(size, b.shape[1])  # batched where vmap batches b
        for piece in _pieces(len(values), b.shape[1]):
            read = b.index_select(0, columns[piece]).mul_(values[piece].unsqueeze(1))
            out.index_add_(0, rows[piece], read)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        values, b = ctx.saved_tensors
        rows, columns = ctx.at
        of_values = Dots.apply(g, b.conj(), rows, columns) if ctx.needs_input_grad[0] else None
        of_b = Spread.apply(values.conj(), g, columns, rows, b.shape[0]) if ctx.needs_input_grad[1] else None
        return of_values, of_b, None, None, None


class Dots(Function):
    """(rows, width) a and (columns, width) b to (nnz,)."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.at = rows, columns
        parts = [
            a.index_select(0, rows[piece]).mul_(b.index_select(0, columns[piece])).sum(1)
            for piece in _pieces(len(rows), a.shape[1])
        ]
        return cat(parts) if parts else empty(0, dtype=a.dtype, device=a.device)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        a, b = ctx.saved_tensors
        rows, columns = ctx.at
        of_a = Spread.apply(g, b.conj(), rows, columns, a.shape[0]) if ctx.needs_input_grad[0] else None
        of_b = Spread.apply(g, a.conj(), columns, rows, b.shape[0]) if ctx.needs_input_grad[1] else None
        return of_a, of_b, None, None


def _check(a: Tensor, b: Tensor, name: str, ndim: int = 2) -> None:
    for x in (a, b):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a tensor, not {type(x).__name__}")
        if x.ndim != ndim:
            raise ShapeError(f"{name}: expected {ndim} dimensions, not shape {tuple(x.shape)}")
        if isinstance(x, SparseTensor) and x.dense_dim():
            raise refusal(f"{name} of one with dense dimensions")
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(f"{name}: shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    if a.dtype is not b.dtype:
        raise DTypeError(f"{name}: expected one dtype, got {a.dtype} and {b.dtype}")


def mm(a: Tensor, b: Tensor, name: str) -> Tensor:
    """The product of two matrices, of which at least one is sparse; it is sparse if both are."""
    _check(a, b, name)
    if not isinstance(a, SparseTensor):
        at, values = indices_and_values(b)  # type: ignore[arg-type]
        return Spread.apply(values, a.T, at[1], at[0], b.shape[1]).T
    at, values = indices_and_values(a)
    if not isinstance(b, SparseTensor):
        return Spread.apply(values, b, at[0], at[1], a.shape[0])
    places, b_values = indices_and_values(coalesced(b))
    i, j = equal_pairs(places[0], at[1])
    out = unchecked(stack([at[0][j], places[1][i]]), values[j] * b_values[i], (a.shape[0], b.shape[1]))
    return coalesced(out)


def bmm(a: SparseTensor, b: Tensor, name: str) -> Tensor:
    """The products of a batch of sparse matrices (n, rows, inner) and one of dense ones (n, inner, columns)."""
    _check(a, b, name, 3)
    (batch, row, column), values = indices_and_values(a)
    n, rows, inner = a.shape
    out = Spread.apply(values, b.reshape(n * inner, -1), batch * rows + row, batch * inner + column, n * rows)
    return out.view(n, rows, b.shape[2])


def product(a: Tensor, b: Tensor, name: str) -> Tensor:
    """matmul() where at least one operand is sparse."""
    if a.ndim == 2 and b.ndim == 2:
        return mm(a, b, name)
    if a.ndim == 2 and b.ndim == 1 and not isinstance(b, SparseTensor):
        return mm(a, b.unsqueeze(1), name).squeeze(1)
    if a.ndim == 1 and b.ndim == 2 and not isinstance(a, SparseTensor):
        return mm(a.unsqueeze(0), b, name).squeeze(0)
    if a.ndim == 3 and b.ndim == 3 and isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        return bmm(a, b, name)
    raise refusal(f"{name} of shapes {tuple(a.shape)} and {tuple(b.shape)}")
