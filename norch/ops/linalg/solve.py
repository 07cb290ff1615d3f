"""Systems of equations, inverses, determinants and exponentials of square matrices, with their derivatives."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..._package.typing import Tensor
from ...autograd.differentiable import differentiable
from ...autograd.grad_mode import mode
from ...autograd.levels import holds
from ...errors import LinAlgError, ShapeError
from .._autocast import autocast
from .._operand import tensor_of
from ..copy import cat
from ..create import arange, eye
from ..matmul import matmul
from ..scan import products_of_others
from .factor import eliminated, lu_factor_ex
from .lapack import alike, call, direct, has_scipy, int32s, is_large, matrices, numpy, scipy_linalg, square, ufunc
from .spectral import svd

solve_ex_result = NamedTuple("solve_ex_result", [("result", Tensor), ("info", Tensor)])
inv_ex_result = NamedTuple("inv_ex_result", [("inverse", Tensor), ("info", Tensor)])
slogdet_result = NamedTuple("slogdet_result", [("sign", Tensor), ("logabsdet", Tensor)])


def _regular(name: str, function: Any, *tensors: Tensor) -> Tensor:
    """Calls a solver. The error names the singular matrix. For a matrix with NaN the result is NaN."""

    def solved(a: Any, *rest: Any) -> Any:
        np = numpy()
        try:
            return function(a, *rest)
        except np.linalg.LinAlgError:
            finite = np.isfinite(a).all((-1, -2))
            singular = np.flatnonzero(finite & (ufunc("slogdet")(a)[0] == 0))
            if len(singular):
                where = f"matrix {singular[0]} of the batch" if a.ndim > 2 else "the matrix"
                raise LinAlgError(f"{name}: {where} is singular") from None
            whole = np.where(finite[..., None, None], a, np.eye(a.shape[-1], dtype=a.dtype))
            return np.where(finite[..., None, None], function(whole, *rest), a.dtype.type(np.nan))

    return call(name, solved, *tensors, quiet=True)[0]


# ---- systems, inverses -----------------------------------------------------------------------------------------------


@differentiable(
    "solve",
    broadcast=True,
    grad_A=lambda g, A, out: -matmul(_solve(A.mT, g), out.mT),
    grad_B=lambda g, A: _solve(A.mT, g),
)
def _solve(A: Tensor, B: Tensor) -> Tensor:
    if A.ndim == B.ndim == 2 and is_large(B) and has_scipy():
        try:
            return direct("solve", eliminated, A, B)[0]
        except LinAlgError:
            pass  # says which matrix is singular, or that it has NaN
    return _regular("solve", ufunc("solve"), A, B)


@autocast("float32 -")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X of A X = B, or of X A = B with left=False, for A (..., N, N) and B (..., N, K) or (..., N), by LAPACK's gesv.
    Batches broadcast. B is a batch of vectors if its shape is that of A without the last axis. LinAlgError for a
    singular A.

    >>> norch.linalg.solve(norch.tensor([[2.0, 0.0], [0.0, 4.0]]), norch.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    A = square(A, "solve")
    alike(A, B, "solve")
    if B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]):
        if B.shape[-1] != A.shape[-1]:
            raise ShapeError(f"solve: A of {tuple(A.shape)} does not fit a vector of {tuple(B.shape)}")
        return _solve(A if left else A.mT, B[..., None])[..., 0]
    B = matrices(B, "solve")
    if B.shape[-2 if left else -1] != A.shape[-1]:
        raise ShapeError(f"solve: A of {tuple(A.shape)} does not fit B of {tuple(B.shape)}")
    return _solve(A, B) if left else _solve(A.mT, B.mT).mT


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> solve_ex_result:
    """(result, info): solve() that does not raise for a singular matrix, unless check_errors is True. The solution of a
    singular matrix is NaN, and its info (...), int32, is the first k for which U[k - 1, k - 1] of its LU factors is 0;
    other matrices have info 0.

    >>> norch.linalg.solve_ex(norch.tensor([[2.0, 0.0], [0.0, 4.0]]), norch.tensor([2.0, 4.0])).result
    tensor([1., 1.])
    """
    A = square(A, "solve_ex")
    try:  # few are singular
        return solve_ex_result(solve(A, B, left=left), int32s(*A.shape[:-2], like=A))
    except LinAlgError:
        A, info, failed = _replaced(A, check_errors)
    X = solve(A, B, left=left)
    return solve_ex_result(X.where(~failed[(...,) + (None,) * (X.ndim - failed.ndim)], math.nan), info)


def _replaced(A: Tensor, check_errors: bool) -> tuple[Any, Any, Any]:
    """A with the identity in place of singular matrices, the info of all matrices, and a mask of the singular ones."""
    info = lu_factor_ex(A.detach(), check_errors=check_errors).info
    failed = info != 0
    return A.where(~failed[..., None, None], eye(A.shape[-1], dtype=A.dtype, device=A.device)), info, failed


@differentiable("inv", grad=lambda g, out: -matmul(matmul(out.mT, g), out.mT))
def _inv(A: Tensor) -> Tensor:
    if A.ndim == 2 and is_large(A) and has_scipy():
        try:
            return direct("inv", eliminated, A, eye(A.shape[-1], dtype=A.dtype, device=A.device))[0]
        except LinAlgError:
            pass
    return _regular("inv", ufunc("inv"), A)


@autocast("float32 -")
def inv(A: Tensor) -> Tensor:
    """The inverses (..., N, N) of A (..., N, N), by LAPACK's gesv with the identity on the right. LinAlgError for a
    singular matrix. solve(A, B) is faster and more accurate than inv(A) @ B.

    >>> norch.linalg.inv(norch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _inv(square(A, "inv"))


@autocast("float32 -")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> inv_ex_result:
    """(inverse, info): inv() that does not raise for a singular matrix. See solve_ex().

    >>> norch.linalg.inv_ex(norch.zeros(2, 2)).info
    tensor(1, dtype=norch.int32)
    """
    A = square(A, "inv_ex")
    try:
        return inv_ex_result(_inv(A), int32s(*A.shape[:-2], like=A))
    except LinAlgError:
        A, info, failed = _replaced(A, check_errors)
    return inv_ex_result(_inv(A).where(~failed[..., None, None], math.nan), info)


@autocast("float32 -")
def tensorsolve(input: Tensor, other: Tensor, dims: Any = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B, for A = input and B = other. The axes dims of A move to its end; A then
    counts as a matrix of B.numel() rows.

    >>> norch.linalg.tensorsolve(2 * norch.eye(6).reshape(2, 3, 6), norch.ones(2, 3))
    tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000])
    """
    A, B = tensor_of(input, "tensorsolve"), tensor_of(other, "tensorsolve")
    if dims is not None:
        A = A.movedim(dims, [*range(A.ndim - len(dims), A.ndim)])
    shape = A.shape[B.ndim :]
    if math.prod(shape) != B.numel() or A.numel() != B.numel() ** 2:
        raise ShapeError(f"tensorsolve: A of {tuple(A.shape)} is no square matrix for B of {tuple(B.shape)}")
    return solve(A.reshape(B.numel(), -1), B.flatten()).reshape(shape)


@autocast("float32 -")
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A = input with respect to tensordot. A counts as a matrix whose rows are its first ind axes.

    >>> norch.linalg.tensorinv(norch.eye(6).reshape(2, 3, 6), ind=2).shape
    norch.Size([6, 2, 3])
    """
    A = tensor_of(input, "tensorinv")
    rows, columns = A.shape[:ind], A.shape[ind:]
    if ind <= 0 or math.prod(rows) != math.prod(columns):
        raise ShapeError(f"tensorinv: A of {tuple(A.shape)} is no square matrix when cut at axis {ind}")
    return inv(A.reshape(math.prod(rows), -1)).reshape((*columns, *rows))


# ---- determinants ----------------------------------------------------------------------------------------------------


_MOST_BY_MINORS = 12  # rows, of which the minors have n^4 elements


def _by_minors(A: Tensor) -> Tensor:
    """The cofactors (..., N, N) by their definition. Their derivatives exist at every rank; those of singular vectors
    do not where singular values are equal.
    """
    n = A.shape[-1]
    row, column = arange(n, device=A.device)[:, None], arange(n - 1, device=A.device)
    other_columns = column + (column >= row)  # (N, N - 1): all numbers but that of the row
    minors = A[..., other_columns, :][..., other_columns].transpose(-3, -2)
    cofactors = _det(minors)
    return cofactors.where((row + row.mT) % 2 == 0, -cofactors)


def _cofactors(A: Tensor, det: Tensor) -> Tensor:
    """det(A) A^-T. For matrices that are singular or nearly so this is inaccurate, and the cofactors come from A = U S
    V^T: det(U) det(V) U cof(S) V^T, where the cofactors of S are products of all singular values but one. For complex
    matrices U and V are conjugated.
    """
    inverse, info = inv_ex(A.detach())
    condition = A.detach().abs().sum(-2).amax(-1) * inverse.abs().sum(-2).amax(-1)
    regular = ((info == 0) & (condition < 1e6))[..., None, None]
    identity = eye(A.shape[-1], dtype=A.dtype, device=A.device)
    if holds(regular):
        return det[..., None, None] * (_inv(A) if mode.enabled else inverse).mT
    of_regular = det[..., None, None] * _inv(A.where(regular, identity)).mT
    if mode.enabled and A.shape[-1] <= _MOST_BY_MINORS:
        return of_regular.where(regular, _by_minors(A))
    U, S, Vh = svd(A.where(~regular, identity.cumsum(-1).tril()))  # whose singular values differ
    products = products_of_others(S, -1) * products_of_others(S, -1, True)
    sign = _det(U.detach()) * _det(Vh.detach())
    cofactors = matmul(U.conj() * products.to(U.dtype)[..., None, :], Vh.conj())
    return of_regular.where(regular, (sign / sign.abs())[..., None, None] * cofactors)


@differentiable("det", grad=lambda g, A, out: g[..., None, None] * (_cofactors(A, out) if A.numel() else A))
def _det(A: Tensor) -> Tensor:
    return call("det", lambda a: _nan_of_nan(a, ufunc("det")(a)), A)[0]


def _nan_of_nan(a: Any, found: Any) -> Any:
    """found, with NaN for a matrix that has a NaN. LAPACK may report such a matrix as singular."""
    np = numpy()
    if np.isfinite(np.dot(a.reshape(-1), a.reshape(-1))):
        return found
    return np.where(np.isnan(a).any((-1, -2)), found.dtype.type(np.nan), found)


def det(A: Tensor) -> Tensor:
    """The determinants (...) of A (..., N, N), by LAPACK's getrf. The derivative exists for singular matrices too.

    >>> norch.linalg.det(norch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5.)
    """
    return _det(square(A, "det"))


def slogdet(A: Tensor) -> slogdet_result:
    """(sign, logabsdet) of the determinants of A (..., N, N), by LAPACK's getrf: det = sign * exp(logabsdet), without
    overflow. A singular matrix has 0 and -inf. The sign of a complex determinant has the absolute value 1.

    >>> norch.linalg.slogdet(norch.tensor([[1.0, 0.0], [0.0, -1.0]])).sign
    tensor(-1.)
    """

    def both(a: Any) -> Any:
        return tuple([_nan_of_nan(a, x) for x in ufunc("slogdet")(a)])

    sign, logabsdet = call("slogdet", both, square(A, "slogdet"))
    return slogdet_result(_sign_of_det(A, sign) if A.is_complex() else sign, _log_abs_det(A, logabsdet))


@differentiable(
    "slogdet", grad=lambda g, A: g[..., None, None] * inv_ex(A).inverse.mH, inputs=("A",), holomorphic=False
)
def _log_abs_det(A: Tensor, found: Tensor) -> Tensor:
    return found


def _sign_grad(g: Tensor, A: Tensor, out: Tensor) -> Tensor:
    """The imaginary part of tr(A^-1 dA) rotates the sign."""
    turned = (g.conj() * out).imag
    return (turned * -1j)[..., None, None] * inv_ex(A).inverse.mH


@differentiable("slogdet", grad=_sign_grad, inputs=("A",), holomorphic=False)
def _sign_of_det(A: Tensor, found: Tensor) -> Tensor:
    return found


def logdet(A: Tensor) -> Tensor:
    """The logarithms of the determinants of A (..., N, N): NaN for negative ones, -inf for 0."""
    sign, logabsdet = slogdet(A)
    return sign.log() + logabsdet


# ---- exponentials ----------------------------------------------------------------------------------------------------


def _exp_grad(g: Tensor, A: Tensor) -> Tensor:
    """The upper right block of exp([[A^T, g], [0, A^T]]) (N. Higham, "Functions of matrices", 2008, theorem 3.6). It is
    linear in g, which is scaled to a maximum of 1 first: for a large block the algorithm squares more often than A
    needs, which loses accuracy."""
    n, T = A.shape[-1], A.mT
    if not n:
        return A.new_zeros(A.shape)
    g = g.broadcast_to(A.shape)
    size = g.detach().abs().amax((-2, -1), True)
    size = size.where((size > 0) & size.isfinite(), 1)
    block = cat([cat([T, g / size], -1), cat([T.new_zeros(T.shape), T], -1)], -2)
    return _matrix_exp(block)[..., :n, n:] * size


@differentiable("matrix_exp", grad=_exp_grad)
def _matrix_exp(A: Tensor) -> Tensor:
    if not A.numel():
        return A.clone()
    return call("matrix_exp", scipy_linalg().expm, A)[0]


def matrix_exp(input: Tensor) -> Tensor:
    """The sum of A^k / k! over all k, for A (..., N, N). scipy.linalg.expm computes it by scaling and squaring (Al-Mohy
    and Higham 2009, A new scaling and squaring algorithm for the matrix exponential).

    >>> norch.linalg.matrix_exp(norch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _matrix_exp(square(input, "matrix_exp"))
