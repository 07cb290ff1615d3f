"""The linear algebra of the array API standard (its extension `linalg`), and what of it the namespace itself has."""

from __future__ import annotations

from typing import Any

from .. import linalg as _linalg
from .._package.exports import publish
from ..dtype import dtype as DType
from ..linalg import inv, matrix_power, pinv, svdvals
from ..ops.composed.products import outer as _outer
from ..ops.composed.products import tensordot as _tensordot
from ..ops.linalg.factor import qr_result
from ..ops.linalg.solve import slogdet_result
from ..ops.linalg.spectral import eigh_result, svd_result
from ..ops.matmul import matmul as _matmul
from ..tensor import Tensor
from ._checks import of_one_dtype, sum_dtype
from ._functions import sum as _sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip

det, eigvalsh = _linalg.det, _linalg.eigvalsh


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor L of x = L L^T, or its transpose with upper."""
    return _linalg.cholesky(x, upper=upper)


def eigh(x: Tensor, /) -> eigh_result:
    """The eigenvalues, ascending, and eigenvectors of symmetric matrices."""
    return _linalg.eigh(x)


def qr(x: Tensor, /, *, mode: str = "reduced") -> qr_result:
    """x = Q R; mode: "reduced" or "complete"."""
    return _linalg.qr(x, mode)


def slogdet(x: Tensor, /) -> slogdet_result:
    """The sign of the determinant, and the logarithm of its absolute value."""
    return _linalg.slogdet(x)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> svd_result:
    """x = U diag(S) Vh."""
    return _linalg.svd(x, full_matrices)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The y of x1 y = x2; x2 is one vector where it is 1-d, else matrices."""
    x1, x2 = of_one_dtype(x1, x2)
    if x2.ndim == 1:
        return _linalg.solve(x1, x2.unsqueeze(1)).squeeze(-1)
    shape = x1.shape[:-2]
    return _linalg.solve(x1, x2.expand((*shape, *x2.shape[-2:])) if x2.ndim == 2 else x2)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product along an axis of size 3."""
    return _linalg.cross(*of_one_dtype(x1, x2), dim=axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all elements of two vectors."""
    return _outer(*of_one_dtype(x1, x2))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices (..., M, N)."""
    return x.diagonal(offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sums of the diagonals of matrices (..., M, N)."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=sum_dtype(x, dtype))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """x with its last two axes exchanged."""
    return x.transpose(-2, -1)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norms of matrices (..., M, N)."""
    return _linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values above rtol times the largest."""
    return _linalg.matrix_rank(x, rtol=rtol)


def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """Norms of vectors along axes; of all elements for None."""
    return _linalg.vector_norm(x, ord, axis, keepdims)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Sums of products over several axes."""
    return _tensordot(*of_one_dtype(x1, x2), axes=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis of equal size in both arrays; the other axes broadcast."""
    x1, x2 = of_one_dtype(x1, x2)
    return (x1.movedim(axis, -1).conj() * x2.movedim(axis, -1)).sum(-1, dtype=x1.dtype)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices (..., M, K) and (..., K, N), or of vectors."""
    return _matmul(*of_one_dtype(x1, x2))


publish(globals())
