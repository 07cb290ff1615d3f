"""Sums, softmax, norms and matrix products of sparse tensors. norch.sparse has some of them by name."""

from __future__ import annotations

from typing import Any

from ..errors import DTypeError, Error
from ..ops.create import full, zeros
from ..ops.view import axis
from ..tensor import Tensor
from .coo import SparseTensor, coalesced, flat_indices, groups, implements, indices_and_values, like, refusal, unchecked
from .products import bmm, product


def summed(x: Any, dim: Any, keepdim: bool, dtype: Any, name: str) -> Any:
    """The sum over dimensions: dense where no sparse dimension is left, else sparse."""
    at, values = indices_and_values(x)
    n = x.sparse_dim()
    dims = {axis(d, x.ndim, name) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    inner = [d - n + 1 for d in dims if d >= n]
    values = values.sum(inner, keepdim, dtype=dtype) if inner else values if dtype is None else values.to(dtype)
    shape = [1 if d in dims else size for d, size in enumerate(x.shape) if keepdim or d not in dims]
    outer = [d for d in range(n) if d not in dims]
    if len(outer) == n:
        return like(x, at, values, shape)
    if not outer:
        return values.sum(0, dtype=dtype).view(shape)
    kept = at[outer] if not keepdim else at * at.new_tensor([[d in outer] for d in range(n)]).to(at.dtype)
    return coalesced(unchecked(kept, values, shape))


@implements("sum")
def total(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: A002
    """The sum of all elements, or over some dimensions; integers are added in int64."""
    if dim is None:
        return indices_and_values(input)[1].sum(dtype=dtype)
    if dtype is None and input.dtype.kind in "iub":
        dtype = input.new_empty(0).sum().dtype
    return summed(input, dim, keepdim, dtype, "sum")


@implements("norm")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:  # noqa: A002
    """The norm of all elements."""
    if dim is not None or keepdim or dtype is not None:
        raise refusal("norm over some dimensions")
    return indices_and_values(coalesced(input))[1].reshape(-1).norm(2 if p in (None, "fro") else p)


@implements("any")
def any_of(input: Any, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A002
    """Whether an element is not 0."""
    if dim is not None:
        raise refusal("any over some dimensions")
    return coalesced(input)._stored.any()


def _in_order(x: Any, dtype: Any) -> SparseTensor:
    return coalesced(x if dtype is None else x.to(dtype))


def exponentials(x: Any, dim: int, dtype: Any, name: str) -> tuple[SparseTensor, Any, Any, Any]:
    """(x in order, its values, those less the largest of their slice, the sums of the exponentials of these), where the
    elements that are not stored count as -inf."""
    if not isinstance(x, SparseTensor):
        raise TypeError(f"{name}: expected a sparse tensor, not {type(x).__name__}")
    x = _in_order(x, dtype)
    if x.dtype.kind != "f":
        raise DTypeError(f"{name}: expected floats, not {x.dtype}")
    at, values = indices_and_values(x)
    other_dims = [d for d in range(x.sparse_dim()) if d != dim]
    key = flat_indices(at[other_dims], [x.shape[d] for d in other_dims]) if other_dims else at[0] * 0
    order, starts, group = groups(key)
    place = group.new_empty(len(group)).index_copy_(0, order, group)  # of each element, the number of its slice
    count = int(starts.sum())
    largest = full((count, *values.shape[1:]), float("-inf"), dtype=values.dtype, device=values.device)
    largest.index_reduce_(0, place, values.detach(), "amax")
    less = values - largest[place]
    sums = zeros(count, *values.shape[1:], dtype=values.dtype, device=values.device).index_add(0, place, less.exp())
    return x, at, less, sums[place]


def softmax_of(x: Any, dim: int, dtype: Any, is_log: bool) -> Tensor:
    """softmax() or log_softmax() of the stored elements."""
    name = "log_softmax" if is_log else "softmax"
    if isinstance(x, SparseTensor) and (dim := axis(dim, x.ndim, name)) >= x.sparse_dim():
        x = _in_order(x, dtype)
        at, values = indices_and_values(x)
        return like(x, at, getattr(values, name)(dim - x.sparse_dim() + 1))
    x, at, less, sums = exponentials(x, dim, dtype, name)
    return like(x, at, less - sums.log() if is_log else less.exp() / sums)


# ---- products ------------------------------------------------------------------------------------------------------


@implements("mm spmm dsmm matmul")
def multiplied(input: Any, mat2: Any = None, *, other: Any = None) -> Any:  # noqa: A002
    """The matrix product."""
    return product(input, other if mat2 is None else mat2, "matmul")


@implements("mv")
def mv(input: Any, vec: Any) -> Any:  # noqa: A002
    """The product of a matrix and a vector."""
    return product(input, vec, "mv")


@implements("bmm")
def batches(input: Any, mat2: Any) -> Any:  # noqa: A002
    """The products of matrices in a batch."""
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor):
        raise refusal("bmm of other than a sparse and a dense tensor")
    return bmm(input, mat2, "bmm")


@implements("addmm")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:  # noqa: A002
    """beta * input + alpha * (mat1 @ mat2)."""
    if isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor):
        raise refusal("addmm of other than a dense, a sparse and a dense tensor")
    out = product(mat1, mat2, "addmm")
    input = input.expand(out.shape)  # noqa: A001  (which refuses what would make the result larger)
    out = out if alpha == 1 else out * alpha
    return out if beta == 0 else out + (input if beta == 1 else input * beta)


@implements("linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:  # noqa: A002
    """input @ weight.T + bias."""
    if isinstance(bias, SparseTensor):
        raise refusal("linear with a sparse bias")
    if weight.ndim != 2 or (isinstance(input, SparseTensor) and isinstance(weight, SparseTensor)):
        raise Error("linear: expected one of input and weight to be sparse, and weight to be a matrix")
    out = product(input, weight.t(), "linear")
    return out if bias is None else out + bias
