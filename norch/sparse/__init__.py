"""``norch.sparse``: tensors that store the indices and values of elements that are not 0, under the names of
``torch.sparse``. docs/sparse.md shows how they are used.

>>> adjacency = norch.sparse_coo_tensor([[0, 1, 2], [1, 2, 0]], [1.0, 2.0, 3.0], (3, 3))
>>> norch.sparse.mm(adjacency, norch.ones(3, 1))
tensor([[1.],
        [2.],
        [3.]])
"""

from __future__ import annotations

from typing import Any

from .._package.exports import publish
from ..ops._operand import tensor_of
from ..ops._public import publish_operations
from ..ops.composed.products import addmm as _addmm_dense
from ..ops.matmul import mm as _mm_dense
from ..tensor import Tensor
from .coo import SparseTensor, indices_and_values
from .reductions import softmax_of, summed

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sum"]


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, which is dense unless both are sparse. The gradient of a sparse matrix has the
    indices of that matrix.

    >>> x = norch.eye(2).to_sparse()
    >>> norch.sparse.mm(x, x).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not mat1._in_coordinates and not mat2._in_coordinates:
        return _mm_dense(mat1, mat2)
    return mat1.mm(mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2), where mat1 is sparse and the other two are dense.

    >>> norch.sparse.addmm(norch.ones(2, 2), norch.eye(2).to_sparse(), norch.eye(2), alpha=2)
    tensor([[3., 1.],
            [1., 3.]])
    """
    if not (mat._in_coordinates or mat1._in_coordinates or mat2._in_coordinates):
        return _addmm_dense(mat, mat1, mat2, beta=beta, alpha=alpha)
    return mat.addmm(mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:  # noqa: A001, A002
    """The sum of all elements, or over dimensions: sparse, unless no sparse dimension is left.

    >>> norch.sparse.sum(norch.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    if not isinstance(input, SparseTensor):
        return input.sum(dtype=dtype) if dim is None else input.sum(dim, dtype=dtype)
    return (
        indices_and_values(input)[1].sum(dtype=dtype) if dim is None else summed(input, dim, False, dtype, "sparse.sum")
    )


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:  # noqa: A002
    """The softmax of the stored elements along a dimension. Elements that are not stored count as -inf.

    >>> norch.sparse.softmax(norch.eye(2).to_sparse(), 1).values()
    tensor([1., 1.])
    """
    return softmax_of(input, dim, dtype, False)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:  # noqa: A002
    """The logarithm of softmax()."""
    return softmax_of(input, dim, dtype, True)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:  # noqa: A002
    """mm(), as a function of norch itself.

    >>> norch.spmm(norch.eye(2).to_sparse(), norch.ones(2, 1)).tolist()
    [[1.0], [1.0]]
    """
    return mm(tensor_of(input, "spmm"), tensor_of(mat2, "spmm"))


publish_operations(globals(), ["spmm"], without_out=["spmm"])
dsmm = spmm

publish(globals())
