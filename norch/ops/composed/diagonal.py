"""Diagonals and triangles of matrices, composed of views, copies and comparisons."""

from __future__ import annotations

from functools import lru_cache

from ..._binding.library import lib
from ..._binding.numbers import int64
from ..._package.typing import Any, Tensor
from ..._tensor import handle as _handle
from ..._tensor.handle import Handle
from ...autograd.derivative import derivative
from ...autograd.differentiable import differentiable
from ...autograd.grad_mode import mode
from ...autograd.record import is_recorded, record
from ...dtype import float32
from ...dtype import int64 as int64_
from ...errors import ShapeError
from .._autocast import in_autocast, policy
from .._checks import at_least, with_ndim
from .._operand import operand, tensor_of
from ..copy import clone
from ..op import method
from ..pointwise import _where
from ..reduce import sum_over
from ..values import can_cache, iota
from ..view import as_strided, axes, narrow, reshape, unsqueeze
from ..view import diagonal as _diagonal


@method(moves=True, out=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on a diagonal, or a copy of the diagonal of a matrix.

    >>> norch.diag(norch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    input = with_ndim(tensor_of(input, "diag"), "diag", 1, 2)
    vector = input.ndim == 1
    return diag_embed(input, diagonal) if vector else clone(_diagonal(input, diagonal))


@method(moves=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements of input on the diagonal offset, and zeros elsewhere.

    >>> norch.diagflat(norch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(tensor_of(input, "diagflat"), -1), offset)


@method(moves=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, in the axes dim1 and dim2 of the result, with the last axis of input as diagonals and zeros elsewhere.

    >>> norch.diag_embed(norch.tensor([[1, 2]]))
    tensor([[[1, 0],
             [0, 2]]])
    """
    input = at_least(1, tensor_of(input, "diag_embed"), "diag_embed")
    shape = list(input.shape)
    at = sorted(axes((dim1, dim2), len(shape) + 1, "diag_embed"))
    size = shape.pop() + abs(int64(offset, "diag_embed: offset"))
    for dim in at:
        shape.insert(dim, size)
    return _embedded(input, shape, offset, dim1, dim2)


@differentiable("diag_embed", grad=lambda g, offset, dim1, dim2: clone(_diagonal(g, offset, dim1, dim2)))
def _embedded(x: Tensor, shape: list[int], offset: int, dim1: int, dim2: int) -> Tensor:
    out = x.new_zeros(shape)
    lib.norch_copy(lib.norch_diagonal(out, offset, dim1, dim2), x)
    return out


@method
@policy("float32 -")
def trace(input: Tensor) -> Tensor:
    """The sum over the diagonal of a matrix.

    >>> norch.trace(norch.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if mode.casting and (out := in_autocast(trace, input)) is not None:
        return out
    if type(input) is not _handle.result_class or input.ndim != 2:
        with_ndim(input, "trace", 2)
    return sum_over(_diagonal(input))


def _triangle(input: Tensor, diagonal: int, name: str) -> Tensor:
    if type(input) is not _handle.result_class or input.ndim < 2:
        at_least(2, input, name)
    rows, columns = lib.norch_shape(input)[-2:]
    size = rows if rows > columns else columns
    offset = diagonal if type(diagonal) is int else int64(diagonal, f"{name}: diagonal")
    if not -size <= offset <= size:
        offset = max(-size - 1, min(int64(offset, f"{name}: diagonal"), size + 1))
    cached = size <= _SMALL and can_cache(input)
    mask = _cached_mask(rows, columns, offset, name) if cached else _mask(rows, columns, offset, name, input)
    if not is_recorded((input,)):
        return _where(mask, input, False)
    return record(_TRIANGLES[name], _where(mask, input.detach(), False), (input,), (offset,))


# A node saves no mask, so that backward() may go through it again.
_TRIANGLES = {
    "tril": derivative("tril", grad=lambda g, diagonal: _triangle(g, diagonal, "tril"), rounds_once=True),
    "triu": derivative("triu", grad=lambda g, diagonal: _triangle(g, diagonal, "triu"), rounds_once=True),
}
_SMALL = 64  # sizes of matrices whose masks are cached


def _mask(rows: int, columns: int, offset: int, name: str, like: Handle) -> Tensor:
    """Where the triangle of a (rows, columns) matrix is."""
    whole = float32 if max(rows, columns) < 2**22 else int64_  # floats compare faster, and are exact that far
    row, column = unsqueeze(iota(rows, like, whole, offset), 1), iota(columns, like, whole)
    return column <= row if name == "tril" else column >= row


@lru_cache(maxsize=64)
def _cached_mask(rows: int, columns: int, offset: int, name: str) -> Tensor:
    return _mask(rows, columns, offset, name, operand(0))


@method(inplace=True, moves=True, out=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices, up to a diagonal; zeros above.

    >>> norch.tril(norch.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    return _triangle(input, diagonal, "tril")


@method(inplace=True, moves=True, out=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices, from a diagonal on; zeros below.

    >>> norch.triu(norch.ones(3, 3))
    tensor([[1., 1., 1.],
            [0., 1., 1.],
            [0., 0., 1.]])
    """
    return _triangle(input, diagonal, "triu")


@method
def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Writes a number to the elements whose indices are all equal; wrap: the diagonal of a tall matrix starts again."""
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"fill_diagonal_: expected a matrix, or equal sizes, got shape {tuple(x.shape)}")
    if x.ndim > 2:
        as_strided(x, (x.shape[0],), (sum(x.stride()),), x.storage_offset()).fill_(fill_value)
    elif not wrap:
        _diagonal(x).fill_(fill_value)
    else:
        rows, columns = lib.norch_shape(x)
        for start in range(0, rows, columns + 1) if columns else ():
            _diagonal(narrow(x, 0, start, rows - start)).fill_(fill_value)
    return x
