"""Linear algebra under the names and with the arguments that stand on ``torch`` and Tensor itself."""

# ruff: noqa: F401, N803, N806  (names that are the same in norch.linalg; matrices are capitals, as in PyTorch)

from __future__ import annotations

from typing import Any, NamedTuple

from ..._typing import Tensor
from ..create import eye
from . import factor, spectral
from .factor import lu_factor_ex, lu_unpack, solve_triangular
from .lapack import square
from .solve import det, logdet, matrix_exp, slogdet
from .solve import inv as inverse


class svd_result(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor


class triangular_solve_result(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor


def cholesky(input: Tensor, upper: bool = False) -> Tensor:  # noqa: A002
    """linalg.cholesky() of symmetric positive definite matrices (..., N, N)."""
    return factor.cholesky(input, upper=upper)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X of A X = B, B (..., N, K), given L, (..., N, N), with A = L L^T, or A = L^T L with upper.

    >>> norch.cholesky_solve(norch.ones(2, 1), norch.eye(2) * 2)
    tensor([[0.2500],
            [0.2500]])
    """
    L = square(L, "cholesky_solve")
    if upper:
        return solve_triangular(L, solve_triangular(L.mT, B, upper=False), upper=True)
    return solve_triangular(L.mT, solve_triangular(L, B, upper=False), upper=True)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A = L L^T, or of L^T L with upper, given L (..., N, N)."""
    return cholesky_solve(eye(square(L, "cholesky_inverse").shape[-1], dtype=L.dtype, device=L.device), L, upper)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """linalg.lu_factor(): (LU, pivots), and info with get_infos."""
    found = lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    return tuple(found) if get_infos else (found.LU, found.pivots)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """linalg.lu_solve() with the right side first."""
    return factor.lu_solve(LU_data, LU_pivots, b)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:  # noqa: A002
    """linalg.pinv() with singular values up to rcond times the largest taken as 0."""
    return spectral.pinv(input, rtol=rcond)


def qr(input: Tensor, some: bool = True) -> factor.qr_result:  # noqa: A002
    """linalg.qr(): "reduced", or "complete" without some."""
    return factor.qr(input, "reduced" if some else "complete")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> svd_result:  # noqa: A002
    """(U, S, V) with input = U diag(S) V^H: linalg.svd() with V in place of V^H, reduced with some. Without
    compute_uv U and V are zeros."""
    U, S, Vh = spectral.svd(input, full_matrices=not some)
    if not compute_uv:
        m, n = input.shape[-2:]
        U, Vh = input.new_zeros((*input.shape[:-2], m, m)), input.new_zeros((*input.shape[:-2], n, n))
    return svd_result(U, S, Vh.mH)


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> triangular_solve_result:
    """(solution, A) of A X = b, or A^T X = b with transpose; linalg.solve_triangular() has the other order."""
    A = square(A, "triangular_solve")
    solution = solve_triangular(A.mT if transpose else A, b, upper=upper != transpose, unitriangular=unitriangular)
    return triangular_solve_result(solution, A.clone())
