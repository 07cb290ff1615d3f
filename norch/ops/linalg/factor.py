"""Cholesky, LU and QR factors, and triangular systems, with their derivatives."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ..._binding.library import lib
from ..._package.typing import Tensor
from ..._tensor import handle as _handle
from ..._tensor.handle import alias
from ...autograd.derivative import derivative
from ...autograd.differentiable import differentiable
from ...autograd.function import Outputs, output_of
from ...autograd.grad_mode import is_grad_enabled
from ...autograd.grad_mode import mode as recording
from ...autograd.levels import all_samples, occurs
from ...autograd.record import is_recorded, record
from ...errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from .._autocast import autocast
from .._operand import tensor_of
from .._rows import OPCODES
from ..composed.diagonal import diag_embed, tril, triu
from ..composed.shape import common_shape
from ..copy import cat
from ..create import arange, eye, zeros
from ..index import index_select
from ..matmul import matmul
from ..values import from_numpy
from .lapack import (
    BLOCK,
    alike,
    array_of,
    call,
    direct,
    from_columns,
    has_scipy,
    host_buffer,
    identities,
    in_columns,
    in_rows,
    int32s,
    is_large,
    matrices,
    numpy,
    routine,
    scipy_linalg,
    solve_by_halves,
    square,
    squares,
    total,
    ufunc,
    with_unit_diagonal,
    zeros_at_host,
)

cholesky_ex_result = NamedTuple("cholesky_ex_result", [("L", Tensor), ("info", Tensor)])
lu_result = NamedTuple("lu_result", [("P", Tensor), ("L", Tensor), ("U", Tensor)])
lu_factor_result = NamedTuple("lu_factor_result", [("LU", Tensor), ("pivots", Tensor)])
lu_factor_ex_result = NamedTuple("lu_factor_ex_result", [("LU", Tensor), ("pivots", Tensor), ("info", Tensor)])
qr_result = NamedTuple("qr_result", [("Q", Tensor), ("R", Tensor)])


# ---- several results of one node -------------------------------------------------------------------------------------


def record_factors(node_class: Any, outs: tuple[Any, ...], A: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """Records outs, the results of one node that saves them as `out` (the first) and `rest`."""
    if recording.enabled and is_recorded((A,)):
        node = record(node_class, outs[0], (A,), (tuple(alias(x) for x in outs[1:]), *others))._node
        if node is not None:
            for i, out in enumerate(outs):
                out._node = output_of(node, i)
    return outs


def factors_of(out: Tensor, rest: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The results that record_factors() saved: while gradients are recorded, as functions of the input."""
    if not recording.enabled:
        return out, *rest
    node, factors = out._node, tuple(alias(x) for x in (out, *rest))
    for i, x in enumerate(factors):
        x._node = output_of(node, i)
    return factors


def unit_lower(LU: Tensor) -> Tensor:
    """The unit lower triangle L, (..., M, K), of compact factors (..., M, N), K = min(M, N)."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    return with_unit_diagonal(tril(LU if k == n else LU[..., :k], -1))  # which the gradient does not read


# ---- triangular systems ----------------------------------------------------------------------------------------------


def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X of A X = B, or of X A = B with left=False, for a triangular A (..., N, N) and B (..., N, K), by BLAS's trsm.
    The other triangle of A is not read. With unitriangular the diagonal counts as 1. A zero on the diagonal gives
    infinities.

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
    def solved(A: Any, B: Any) -> Any:
        *batch, n, k = shape = lib.norch_shape(B)
        if A.ndim > 2:
            batch = common_shape(A.shape[:-2], tuple(batch))
            shape = (*batch, n, k)
        X = in_rows(lib.norch_expand(B, shape))
        a = lib.norch_expand(A, (n, n) if A.ndim == 2 else (*batch, n, n))
        if X.ndim == a.ndim == 2 and is_large(X):
            solve_by_halves(X, a, upper, unit)
        elif n and k:  # X^T A^T = B^T
            a, one = lib.norch_contiguous(a), lib.norch_full((1,), X._dtype, 1.0, 1, (X._device_type, 0))
            triangle, unitary = "L" if upper else "U", "U" if unit else "N"
            routine("trsm", X, "R", triangle, "N", unitary, k, n, (one,), (a,) if A.ndim == 2 else a, n, X, k)
        return (X,)

    return direct("solve_triangular", solved, A, B)[0]


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
    return direct("cholesky", _positive, A)[0]


def _positive(A: Any) -> tuple[Tensor]:
    L, info = _factored(A)
    if total(info):
        failed = info.flatten()
        k = int(failed.nonzero()[0, 0])
        where = f"matrix {k} of the batch" if info.ndim else "the matrix"
        raise LinAlgError(
            f"cholesky: {where} is not positive definite: its leading minor of order {int(failed[k])} is not positive"
        )
    return (L,)


def _factored(A: Any) -> tuple[Tensor, Tensor]:
    """(L, info). info is the order of the first leading minor that is not positive, else 0. A minor with NaN counts as
    not positive; LAPACK may accept it.
    """
    *batch, _, n = lib.norch_shape(A)
    info = int32s(*batch)
    if not has_scipy():
        try:
            return from_numpy(ufunc("cholesky_lo")(array_of(A))), info
        except numpy().linalg.LinAlgError:
            scipy_linalg()  # whose LAPACK tells the order
    a = lib.norch_contiguous(squares(A))
    L = lib.norch_full_like(a, -1, 0.0, 0)
    if n:  # the transpose is in the order of Fortran: its upper triangle
        routine("lacpy", L, "U", n, n, a, n, L, n)
        routine("potrf", L, "U", n, L, n, info)
    diagonal = lib.norch_diagonal(L, 0, -2, -1)
    trace = total(diagonal)
    if trace != trace:
        bad = ~(diagonal.real > 0)
        info = info.where((info != 0) | ~bad.any(-1), (bad.int().argmax(-1) + 1).int())
    return L, info


@autocast("float32 -")
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """L (..., N, N), lower triangular, with A = L L^H, for a positive definite input A (..., N, N), by LAPACK's potrf.
    With upper, the conjugate transpose of L.

    Only the lower triangle of A is read. The gradient is Hermitian. LinAlgError if a matrix is not positive definite.

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
    """(L, info): cholesky() that does not raise for a matrix that is not positive definite, unless check_errors is
    True. info (...), int32, is the order of the first leading minor that is not positive, and L is NaN then; else info
    is 0.

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
        info = int32s(*A.shape[:-2], like=A)
        return cholesky_ex_result(L.mH if upper else L, info)
    except LinAlgError:
        pass
    info = direct("cholesky_ex", _factored, source)[1]
    failed = (info != 0)[..., None, None]
    L = _cholesky(source.where(~failed, eye(A.shape[-1], dtype=A.dtype, device=A.device)))
    L = L.where(~failed, float("nan"))
    return cholesky_ex_result(L.mH if upper else L, info)


def _inverse_grad(g: Tensor, L: Tensor, out: Tensor) -> Tensor:
    """-Y (g + g^T) Y L for Y = (L L^T)^-1."""
    return -tril(matmul(matmul(out, matmul(g + g.mT, out)), L))


@differentiable("cholesky_inverse", grad=_inverse_grad)
def inverse_of_product(L: Tensor) -> Tensor:
    """(L L^T)^-1 of real lower triangular matrices L (..., N, N). LinAlgError for a zero on a diagonal."""

    def inverted(L: Any) -> tuple[Tensor]:
        n, Y, info = L.shape[-1], in_rows(squares(L)), int32s(*L.shape[:-2])
        if n:  # the transpose of L is in the order of Fortran: its upper triangle
            routine("potri", Y, "U", n, Y, n, info)
        if total(info):
            raise LinAlgError(f"cholesky_inverse: element {int(info.max())} of a diagonal, from 1, is zero")
        return (tril(Y) + tril(Y, -1).mT,)

    return direct("cholesky_inverse", inverted, L)[0]


# ---- LU --------------------------------------------------------------------------------------------------------------


def _lu_grad(g: Tensor, out: Tensor, pivots: Tensor) -> Tensor:
    """For square A = P L U: P L^-T (tril(L^T gL, -1) + triu(gU U^T)) U^-T. A wide matrix has further columns L U_2, a
    tall one further rows L_2 U. Their gradients come first, and the gradients of L and U that follow are added to those
    of the square part.
    """
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


def _eliminated(A: Any) -> tuple[Tensor, ...]:
    m, n = A.shape[-2:]
    batch = A.shape[:-2]
    LU, pivots, info = in_columns(A), int32s(*batch, min(m, n)), int32s(*batch)
    if m and n:  # for nothing LAPACK prints an error
        routine("getrf", LU, m, n, LU, m, pivots, info)
    return from_columns(LU), pivots, info


def _fails(info: Any) -> bool:
    """Whether LAPACK failed for one of the matrices."""
    return total(info) != 0 if type(info) is _handle.result_class and info.is_cpu else occurs(info != 0)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> lu_factor_ex_result:
    """(LU, pivots, info): lu_factor() that does not raise for a singular matrix, unless check_errors is True. info
    (...), int32, is the first k for which U[k - 1, k - 1] is 0, else 0.

    >>> norch.linalg.lu_factor_ex(norch.eye(2)).info
    tensor(0, dtype=norch.int32)
    """
    A = matrices(A, "lu_factor")
    if not pivot:
        raise ArgumentError("lu_factor: LU without pivoting is not supported on the CPU")
    LU, pivots, info = direct("lu_factor", _eliminated, A)
    if check_errors and _fails(info):
        failed = all_samples(info).flatten()
        first = int(failed[failed != 0][0])
        raise LinAlgError(
            f"lu_factor: U[{first - 1}, {first - 1}] is zero: using it to solve a system would divide by 0"
        )
    return lu_factor_ex_result(record(_LuFactor, LU, (A,), (pivots,)), pivots, info)


def lu_factor(A: Tensor, *, pivot: bool = True) -> lu_factor_result:
    """(LU, pivots) of A = P L U with partial pivoting, for A (..., M, N), by LAPACK's getrf. LU (..., M, N) has U in
    its upper triangle, and below it L without its diagonal of ones. pivots, int32 (..., min(M, N)), has the row that
    each step swapped, counted from 1. LinAlgError if U has a zero on its diagonal; lu_factor_ex() and lu() return such
    factors.

    >>> LU, pivots = norch.linalg.lu_factor(norch.tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> pivots
    tensor([2, 2], dtype=norch.int32)
    """
    LU, pivots, _ = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return lu_factor_result(LU, pivots)


def _check_shape_of_pivots(pivots: Tensor, like: Tensor, name: str) -> None:
    if tensor_of(pivots, name).dtype.name != "int32":
        raise DTypeError(f"{name}: the pivots must be int32, got {pivots.dtype.name}")
    if tuple(pivots.shape[-1:]) != (min(like.shape[-2:]),):
        raise ShapeError(f"{name}: pivots of {tuple(pivots.shape)} do not fit LU of {tuple(like.shape)}")


def permutation(pivots: Tensor, m: int, like: Tensor, name: str = "lu_factor") -> Tensor:
    """The permutation matrices P (..., M, M), as floats, of the swaps that lu_factor() made in matrices of the shape of
    `like`.
    """
    _check_shape_of_pivots(pivots, like, name)

    def permuted(pivots: Any) -> tuple[Tensor]:
        rows = in_rows(pivots)  # which no other thread writes to after the check
        check_pivots(rows, m, name)
        batch, k = rows.shape[:-1], rows.shape[-1]
        P = identities((*batch, m, m), like)
        if m and k:  # the rows of its transpose, in the order of Fortran, are swapped
            routine("laswp", P, m, P, m, 1, k, rows, 1)
        return (P,)

    return direct("lu_unpack", permuted, pivots)[0]


def check_pivots(pivots: Any, m: int, name: str) -> None:
    """ArgumentError unless pivots are rows of matrices of m rows, counted from 1."""
    if pivots.numel():
        least, most = (
            lib.norch_item(lib.norch_reduce(OPCODES[end], pivots, (), False, -1, 0.0)) for end in ("amin", "amax")
        )
        if not (least >= 1 and most <= m):
            raise ArgumentError(f"{name}: pivots lie from 1 to {m}, got {least} to {most}")


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> lu_result:
    """(P, L, U) from the results of lu_factor(). P is empty without unpack_pivots, L and U are empty without
    unpack_data.

    >>> P, L, U = norch.lu_unpack(*norch.lu(norch.tensor([[0.0, 1.0], [2.0, 0.0]])))
    >>> P
    tensor([[0., 1.],
            [1., 0.]])
    """
    m = matrices(LU_data, "lu_unpack").shape[-2]
    P = permutation(LU_pivots, m, LU_data, "lu_unpack") if unpack_pivots else LU_data.new_empty(0)
    if not unpack_data:
        return lu_result(P, LU_data.new_empty(0), LU_data.new_empty(0))
    k = min(LU_data.shape[-2:])
    return lu_result(P, unit_lower(LU_data), triu(LU_data if k == m else LU_data[..., :k, :]))


def lu(A: Tensor, *, pivot: bool = True) -> lu_result:
    """(P, L, U) with A = P L U for A (..., M, N), by LAPACK's getrf: a permutation (..., M, M), a unit lower triangular
    factor (..., M, K) and an upper triangular one (..., K, N), K = min(M, N).

    >>> P, L, U = norch.linalg.lu(norch.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> U
    tensor([[2., 2.],
            [0., 1.]])
    """
    LU, pivots, _ = lu_factor_ex(A, pivot=pivot)
    return lu_unpack(LU, pivots)


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X of A X = B, from the results of lu_factor(A), by LAPACK's getrs. With left=False X of X A = B; with adjoint A^H
    replaces A.

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
    _check_shape_of_pivots(pivots, LU, "lu_solve")
    if not left:
        return _lu_solve(LU, B.mH, pivots, not adjoint).mH
    return _lu_solve(LU, B, pivots, adjoint)


def _substituted(LU: Any, pivots: Any, B: Any, adjoint: bool) -> Tensor:
    """X of A X = B, or of A^T X = B with adjoint, from the factors of one real A."""
    n = LU.shape[-1]
    order = arange(n, dtype=LU.dtype).unsqueeze(0)
    routine("laswp", order, 1, order, n, 1, n, pivots, 1)
    rows = order[0].long()
    if not adjoint:
        X = index_select(B, 0, rows)
        solve_by_halves(X, LU, False, True)
        solve_by_halves(X, LU, True, False)
        return X
    X = in_rows(B)
    solve_by_halves(X, LU.mT, False, False)
    solve_by_halves(X, LU.mT, True, True)
    return index_select(X, 0, rows.argsort())


def eliminated(A: Any, B: Any) -> tuple[Tensor]:
    """X of A X = B. LinAlgError for a singular A."""
    LU, pivots, info = _eliminated(A)
    if total(info):
        raise LinAlgError("singular")
    return _solved(LU, B, lib.norch_unsqueeze(pivots, -2), False)


def _solved(LU: Any, B: Any, pivots: Any, adjoint: bool) -> tuple[Tensor]:
    n, k = B.shape[-2:]
    batch = common_shape(LU.shape[:-2], B.shape[:-2], pivots.shape[:-2])
    rows = in_rows(lib.norch_expand(pivots, (*batch, 1, n)))
    check_pivots(rows, n, "lu_solve")  # those that no other thread writes to
    if not batch and is_large(B):
        return (_substituted(lib.norch_expand(LU, (n, n)), rows, lib.norch_expand(B, (n, k)), adjoint),)
    X = in_columns(lib.norch_expand(B, (*batch, n, k)))
    if n and k:
        lu = in_columns(lib.norch_expand(LU, (*batch, n, n)))
        routine("getrs", X, "C" if adjoint else "N", n, k, lu, n, rows, X, n, int32s(*batch))
    return (from_columns(X),)


def _lu_solve_grad(g: Tensor, LU: Tensor, out: Tensor, pivots: Tensor, adjoint: bool) -> Tensor:
    """The gradient of A is -gB X^H, or -X gB^H with adjoint. With A = P L U and W = P^T gA the gradient of L is tril(W
    U^H, -1), that of U triu(L^H W).
    """
    grad_B = _lu_solve(LU, g, pivots, not adjoint)
    grad_A = -matmul(out, grad_B.mH) if adjoint else -matmul(grad_B, out.mH)
    W = matmul(permutation(pivots, LU.shape[-1], LU, "lu_solve").mT, grad_A)
    return tril(matmul(W, triu(LU).mH), -1) + triu(matmul(unit_lower(LU).mH, W))


@differentiable(
    "lu_solve",
    broadcast=True,
    inputs=("LU", "B"),
    grad_LU=_lu_solve_grad,
    grad_B=lambda g, LU, pivots, adjoint: _lu_solve(LU, g, pivots, not adjoint),
    holomorphic=False,
)
def _lu_solve(LU: Tensor, B: Tensor, pivots: Tensor, adjoint: bool) -> Tensor:
    solved = functools.partial(_solved, adjoint=adjoint)
    return direct("lu_solve", solved, LU, B, lib.norch_unsqueeze(pivots, -2))[0]


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


def reflected(A: Any) -> tuple[Tensor, Tensor]:
    """(a, tau) of LAPACK's geqrf, where a is transposed."""
    m, n = A.shape[-2:]
    a, tau = in_columns(A), zeros_at_host((*A.shape[:-2], min(m, n)), A)
    if m and n:  # for nothing LAPACK prints an error
        work = host_buffer((BLOCK * n,), A)
        routine("geqrf", a, m, n, a, m, tau, (work,), BLOCK * n, int32s(*A.shape[:-2]))
    return a, tau


def reflections(a: Any, tau: Any) -> Tensor:
    """The first N columns of H_1 ... H_K. The reflections are the transpose a (..., N, M), which is written to, and the
    factors tau (..., K).
    """
    columns, m = a.shape[-2:]
    if columns and m:
        k, work = tau.shape[-1], host_buffer((BLOCK * columns,), a)
        routine("orgqr", a, m, columns, k, a, m, tau, (work,), BLOCK * columns, int32s(*a.shape[:-2]))
    return from_columns(a)


def _orthogonal(A: Any, mode: str) -> tuple[Tensor, Tensor]:
    if not has_scipy():
        Q, R = numpy().linalg.qr(array_of(A), mode)
        return from_numpy(Q), from_numpy(R)
    m, n = A.shape[-2:]
    a, tau = reflected(A)
    columns = m if mode == "complete" else min(m, n)
    R = triu(from_columns(lib.norch_slice(a, -1, 0, columns, 1)))
    if columns > n:
        whole = zeros_at_host((*A.shape[:-2], m, m), A)
        whole[..., :n, :] = a
        a = whole
    return reflections(lib.norch_contiguous(lib.norch_slice(a, -2, 0, columns, 1)), tau), R


_Qr = derivative("qr", ("A",), backward=_qr_backward, holomorphic=False)


@autocast("float32 -")
def qr(A: Tensor, mode: str = "reduced") -> qr_result:
    """(Q, R) with A = Q R for A (..., M, N), by LAPACK's geqrf and orgqr (ungqr for complex matrices). Q has
    orthonormal columns, R is upper triangular.

    mode "reduced" gives Q (..., M, K) and R (..., K, N), K = min(M, N); "complete" gives Q (..., M, M) and R (..., M,
    N); "r" gives an empty Q, and has no derivative. A derivative needs the first K columns to be independent.

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
    outs = direct("qr", functools.partial(_orthogonal, mode=mode), A)
    return qr_result(*record_factors(_Qr, outs, A, mode))
