"""Sparse tensors transposed, indexed, joined and taken apart."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

from .._binding.numbers import int64
from ..dtype import int64 as INT64  # noqa: N812
from ..errors import BoundsError, Error, ShapeError
from ..ops.copy import cat as cat_dense
from ..ops.sort import sort
from ..ops.view import axis
from ..tensor import Tensor
from .coo import SparseTensor, equal_pairs, implements, indices_and_values, like, refusal, unchecked


@implements("permute")
def permute(input: Any, *dims: Any) -> Any:  # noqa: A002
    """The dimensions in another order: sparse ones stay in front of dense ones."""
    wanted = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [axis(d, input.ndim, "permute") for d in wanted]
    if sorted(order) != list(range(input.ndim)):
        raise ShapeError(f"permute: {tuple(wanted)} is no order of {input.ndim} dimensions")
    n = input.sparse_dim()
    if any(d >= n for d in order[:n]):
        raise Error("permute: transpositions between sparse and dense dimensions are not allowed")
    if order == list(range(input.ndim)):
        return input
    at, values = indices_and_values(input)
    values = values.permute(0, *(d - n + 1 for d in order[n:]))
    return unchecked(
        at[order[:n]],
        values,
        [input.shape[d] for d in order],
        False,
        input._distinct or at is not input._coordinates,
    )


@implements("transpose swapaxes swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:  # noqa: A002
    """The tensor with two dimensions exchanged."""
    order = list(range(input.ndim))
    first, second = axis(dim0, input.ndim, "transpose"), axis(dim1, input.ndim, "transpose")
    order[first], order[second] = order[second], order[first]
    return permute(input, order)


@implements("mT")
def transpose_of_matrices(self: Any) -> Any:
    """The transposes of matrices, also of a batch."""
    return matrix_transpose(self) if self.ndim < 3 else transpose(self, -2, -1)


@implements("mH adjoint")
def adjoint_of_matrices(self: Any) -> Any:
    """The conjugate transposes of matrices."""
    return transpose_of_matrices(self).conj()


@implements("H")
def adjoint_of_matrix(self: Any) -> Any:
    return matrix_transpose(self).conj()


@implements("t T")
def matrix_transpose(self: Any) -> Any:
    """The transpose of a matrix."""
    if self.ndim != 2 and self.ndim:
        raise refusal(f"t of {self.ndim} dimensions") if self.ndim > 2 else refusal("t of a vector")
    return transpose(self, 0, 1) if self.ndim else self


@implements("movedim moveaxis")
def movedim(input: Any, source: int, destination: int) -> Any:  # noqa: A002
    """The tensor with a dimension at another place."""
    order = list(range(input.ndim))
    order.insert(axis(destination, input.ndim, "movedim"), order.pop(axis(source, input.ndim, "movedim")))
    return permute(input, order)


@implements("unsqueeze")
def unsqueeze(input: Any, dim: int) -> Any:  # noqa: A002
    """A dimension of size 1: a sparse one, unless it lies between dense ones."""
    n, place = input.sparse_dim(), axis(dim, input.ndim + 1, "unsqueeze")
    at, values = indices_and_values(input)
    shape = [*input.shape[:place], 1, *input.shape[place:]]
    if place > n:
        return like(input, at, values.unsqueeze(place - n + 1), shape)
    return like(
        input, cat_dense([at[:place], at[:1] * 0 if n else at.new_zeros(1, at.shape[1]), at[place:]]), values, shape
    )


@implements("select")
def select(input: Any, dim: int, index: int) -> Any:  # noqa: A002
    """The part at an index of a dimension; dense where it was the last sparse one."""
    dim, n = axis(dim, input.ndim, "select"), input.sparse_dim()
    size, index = input.shape[dim], int64(index, "select: index")
    if not -size <= index < size:
        raise BoundsError(f"select: index {index} is out of bounds for dimension {dim} with size {size}")
    at, values = indices_and_values(input)
    shape = [*input.shape[:dim], *input.shape[dim + 1 :]]
    if dim >= n:
        return like(input, at, values.select(dim - n + 1, index), shape)
    chosen = (at[dim] == index % size).nonzero().view(-1)
    values = values.index_select(0, chosen)
    if n == 1:
        return values.sum(0, dtype=values.dtype)
    return unchecked(cat_dense([at[:dim], at[dim + 1 :]])[:, chosen], values, shape, False, input._distinct)


@implements("__getitem__")
def getitem(self: Any, index: Any) -> Any:
    """Integers, None, ... and whole slices."""
    parts = index if isinstance(index, tuple) else (index,)
    used = sum(part is not None and not isinstance(part, EllipsisType) for part in parts)
    if used > self.ndim:
        raise BoundsError(f"too many indices for a tensor of {self.ndim} dimensions")
    x, dim = self, 0
    for part in parts:
        if isinstance(part, EllipsisType):
            dim += self.ndim - used
        elif part is None:
            x, dim = x.unsqueeze(dim), dim + 1
        elif part == slice(None):
            dim += 1
        elif isinstance(part, bool) or not hasattr(part, "__index__") or (isinstance(part, Tensor) and part.ndim):
            raise refusal(f"indexing by {type(part).__name__}")
        else:
            x = x.select(dim, part.__index__())
    return x


@implements("index_select")
def index_select(input: Any, dim: int, index: Any) -> Any:  # noqa: A002
    """The parts at these indices of a dimension, in their order."""
    dim, n = axis(dim, input.ndim, "index_select"), input.sparse_dim()
    if not isinstance(index, Tensor) or index._in_coordinates or index.ndim > 1 or index.dtype.kind not in "iu":
        raise TypeError("index_select: index must be a vector of integers")
    at, values = indices_and_values(input)
    shape = [*input.shape[:dim], index.numel(), *input.shape[dim + 1 :]]
    if dim >= n:
        return like(input, at, values.index_select(dim - n + 1, index), shape)
    index, size = index.view(-1).to(INT64), input.shape[dim]
    if len(index) and not 0 <= int(index.min()) <= int(index.max()) < size:
        raise BoundsError(f"index_select: an index is out of bounds for dimension {dim} with size {size}")
    sorted_at, order = sort(at[dim], stable=True)
    i, j = equal_pairs(sorted_at, index)
    chosen = order[i]
    new = cat_dense([at[:dim, chosen], j.unsqueeze(0), at[dim + 1 :, chosen]])
    return unchecked(new, values.index_select(0, chosen), shape, False, input._distinct)


@implements("unbind")
def unbind(input: Any, dim: int = 0) -> Any:  # noqa: A002
    """All parts of a dimension."""
    return tuple(input.select(dim, i) for i in range(input.shape[dim]))


def _sparse(tensors: Any, name: str) -> list[SparseTensor]:
    listed = list(tensors)
    for i, x in enumerate(listed):
        if not isinstance(x, SparseTensor):
            raise Error(f"{name}: Concatenating sparse tensors, but a dense tensor was found at position {i}")
        if x.ndim != listed[0].ndim or x.sparse_dim() != listed[0].sparse_dim():
            raise ShapeError(f"{name}: tensors of different numbers of sparse and dense dimensions")
    return listed


@implements("cat concat concatenate")
def cat(tensors: Any, dim: int = 0) -> Any:
    """Sparse tensors one behind another in a sparse dimension."""
    listed = _sparse(tensors, "cat")
    first = listed[0]
    dim = axis(dim, first.ndim, "cat")
    if dim >= first.sparse_dim():
        raise refusal("cat in a dense dimension")
    coordinates, values, start = [], [], 0
    for i, x in enumerate(listed):
        if [*x.shape[:dim], *x.shape[dim + 1 :]] != [*first.shape[:dim], *first.shape[dim + 1 :]]:
            raise ShapeError(f"cat: shape {tuple(x.shape)} at position {i} does not fit {tuple(first.shape)}")
        at, numbers = indices_and_values(x)
        moved = at.clone()
        moved[dim] += start
        coordinates.append(moved)
        values.append(numbers)
        start += x.shape[dim]
    shape = [*first.shape[:dim], start, *first.shape[dim + 1 :]]
    return unchecked(cat_dense(coordinates, 1), cat_dense(values), shape, False, all(x._distinct for x in listed))


@implements("stack")
def stack(tensors: Any, dim: int = 0) -> Any:
    """Sparse tensors in a new sparse dimension."""
    listed = _sparse(tensors, "stack")
    if axis(dim, listed[0].ndim + 1, "stack") > listed[0].sparse_dim():
        raise refusal("stack in a dense dimension")
    return cat([unsqueeze(x, dim) for x in listed], dim)


@implements("vstack row_stack")
def vstack(tensors: Any) -> Any:
    """Matrices one below another."""
    return cat([x if x.ndim > 1 else unsqueeze(x, 0) for x in _sparse(tensors, "vstack")], 0)


@implements("hstack")
def hstack(tensors: Any) -> Any:
    """Matrices side by side."""
    listed = _sparse(tensors, "hstack")
    return cat(listed, 0 if listed[0].ndim == 1 else 1)
