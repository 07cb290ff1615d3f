"""Cholesky, LU and QR factors, and triangular systems, with their derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._package.typing import Tensor
from ..._tensor.handle import alias
from ...autograd.derivative import derivative
from ...autograd.differentiable import differentiable
from ...autograd.function import Output, Outputs
from ...autograd.grad_mode import is_grad_enabled
from ...autograd.grad_mode import mode as recording
from ...autograd.levels import all_samples, occurs
from ...autograd.record import record
from ...errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from .._autocast import autocast
from .._operand import tensor_of
from ..composed.diagonal import diag_embed, tril, triu
from ..copy import cat
from ..create import eye, zeros
from ..matmul import matmul
from .lapack import alike, call, each, matrices, numpy, routine, square

cholesky_ex_result = NamedTuple("cholesky_ex_result", [("L", Tensor), ("info", Tensor)])
lu_result = NamedTuple("lu_result", [("P", Tensor), ("L", Tensor), ("U", Tensor)])
lu_factor_result = NamedTuple("lu_factor_result", [("LU", Tensor), ("pivots", Tensor)])
lu_factor_ex_result = NamedTuple("lu_factor_ex_result", [("LU", Tensor), ("pivots", Tensor), ("info", Tensor)])
qr_result = NamedTuple("qr_result", [("Q", Tensor), ("R", Tensor)])


# ---- several results of one node -------------------------------------------------------------------------------------


def record_factors(node_class: Any, outs: tuple[Any, ...], A: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """outs, the results of one node that saves them as `out` (the first) and `rest`."""
    if recording.enabled:
        node = record(node_class, outs[0], (A,), (tuple(alias(x) for x in outs[1:]), *others))._node
        if node is not None:
            for i, out in enumerate(outs):
                out._node = Output(node, i)
    return outs


def factors_of(out: Tensor, rest: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The results that record_factors() saved: while gradients are recorded, as functions of the input."""
    if not recording.enabled:
        return out, *rest
    node, found = out._node, tuple(alias(x) for x in (out, *rest))
    for i, x in enumerate(found):
        x._node = Output(node, i)
    return found


def unit_lower(LU: Tensor) -> Tensor:
    """The unit lower triangle L, (..., M, K), of compact factors (..., M, N), K = min(M, N)."""
    k = min(LU.shape[-2:])
    return tril(LU[..., :k], -1) + eye(LU.shape[-2], k, dtype=LU.dtype, device=LU.device)


# ---- triangular systems ----------------------------------------------------------------------------------------------


def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X of A X = B, or of X A = B without left, for a triangular input A (..., N, N); the other triangle is not read.

    unitriangular: the diagonal is taken to be 1. A zero on it gives infinities.

    >>> norch.linalg.solve_triangular(norch.tensor([[2.0, 0.0], [1.0, 1.0]]), norch.ones(2, 1), upper=False)
    tensor([[0.5000],
            [0.5000]])
    """
    A = square(input, "solve_triangular")
    B = matrices(B, "solve_triangular")
    alike(A, B, "solve_triangular")
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise ShapeError(f"solve_triangular: A of {tuple(A.shape)} does not fit B of {tuple(B.shape)}")
    if left:
        return _solve_triangular(A, B, upper, unitriangular)
    return _solve_triangular(A.mT, B.mT, not upper, unitriangular).mT


def _triangular_grad_a(g: Tensor, A: Tensor, out: Tensor, upper: bool, unit: bool) -> Tensor:
    grad = -matmul(_solve_triangular(A.mT, g, not upper, unit), out.mT)
    return triu(grad, int(unit)) if upper else tril(grad, -int(unit))


@differentiable(
    "solve_triangular",
    broadcast=True,
    grad_A=_triangular_grad_a,
    grad_B=lambda g, A, upper, unit: _solve_triangular(A.mT, g, not upper, unit),
)
def _solve_triangular(A: Tensor, B: Tensor, upper: bool, unit: bool) -> Tensor:
    if B.shape[-1] == 0 or B.shape[-2] == 0:
        return B.new_empty(numpy().broadcast_shapes(A.shape[:-2], B.shape[:-2]) + tuple(B.shape[-2:]))
    trsm = routine("trsm", A.dtype.name)

    def solved(a: Any, b: Any) -> Any:
        return trsm(1.0, a, b, lower=not upper, diag=unit)

    return call("solve_triangular", lambda a, b: each(solved, a, b), A, B)[0]


# ---- Cholesky --------------------------------------------------------------------------------------------------------


def _cholesky_grad(g: Tensor, out: Tensor) -> Tensor:
    """L^-H phi(L^H g) L^-1, made Hermitian; phi takes the lower triangle with half the diagonal (I. Murray,
    "Differentiation of the Cholesky decomposition", 2016)."""
    P = tril(matmul(out.mH, g))
    P = P - diag_embed(P.diagonal(0, -2, -1)) / 2
    inverse = _solve_triangular(out, eye(out.shape[-1], dtype=out.dtype, device=out.device), False, False)
    return _solve_triangular(out.mH, matmul(P + P.mH, inverse), True, False) / 2


@differentiable("cholesky", grad=_cholesky_grad, holomorphic=False)
def _cholesky(A: Tensor) -> Tensor:
    return call("cholesky", _lower, A)[0]


def _lower(a: Any) -> Any:
    np = numpy()
    try:
        found = np.linalg.cholesky(a)
        info = _not_positive(found)
    except np.linalg.LinAlgError:
        info = _cholesky_info(a)
    if not info.any():
        return found
    info = info.reshape(-1)
    k = int(np.flatnonzero(info)[0])
    where = f"matrix {k} of the batch" if a.ndim > 2 else "the matrix"
    raise LinAlgError(
        f"cholesky: {where} is not positive definite: its leading minor of order {info[k]} is not positive"
    )


def _not_positive(factor: Any) -> Any:
    """For each factor the place, from 1, of the first diagonal element that is not positive, else 0. NaN counts, which
    LAPACK may accept."""
    np = numpy()
    bad = ~(np.diagonal(factor, 0, -2, -1).real > 0)
    if factor.ndim == 2 and not bad.any():
        return np.zeros((), int)
    return np.where(bad.any(-1), bad.argmax(-1) + 1, 0) if bad.shape[-1] else np.zeros(bad.shape[:-1], int)


def _cholesky_info(a: Any) -> Any:
    """For each matrix the order of the first leading minor that is not positive, else 0."""
    potrf = routine("potrf", a.dtype.name)

    def order(one: Any) -> Any:
        factor, info = potrf(one, lower=True)
        return numpy().int32(info or _not_positive(factor))

    return each(order, a)


@autocast("float32 -")
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """L, lower triangular, with A = L L^H, of a positive definite input A (..., N, N); its conjugate
    transpose with upper.

    Only the lower triangle of A is read; the gradient is Hermitian. LinAlgError for what is not positive definite.

    >>> norch.linalg.cholesky(norch.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    A = square(input, "cholesky")
    if upper:
        return _cholesky(A.mH).mH
    return _cholesky(A)


@autocast("float32 -")
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> cholesky_ex_result:
    """(L, info) as cholesky(), which for a matrix that is not positive definite raises with check_errors only.

    info (...) is the order of the first leading minor that is not positive, else 0; such a matrix's L is NaN.

    >>> factor, info = norch.linalg.cholesky_ex(norch.tensor([[4.0, 0.0], [0.0, 9.0]]))
    >>> factor, info
    (tensor([[2., 0.],
            [0., 3.]]), tensor(0, dtype=norch.int32))
    """
    A = square(input, "cholesky_ex")
    if check_errors:
        L = cholesky(A, upper=upper)
        return cholesky_ex_result(L, zeros(A.shape[:-2], dtype="int32", device=A.device))
    source = A.mH if upper else A
    try:  # most are positive definite
        L = _cholesky(source)
        return cholesky_ex_result(L.mH if upper else L, zeros(A.shape[:-2], dtype="int32", device=A.device))
    except LinAlgError:
        pass
    (info,) = call("cholesky_ex", _cholesky_info, source)
    failed = (info != 0)[..., None, None]
    L = _cholesky(source.where(~failed, eye(A.shape[-1], dtype=A.dtype, device=A.device)))
    L = L.where(~failed, float("nan"))
    return cholesky_ex_result(L.mH if upper else L, info)


# ---- LU --------------------------------------------------------------------------------------------------------------


def _lu_grad(g: Tensor, out: Tensor, pivots: Tensor) -> Tensor:
    """For square A = P L U: P L^-T (tril(L^T gL, -1) + triu(gU U^T)) U^-T. The columns of a wide matrix, and the rows
    of a tall one, that stand beyond the square part are L U_2 and L_2 U; their gradients come first, and the resulting
    gradients of L and U are added to those of the square part."""
    m, n = out.shape[-2:]
    k = min(m, n)
    gL, gU = tril(g[..., :k], -1), triu(g[..., :k, :])
    L, U = unit_lower(out)[..., :k, :], triu(out[..., :k, :k])
    parts = []
    if n > k:  # U_2 = L^-1 P^T A_2
        parts = [_solve_triangular(L.mT, gU[..., k:], True, True)]
        gL = gL - matmul(parts[0], out[..., :k, k:].mT)
    gL, gU = gL[..., :k, :] if m == k else gL, gU[..., :k]
    if m > k:  # L_2 = A_2 U^-1
        parts = [_solve_triangular(U, gL[..., k:, :].mT, True, False).mT]
        gL, gU = gL[..., :k, :], gU - matmul(out[..., k:, :].mT, parts[0])
    inner = tril(matmul(L.mT, gL), -1) + triu(matmul(gU, U.mT))
    first = _solve_triangular(U, _solve_triangular(L.mT, inner, True, True).mT, True, False).mT
    whole = cat([first, *parts], -1 if n > k else -2)
    return matmul(permutation(pivots, m, out), whole)


_LuFactor = derivative("lu_factor", ("A",), grad=_lu_grad, tensors=("pivots",))


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> lu_factor_ex_result:
    """(LU, pivots, info) as lu_factor(); info (...) is the first k of which U[k - 1, k - 1] is 0, else 0.

    >>> norch.linalg.lu_factor_ex(norch.eye(2)).info
    tensor(0, dtype=norch.int32)
    """
    A = matrices(A, "lu_factor")
    if not pivot:
        raise ArgumentError("lu_factor: LU without pivoting is not supported on the CPU")
    getrf, np = routine("getrf", A.dtype.name), numpy()

    def factored(a: Any) -> Any:
        if not a.size:  # of which LAPACK prints an error; another thread may have resized A
            return a, np.ones(min(a.shape), np.int32), np.int32(0)
        lu, rows, failed = getrf(a)
        return lu, rows + np.int32(1), np.int32(failed)

    LU, pivots, info = call("lu_factor", lambda a: each(factored, a), A)
    if check_errors and occurs(info != 0):
        failed = all_samples(info).flatten()
        first = int(failed[failed != 0][0])
        raise LinAlgError(
            f"lu_factor: U[{first - 1}, {first - 1}] is zero: using it to solve a system would divide by 0"
        )
    return lu_factor_ex_result(record(_LuFactor, LU, (A,), (pivots,)), pivots, info)


def lu_factor(A: Tensor, *, pivot: bool = True) -> lu_factor_result:
    """(LU, pivots) of A = P L U with partial pivoting, A (..., M, N). LU (..., M, N) holds U and, below its diagonal, L
    without its unit diagonal. pivots, int32 (..., min(M, N)): the row that each step swapped, counted from 1.
    LinAlgError if U has a zero on its diagonal; lu_factor_ex() and lu() return such factors.

    >>> LU, pivots = norch.linalg.lu_factor(norch.tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> pivots
    tensor([2, 2], dtype=norch.int32)
    """
    LU, pivots, _ = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return lu_factor_result(LU, pivots)


def permutation(pivots: Tensor, m: int, like: Tensor, name: str = "lu_factor") -> Tensor:
    """The permutation matrices P (..., M, M) of the swaps that lu_factor() made of matrices like `like`, as floats."""
    if tensor_of(pivots, name).dtype.name != "int32":
        raise DTypeError(f"{name}: the pivots must be int32, got {pivots.dtype.name}")
    if tuple(pivots.shape[-1:]) != (min(like.shape[-2:]),):
        raise ShapeError(f"{name}: pivots of {tuple(pivots.shape)} do not fit LU of {tuple(like.shape)}")

    def matrix(swaps: Any) -> Any:
        np = numpy()
        rows = list(range(m))
        for i, j in enumerate((swaps[0] - 1).tolist()):
            rows[i], rows[j] = rows[j], rows[i]
        return np.eye(m, dtype=like.dtype.name)[:, rows]

    def permuted(swaps: Any) -> Any:
        if swaps.size and not (swaps.min() >= 1 and swaps.max() <= m):
            raise ArgumentError(f"{name}: pivots lie from 1 to {m}, got {swaps.min()} to {swaps.max()}")
        return each(matrix, swaps[..., None, :])

    return call("lu_unpack", permuted, pivots)[0]


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> lu_result:
    """(P, L, U) of what lu_factor() gave; P is empty without unpack_pivots, L and U without unpack_data.

    >>> P, L, U = norch.lu_unpack(*norch.lu(norch.tensor([[0.0, 1.0], [2.0, 0.0]])))
    >>> P
    tensor([[0., 1.],
            [1., 0.]])
    """
    m = matrices(LU_data, "lu_unpack").shape[-2]
    k = min(LU_data.shape[-2:])
    empty = LU_data.new_empty(0)
    P = permutation(LU_pivots, m, LU_data, "lu_unpack") if unpack_pivots else empty
    if not unpack_data:
        return lu_result(P, empty, empty)
    return lu_result(P, unit_lower(LU_data), triu(LU_data[..., :k, :]))


def lu(A: Tensor, *, pivot: bool = True) -> lu_result:
    """(P, L, U) with A = P L U: a permutation (..., M, M), unit lower (..., M, K) and upper (..., K, N) triangular
    factors of A (..., M, N), K = min(M, N).

    >>> P, L, U = norch.linalg.lu(norch.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> U
    tensor([[2., 2.],
            [0., 1.]])
    """
    LU, pivots, _ = lu_factor_ex(A, pivot=pivot)
    return lu_unpack(LU, pivots)


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X of A X = B (of X A = B without left; of A^H instead with adjoint), given lu_factor(A).

    >>> A = norch.tensor([[2.0, 1.0], [1.0, 3.0]])
    >>> norch.linalg.lu_solve(*norch.linalg.lu_factor(A), norch.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    LU = square(LU, "lu_solve")
    B = matrices(B, "lu_solve")
    alike(LU, B, "lu_solve")
    if LU.shape[-1] != B.shape[-2 if left else -1]:
        raise ShapeError(f"lu_solve: LU of {tuple(LU.shape)} does not fit B of {tuple(B.shape)}")
    P = permutation(pivots, LU.shape[-1], LU, "lu_solve")
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    L, U = unit_lower(LU), triu(LU)
    if adjoint:
        inner = _solve_triangular(U.mH, B, False, False)
        return matmul(P, _solve_triangular(L.mH, inner, True, True))
    return _solve_triangular(U, _solve_triangular(L, matmul(P.mT, B), False, True), True, False)


# ---- QR --------------------------------------------------------------------------------------------------------------


def _qr_backward(g: Outputs, out: Tensor, rest: Any, qr_mode: str) -> tuple[Any]:
    """(gQ + Q (X + X^H - Re diag X)) R^-H with X = triu(gR R^H - Q^H gQ) (S. Walter and L. Lehmann, "Algorithmic
    differentiation of linear algebra functions", 2013). For a wide matrix [A_1 A_2], R is [R_1 R_2], R_2 = Q^H A_2."""
    Q, R = factors_of(out, rest)
    m, n = Q.shape[-2], R.shape[-1]
    if qr_mode == "complete" and m > n:
        raise ArgumentError(
            f"qr: mode='complete' has no derivative for {m} x {n} matrices, with more rows than columns"
        )
    gQ, gR = g.get(0), g.get(1)
    beyond = []
    if n > m:
        if gR is not None:
            wide, gR = gR[..., m:], gR[..., :m]
            beyond = [matmul(Q, wide)]
            by_wide = matmul(matmul(Q, R[..., m:]), wide.mH)
            gQ = by_wide if gQ is None else gQ + by_wide
        else:
            beyond = [R.new_zeros((*R.shape[:-1], n - m))]
        R = R[..., :m]
    X: Any = 0 if gR is None else matmul(gR, R.mH)
    if gQ is not None:
        X = X - matmul(Q.mH, gQ)
    X = triu(X)
    grad = matmul(Q, X + X.mH - diag_embed(X.diagonal(0, -2, -1).real))
    if gQ is not None:
        grad = grad + gQ
    grad = _solve_triangular(R, grad.mH, True, False).mH
    return (cat([grad, *beyond], -1) if beyond else grad,)


_Qr = derivative("qr", ("A",), backward=_qr_backward, holomorphic=False)


@autocast("float32 -")
def qr(A: Tensor, mode: str = "reduced") -> qr_result:
    """(Q, R) with A = Q R, Q of orthonormal columns and R upper triangular, A (..., M, N).

    mode "reduced" gives Q (..., M, K) and R (..., K, N), K = min(M, N); "complete" Q (..., M, M) and R (..., M, N); "r"
    an empty Q, and no derivative. Derivatives need the first K columns to be independent.

    >>> Q, R = norch.linalg.qr(norch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> R.abs()
    tensor([[5.0000, 2.2000],
            [0.0000, 0.4000]])
    """
    A = matrices(A, "qr")
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode is 'reduced', 'complete' or 'r', not {mode!r}")
    if mode == "r":
        if A.requires_grad and is_grad_enabled():
            raise ArgumentError("qr: mode='r' has no derivative; use 'reduced', or detach() the matrix")
        return qr_result(A.new_empty(0), call("qr", numpy().linalg.qr, A, mode="r")[0])
    outs = call("qr", lambda a: tuple(numpy().linalg.qr(a, mode)), A)
    return qr_result(*record_factors(_Qr, outs, A, mode))
