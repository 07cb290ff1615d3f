"""lobpcg: a few eigenvalues and eigenvectors at an end of the spectrum of a large symmetric matrix, by SciPy."""

from __future__ import annotations

import warnings
from typing import Any

from ..._binding.numbers import flag, int64
from ..._package.typing import Tensor
from ...autograd.derivative import derivative
from ...autograd.function import Outputs
from ...autograd.grad_mode import is_grad_enabled
from ...dtype import finfo
from ...errors import ArgumentError, ShapeError
from .._operand import tensor_of
from ..composed.diagonal import diag_embed
from ..create import eye
from ..matmul import matmul
from ..random import randn
from .factor import factors_of, record_factors
from .lapack import alike, call, each, numpy, scipy_linalg, square
from .solve import solve
from .spectral import differences

_UNENDING = 10_000  # steps, for niter=-1


def _lobpcg_backward(g: Outputs, A: Tensor, out: Tensor, rest: Any) -> tuple[Any]:
    """As of eigh within the span of the vectors X. Out of it each vector x moves by (w - A)^+ dA x, the inverse being
    that of the complement of X: P (w - A) P + X X^T with P = I - X X^T has it there, and is not singular."""
    w, X = factors_of(out, rest)
    gw: Any
    gw, gX = g.get(0), g.get(1)
    if gX is None:
        grad = matmul(X * gw[..., None, :], X.mT)
        return ((grad + grad.mT) / 2,)
    inner = matmul(X.mT, gX) / differences(w)
    if gw is None:
        gw = w.new_zeros(w.shape)
    inner = inner - diag_embed(inner.diagonal(0, -2, -1)) + diag_embed(gw)
    span = matmul(X, X.mT)
    P = eye(A.shape[-1], dtype=A.dtype, device=A.device) - span
    systems = w[..., None, None] * P[..., None, :, :] - (matmul(matmul(P, A), P) - span)[..., None, :, :]
    beyond = solve(systems, matmul(P, gX).mT[..., None])[..., 0].mT
    grad = matmul(matmul(X, inner) + beyond, X.mT)
    return ((grad + grad.mT) / 2,)


_Lobpcg = derivative("lobpcg", ("A",), backward=_lobpcg_backward)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest eigenvalues E (..., k), in descending order, and B-orthonormal vectors (..., m, k) of A x = E B x,
    for symmetric A (..., m, m) and positive definite B (None: I). With largest=False the smallest, in ascending order.

    The iteration starts at X (..., m, n), by default n (None: k) random vectors; n is at most m / 3. iK (m, m)
    approximates the inverse of A. The iteration ends after niter steps (None: 1000, -1: 10,000), or when the residuals
    are at most tol times a norm of A (None: the square root of the dtype's eps).

    scipy.sparse.linalg.lobpcg computes in float64, by its method, whether method is "ortho" or "basic". It reports
    nothing while it runs, so tracker= and the parameters of "ortho" raise NotImplementedError. A has a derivative where
    B is None; it solves k systems of the size of A.

    >>> E, X = norch.lobpcg(norch.arange(1.0, 10.0).diag(), k=2)
    >>> E.round(decimals=3)
    tensor([9., 8.])
    """
    A = square(A, "lobpcg")
    if tracker is not None or ortho_iparams or ortho_fparams or ortho_bparams:
        raise NotImplementedError("lobpcg: SciPy's has no tracker= and no parameters of the method 'ortho'")
    if method not in (None, "ortho", "basic"):
        raise ArgumentError(f"lobpcg: method is 'ortho' or 'basic', not {method!r}")
    m, batch = A.shape[-1], A.shape[:-2]
    k = (1 if X is None else tensor_of(X, "lobpcg").shape[-1]) if k is None else int64(k, "lobpcg: k")
    if X is None:
        n = k if n is None else int64(n, "lobpcg: n")
        X = randn(*batch, m, n, dtype=A.dtype, device=A.device)
    else:
        n = X.shape[-1]
    steps = 1000 if niter is None else _UNENDING if niter == -1 else int64(niter, "lobpcg: niter")
    if not 0 < k <= n or steps < 0:
        raise ArgumentError(f"lobpcg: k {k} of n {n} vectors in {steps} steps")
    if m < 3 * n:
        raise ArgumentError(f"lobpcg: {m} rows are fewer than 3 times the {n} vectors; linalg.eigh() gives all")
    for name, other, shape in (("B", B, A.shape), ("X", X, (*batch, m, n)), ("iK", iK, (m, m))):
        if other is not None:
            alike(A, other, "lobpcg")
            if tuple(other.shape) != tuple(shape):
                raise ShapeError(f"lobpcg: {name} of {tuple(other.shape)} does not fit A of {tuple(A.shape)}")
    if is_grad_enabled() and B is not None and (A.requires_grad or B.requires_grad):
        raise ArgumentError("lobpcg: no derivative with B=, as in PyTorch")
    if A.requires_grad:
        A = (A + A.mT) / 2
    tolerance = finfo(A.dtype).eps ** 0.5 if tol is None else float(tol)
    options: dict[str, Any] = {
        "k": k,
        "maxiter": steps,
        "tolerance": tolerance,
        "largest": largest is None or flag(largest, "lobpcg: largest"),
    }
    operators = [other for other in (B, iK) if other is not None]

    def solved(a: Any, x: Any, *rest: Any) -> Any:
        b = rest[0] if B is not None else None
        return _pairs(a, x, b, rest[-1] if iK is not None else None, **options)

    outs = call("lobpcg", lambda *arrays: each(solved, *arrays), A, X, *operators, finite=True)
    return record_factors(_Lobpcg, outs, A)  # type: ignore[return-value]


def _pairs(a: Any, x: Any, b: Any, inverse: Any, k: int, maxiter: int, tolerance: float, largest: bool) -> Any:
    """Values and vectors of one matrix."""
    np = numpy()
    scipy_linalg()
    from scipy.sparse.linalg import lobpcg  # type: ignore[import-untyped]

    dtype = a.dtype
    a, x, b, inverse = (None if matrix is None else matrix.astype("float64") for matrix in (a, x, b, inverse))
    scale = np.linalg.norm(a @ x) / np.linalg.norm(x)  # PyTorch's norm of A
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no convergence: PyTorch does not warn
        try:
            w, v = lobpcg(a, x, b, inverse, tol=tolerance * scale, maxiter=maxiter, largest=largest)
        except ValueError as error:  # of dependent vectors, or a B that is not positive definite
            raise np.linalg.LinAlgError(error) from None
    order = np.argsort(-w if largest else w)[:k]
    return w[order].astype(dtype), v[:, order].astype(dtype)
