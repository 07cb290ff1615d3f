"""Linear algebra by the names and arguments of ``torch`` and of methods of Tensor."""

# ruff: noqa: F401  (names that are the same in norch.linalg; matrices are capitals, as in PyTorch)

from __future__ import annotations

from typing import Any, NamedTuple

from ..._binding.numbers import int64
from ..._package.typing import Tensor
from ...errors import ArgumentError
from .._autocast import autocast
from .._public import publish_operations
from ..create import eye
from ..random import randn
from . import factor, householder, solve, spectral
from .factor import lu_factor_ex, lu_unpack, solve_triangular
from .lapack import matrices, square
from .lobpcg import lobpcg
from .solve import slogdet_result

svd_result = NamedTuple("svd_result", [("U", Tensor), ("S", Tensor), ("V", Tensor)])
triangular_solve_result = NamedTuple("triangular_solve_result", [("solution", Tensor), ("cloned_coefficient", Tensor)])


@autocast("float32 -")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """linalg.cholesky() of symmetric positive definite matrices (..., N, N).

    >>> norch.cholesky(norch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return factor.cholesky(input, upper=upper)


@autocast("float32 -")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X (..., N, K) of A X = input. input2 is L (..., N, N) with A = L L^H, or A = L^H L with upper.

    >>> norch.cholesky_solve(norch.ones(2, 1), norch.eye(2) * 2)
    tensor([[0.2500],
            [0.2500]])
    """
    L = square(input2, "cholesky_solve")
    if upper:
        return solve_triangular(L, solve_triangular(L.mH, input, upper=False), upper=True)
    return solve_triangular(L.mH, solve_triangular(L, input, upper=False), upper=True)


@autocast("float32 -")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A = L L^H, or of A = L^H L with upper. input is L (..., N, N).

    >>> norch.cholesky_inverse(norch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 0.0625]])
    """
    L = square(input, "cholesky_inverse")
    if L.dtype.is_complex:  # LAPACK's routine takes the diagonal to be real
        return cholesky_solve(eye(L.shape[-1], dtype=L.dtype, device=L.device), L, upper)
    return factor.inverse_of_product(L.mT if upper else L)


def det(input: Tensor) -> Tensor:
    """The determinant of matrices: linalg.det().

    >>> norch.det(norch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(8.)
    """
    return solve.det(input)


def logdet(input: Tensor) -> Tensor:
    """The logarithm of det(). It is NaN for a negative determinant, -inf for 0.

    >>> norch.logdet(norch.eye(2))
    tensor(0.)
    """
    return solve.logdet(input)


def slogdet(input: Tensor) -> slogdet_result:
    """The sign and the logarithm of the absolute determinant: linalg.slogdet().

    >>> norch.slogdet(norch.tensor([[-1.0, 0.0], [0.0, 1.0]]))
    slogdet_result(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    return solve.slogdet(input)


def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of matrices: linalg.matrix_exp().

    >>> norch.matrix_exp(norch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return solve.matrix_exp(input)


def inverse(input: Tensor) -> Tensor:
    """The inverse of matrices: linalg.inv().

    >>> norch.inverse(norch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return solve.inv(input)


def geqrf(input: Tensor) -> householder.geqrf_result:
    """(a, tau) of the QR decomposition of input (..., M, N): R in the upper triangle of a, and below it the reflections
    whose product is Q, with the factors tau. householder_product() and ormqr() take both; linalg.qr() gives Q and R.

    >>> a, tau = norch.geqrf(norch.ones(3, 2))
    >>> a.shape, tau.shape
    (norch.Size([3, 2]), norch.Size([2]))
    """
    return householder.geqrf(input)


def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """linalg.householder_product().

    >>> a, tau = norch.geqrf(norch.ones(3, 2))
    >>> norch.orgqr(a, tau).shape
    norch.Size([3, 2])
    """
    return householder.householder_product(input, input2)


def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q input3, or input3 Q with left=False. input and input2 are the results of geqrf(), which describe Q. With
    transpose Q^H replaces Q.

    >>> a, tau = norch.geqrf(norch.ones(3, 2))
    >>> norch.ormqr(a, tau, norch.ones(3, 4)).shape
    norch.Size([3, 4])
    """
    return householder.ormqr(input, input2, input3, left, transpose)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """linalg.lu_factor(): (LU, pivots), and with get_infos also info.

    >>> LU, pivots = norch.lu(norch.tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> pivots
    tensor([2, 2], dtype=norch.int32)
    """
    factors = lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    return tuple(factors) if get_infos else (factors.LU, factors.pivots)


@autocast("float32 -")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """linalg.lu_solve() with the right side first.

    >>> norch.lu_solve(norch.ones(2, 1), *norch.lu(norch.tensor([[2.0, 0.0], [0.0, 4.0]])))
    tensor([[0.5000],
            [0.2500]])
    """
    return factor.lu_solve(LU_data, LU_pivots, input)


@autocast("float32 -")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """linalg.pinv(). Singular values up to rcond times the largest count as 0.

    >>> norch.pinverse(norch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return spectral.pinv(input, rtol=rcond)


@autocast("float32 -")
def qr(input: Tensor, some: bool = True) -> factor.qr_result:
    """linalg.qr(): in the mode "reduced", or "complete" with some=False.

    >>> Q, R = norch.qr(norch.ones(3, 2))
    >>> Q.shape, R.shape
    (norch.Size([3, 2]), norch.Size([2, 2]))
    """
    return factor.qr(input, "reduced" if some else "complete")


@autocast("float32 -")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> svd_result:
    """(U, S, V) with input = U diag(S) V^H: linalg.svd(), but with V instead of V^H. some=False gives the full
    matrices. With compute_uv=False U and V are zeros.

    >>> norch.svd(norch.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    U, S, Vh = spectral.svd(input, full_matrices=not some)
    if not compute_uv:
        m, n = input.shape[-2:]
        U, Vh = input.new_zeros((*input.shape[:-2], m, m)), input.new_zeros((*input.shape[:-2], n, n))
    return svd_result(U, S, Vh.mH)


@autocast("float32 -")
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> triangular_solve_result:
    """(solution, A) of A X = input, or of A^T X = input with transpose. linalg.solve_triangular() takes the arguments
    in the other order.

    >>> norch.triangular_solve(norch.ones(2, 1), norch.tensor([[2.0, 0.0], [0.0, 4.0]])).solution
    tensor([[0.5000],
            [0.2500]])
    """
    A = square(A, "triangular_solve")
    solution = solve_triangular(A.mT if transpose else A, input, upper=upper != transpose, unitriangular=unitriangular)
    return triangular_solve_result(solution, A.clone())


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> svd_result:
    """(U, S, V) with A - M = U diag(S) V^H approximately, for the q largest singular values of A (..., m, n): U (...,
    m, q), S (..., q), V (..., n, q). M broadcasts to A (None: 0).

    niter steps of subspace iteration from random vectors find the range of A (Halko, Martinsson and Tropp, Finding
    Structure with Randomness, SIAM Review 53, 2011, algorithms 4.4 and 5.1). ArgumentError for q beyond m or n.

    >>> U, S, V = norch.svd_lowrank(norch.ones(4, 3), q=1)
    >>> U.shape, S.shape, V.shape
    (norch.Size([4, 1]), norch.Size([1]), norch.Size([3, 1]))
    """
    A = matrices(A, "svd_lowrank")
    wide = A.shape[-2] < A.shape[-1]
    whole = A if M is None else A - M
    x = whole.mH if wide else whole
    q = 6 if q is None else int64(q, "svd_lowrank: q")
    steps = 2 if niter is None else int64(niter, "svd_lowrank: niter")
    if not 0 <= q <= x.shape[-1] or steps < 0:
        raise ArgumentError(f"svd_lowrank: q {q} and niter {steps} for matrices of shape {tuple(A.shape)}")
    basis = _range(x @ randn(x.shape[-1], q, dtype=x.dtype, device=x.device))
    for _ in range(steps):
        basis = _range(x @ _range(x.mH @ basis))
    U, S, Vh = spectral.svd(basis.mH @ x, full_matrices=False)
    left, right = basis @ U, Vh.mH
    return svd_result(right, S, left) if wide else svd_result(left, S, right)


def _range(x: Tensor) -> Tensor:
    return factor.qr(x).Q


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> svd_result:
    """svd_lowrank() of observations, the rows of A (..., m, n), minus the means of the columns unless center=False. The
    columns of V are the principal directions. q is min(6, m, n) by default.

    >>> norch.pca_lowrank(norch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), q=1).S
    tensor([3.1623])
    """
    A = matrices(A, "pca_lowrank")
    rank = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, rank, niter)


TAKE_OUT = """
cholesky cholesky_inverse cholesky_solve geqrf inverse lu_solve lu_unpack orgqr ormqr qr svd triangular_solve
"""
publish_operations(globals(), TAKE_OUT.split())
