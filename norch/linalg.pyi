"""Written by `make stubs` from the code; a test fails when it is out of date."""

import builtins
from collections.abc import Sequence
from norch._package.typing import Operand
from norch.dtype import dtype
from norch.errors import LinAlgError as LinAlgError
from norch.ops.linalg.eigen import eig_result
from norch.ops.linalg.factor import cholesky_ex_result, lu_factor_ex_result, lu_factor_result, lu_result, qr_result
from norch.ops.linalg.solve import inv_ex_result, slogdet_result, solve_ex_result
from norch.ops.linalg.spectral import eigh_result, lstsq_result, svd_result
from norch.ops.reduce import Dims
from norch.tensor import Tensor
from typing import Any, overload

def cholesky(input: Tensor, *, upper: bool = ..., out: Tensor | None = ...) -> Tensor: """L, lower triangular, with A = L L^H, of a positive definite input A (..., N, N); its conjugate transpose with upper."""
def cholesky_ex(input: Tensor, *, upper: bool = ..., check_errors: bool = ..., out: tuple[Tensor, ...] | None = ...) -> cholesky_ex_result: """(L, info) as cholesky(), which for a matrix that is not positive definite raises with check_errors only."""
def cond(input: Tensor, p: Any = ..., *, out: Tensor | None = ...) -> Tensor: """The condition numbers (...) |A| |A^-1| of an input A: in the norm p of linalg.matrix_norm() for square matrices, or the ratio of the largest and smallest singular values (2, the default; -2 is its reciprocal). inf for singular matrices, 0 for empty ones."""
def cross(input: Tensor, other: Tensor, *, dim: int = ..., out: Tensor | None = ...) -> Tensor: """The cross product of vectors of three elements along dim; the other axes broadcast."""
def det(A: Tensor, *, out: Tensor | None = ...) -> Tensor: """The determinants (...) of A (..., N, N); with a derivative for singular matrices too."""
def diagonal(A: Tensor, *, offset: int = ..., dim1: int = ..., dim2: int = ...) -> Tensor: """The diagonals (..., K) of matrices (..., M, N): norch.diagonal() of the last two axes."""
def eig(input: Tensor, *, out: tuple[Tensor, ...] | None = ...) -> eig_result: """(eigenvalues, eigenvectors) of the input A (..., N, N): complex w (..., N), in no order, and the columns of V (..., N, N), of norm 1, with A V = V diag(w)."""
def eigh(input: Tensor, UPLO: str = ..., *, out: tuple[Tensor, ...] | None = ...) -> eigh_result: """(eigenvalues, eigenvectors) of a symmetric or Hermitian input A (..., N, N): w (..., N), real, ascending, and the columns of V (..., N, N), with A = V diag(w) V^H. Only the triangle UPLO, "L" or "U", is read."""
def eigvals(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The eigenvalues (..., N) of input (..., N, N), complex, in no order; as eig()."""
def eigvalsh(input: Tensor, UPLO: str = ..., *, out: Tensor | None = ...) -> Tensor: """The eigenvalues (..., N) of a symmetric input (..., N, N), ascending; as eigh()."""
def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = ...) -> Tensor: """The first N columns of H_1 ... H_K, (..., M, N), for the reflections in the columns of input (..., M, N), M >= N, and their factors tau (..., K), K <= N: the Q of geqrf(). ShapeError for other shapes."""
def inv(A: Tensor, *, out: Tensor | None = ...) -> Tensor: """The inverses (..., N, N) of A (..., N, N). LinAlgError for singular ones. solve(A, B) is faster than inv(A) @ B, and more accurate."""
def inv_ex(A: Tensor, *, check_errors: bool = ..., out: tuple[Tensor, ...] | None = ...) -> inv_ex_result: """(inverse, info) as inv(); see solve_ex() for singular matrices."""
def lstsq(input: Tensor, b: Tensor, rcond: float | None = ..., *, driver: str | None = ..., out: tuple[Tensor, ...] | None = ...) -> lstsq_result: """(solution, residuals, rank, singular_values): the X (..., N, K) that makes |A X - B| smallest, A = input (..., M, N), B = b (..., M, K) or (..., M), the squares of that norm per column (for M > N and full rank, else empty), the rank of A, and its singular values with driver "gelsd" or "gelss" (else empty)."""
def lu(A: Tensor, *, pivot: bool = ..., out: tuple[Tensor, ...] | None = ...) -> lu_result: """(P, L, U) with A = P L U: a permutation (..., M, M), unit lower (..., M, K) and upper (..., K, N) triangular factors of A (..., M, N), K = min(M, N)."""
def lu_factor(A: Tensor, *, pivot: bool = ..., out: tuple[Tensor, ...] | None = ...) -> lu_factor_result: """(LU, pivots) of A = P L U with partial pivoting, A (..., M, N). LU (..., M, N) holds U and, below its diagonal, L without its unit diagonal. pivots, int32 (..., min(M, N)): the row that each step swapped, counted from 1. LinAlgError if U has a zero on its diagonal; lu_factor_ex() and lu() return such factors."""
def lu_factor_ex(A: Tensor, *, pivot: bool = ..., check_errors: bool = ..., out: tuple[Tensor, ...] | None = ...) -> lu_factor_ex_result: """(LU, pivots, info) as lu_factor(); info (...) is the first k of which U[k - 1, k - 1] is 0, else 0."""
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = ..., adjoint: bool = ..., out: Tensor | None = ...) -> Tensor: """X of A X = B (of X A = B without left; of A^H instead with adjoint), given lu_factor(A)."""
def matmul(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The matrix product by NumPy's rules: vectors, matrices, and batches that broadcast."""
def matrix_exp(input: Tensor) -> Tensor: """The sums of A^k / k! over all k, for an input A (..., N, N)."""
def matrix_norm(input: Tensor, ord: Any = ..., dim: tuple[int, int] = ..., keepdim: bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """A norm of the matrices along the axes dim: "fro"; the largest (inf, 1) or smallest (-inf, -1) sum of absolute values of a row (inf) or a column (1); the largest (2) or smallest (-2) singular value, or their sum ("nuc"). Of an empty matrix the largest and the sum are 0."""
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = ...) -> Tensor: """The n-th power of square matrices (..., M, M): the identity for 0, powers of the inverse for negative n. LinAlgError if there is no inverse, ShapeError if a matrix is not square."""
def matrix_rank(input: Tensor, tol: Any = ..., hermitian: bool = ..., *, atol: Any = ..., rtol: Any = ..., out: Tensor | None = ...) -> Tensor: """How many singular values (..., int64) of the input A (..., M, N) exceed max(atol, rtol * the largest), as in pinv(); tol is atol with an rtol of 0. hermitian: A is symmetric, which is faster."""
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The product of several matrices, multiplied in the order that costs least; the first and the last may be vectors."""
def norm(input: Tensor, ord: Any = ..., dim: Dims = ..., keepdim: bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """vector_norm() of all elements or along one axis; matrix_norm() of a matrix or along two axes when ord is given."""
def pinv(input: Tensor, rcond: Any = ..., hermitian: bool = ..., *, atol: Any = ..., rtol: Any = ..., out: Tensor | None = ...) -> Tensor: """The Moore-Penrose pseudoinverse (..., N, M) of the input A (..., M, N)."""
def qr(A: Tensor, mode: str = ..., *, out: tuple[Tensor, ...] | None = ...) -> qr_result: """(Q, R) with A = Q R, Q of orthonormal columns and R upper triangular, A (..., M, N)."""
def slogdet(A: Tensor, *, out: tuple[Tensor, ...] | None = ...) -> slogdet_result: """(sign, logabsdet) of the determinants of A (..., N, N): det = sign * exp(logabsdet), without overflow. A singular matrix has 0 and -inf. The sign of a complex determinant has absolute value 1."""
def solve(A: Tensor, B: Tensor, *, left: bool = ..., out: Tensor | None = ...) -> Tensor: """X of A X = B, or of X A = B without left, for A (..., N, N) and B (..., N, K) or (..., N), whose batches broadcast. B is a batch of vectors when its shape is that of A less the last axis. LinAlgError for singular A."""
def solve_ex(A: Tensor, B: Tensor, *, left: bool = ..., check_errors: bool = ..., out: tuple[Tensor, ...] | None = ...) -> solve_ex_result: """(result, info) as solve(), which for a singular matrix raises with check_errors only: its solution is NaN, and its info (...) the first k of which U[k - 1, k - 1] of its LU factors is 0; else info is 0."""
def solve_triangular(input: Tensor, B: Tensor, *, upper: bool, left: bool = ..., unitriangular: bool = ..., out: Tensor | None = ...) -> Tensor: """X of A X = B, or of X A = B without left, for a triangular input A (..., N, N); the other triangle is not read."""
def svd(A: Tensor, full_matrices: bool = ..., *, driver: str | None = ..., out: tuple[Tensor, ...] | None = ...) -> svd_result: """(U, S, Vh) with A = U diag(S) Vh, A (..., M, N): singular values S (..., K), descending, K = min(M, N), and orthonormal U (..., M, M) and Vh (..., N, N), of which full_matrices=False leaves the K that belong to S."""
def svdvals(A: Tensor, *, driver: str | None = ..., out: Tensor | None = ...) -> Tensor: """The singular values (..., K) of A (..., M, N), descending; as svd()."""
def tensorinv(input: Tensor, ind: int = ..., *, out: Tensor | None = ...) -> Tensor: """The inverse of tensordot with the input A, taken as a matrix whose rows are its first ind axes."""
def tensorsolve(input: Tensor, other: Tensor, dims: Any = ..., *, out: Tensor | None = ...) -> Tensor: """X with tensordot(A, X, X.ndim) = B, of A = input and B = other: A is taken as a matrix of B.numel() rows, after its axes dims moved to the end."""
def vander(x: Tensor, *, N: int | None = ...) -> Tensor: """The Vandermonde matrices (..., n, N) of vectors x (..., n): columns x^0 ... x^(N - 1). N is n unless given. ShapeError for an x of no axis."""
def vecdot(x: Tensor, y: Tensor, *, dim: int = ..., out: Tensor | None = ...) -> Tensor: """The sum of products along an axis, x conjugated; the others broadcast."""
def vector_norm(input: Tensor, ord: float = ..., dim: Dims = ..., keepdim: bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The ord-th root of the sum of |x| ** ord over all elements, or over the axes dim."""
