"""Eigenvalues of symmetric matrices, singular values, pseudoinverses and least squares."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..._package.typing import Tensor
from ...autograd.derivative import derivative
from ...autograd.differentiable import differentiable
from ...autograd.function import Outputs
from ...autograd.grad_mode import mode
from ...autograd.levels import holds, occurs
from ...errors import ArgumentError, ShapeError
from .._autocast import autocast
from ..composed.diagonal import diag_embed
from ..create import eye
from ..matmul import matmul
from .factor import factors_of, record_factors
from .lapack import alike, call, each, matrices, numpy, scipy_linalg, square, ufunc

eigh_result = NamedTuple("eigh_result", [("eigenvalues", Tensor), ("eigenvectors", Tensor)])
svd_result = NamedTuple("svd_result", [("U", Tensor), ("S", Tensor), ("Vh", Tensor)])
lstsq_result = NamedTuple(
    "lstsq_result", [("solution", Tensor), ("residuals", Tensor), ("rank", Tensor), ("singular_values", Tensor)]
)


def _has_gradient(A: Any) -> bool:
    """Whether a gradient of A is recorded. It needs the vectors; values alone take a third of the time."""
    return mode.enabled and getattr(A, "requires_grad", False)


def differences(values: Tensor) -> Tensor:
    """E[i, j] = values[j] - values[i], and 1 on the diagonal."""
    E = values[..., None, :] - values[..., :, None]
    return E + eye(values.shape[-1], dtype=values.dtype, device=values.device)


def check_phases(name: str, turned: Any, other: Any = None) -> None:
    """ArgumentError if a loss depends on the phases of complex vectors V, which are not determined. The diagonal of V^H
    gV then has an imaginary part beyond PyTorch's tolerance. other is the diagonal of vectors whose phases turn the
    other way.
    """
    phase = turned.detach().imag
    against = 0 if other is None else other.detach().imag
    off = (phase + against).abs() > 1e-2 * (1 + abs(against))
    if occurs(off):
        raise ArgumentError(
            f"{name}: the derivative of this loss is ill-defined: it depends on the phases of complex vectors, which "
            "are determined up to a factor e^(i phi); use the vectors in a way that does not, as v.abs() or v @ v.mH"
        )


# ---- symmetric matrices ----------------------------------------------------------------------------------------------


def _eigh_backward(g: Outputs, out: Tensor, rest: Any) -> tuple[Any]:
    """V (diag(gw) + X / E) V^H with the skew part X of V^H gV and E[i, j] = w[j] - w[i] (M. Giles, "An extended
    collection of matrix derivative results", 2008, 3.1). Not finite for vectors of equal eigenvalues: they are not
    unique."""
    w, V = factors_of(out, rest)
    gw: Any
    gw, gV = g.get(0), g.get(1)  # at least one of them has a gradient
    if gV is None:
        return (matmul(V * gw.to(V.dtype)[..., None, :], V.mH),)
    skew = matmul(V.mH, gV)
    if V.is_complex():
        check_phases("eigh", skew.diagonal(0, -2, -1))
    inner = (skew - skew.mH) / (2 * differences(w))
    if gw is not None:
        inner = inner + diag_embed(gw).to(V.dtype)
    return (matmul(matmul(V, inner), V.mH),)


_Eigh = derivative("eigh", ("A",), backward=_eigh_backward, holomorphic=False)


@autocast("float32 -")
def eigh(input: Tensor, UPLO: str = "L") -> eigh_result:
    """(eigenvalues, eigenvectors) of a symmetric or Hermitian A (..., N, N), by LAPACK's syevd, and heevd for complex
    matrices: real w (..., N), ascending, and V (..., N, N), whose columns are the vectors, with A = V diag(w) V^H. Only
    the triangle UPLO, "L" or "U", is read.

    Vectors have a derivative where the eigenvalues differ, for functions that do not depend on their signs or, for
    complex ones, on their phases.

    >>> norch.linalg.eigh(norch.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    A = square(input, "eigh")
    if UPLO not in ("L", "U", "l", "u"):
        raise ArgumentError(f"eigh: UPLO is 'L' or 'U', not {UPLO!r}")
    outs = call("eigh", ufunc("eigh_lo" if UPLO in "Ll" else "eigh_up"), A, finite=True, quiet=True)
    return eigh_result(*record_factors(_Eigh, outs, A))


@autocast("float32 -")
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues (..., N) of a symmetric input (..., N, N), ascending. See eigh().

    >>> norch.linalg.eigvalsh(norch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([2., 3.])
    """
    if isinstance(UPLO, str) and UPLO.upper() in ("L", "U") and not _has_gradient(input):
        values = ufunc("eigvalsh_lo" if UPLO in "Ll" else "eigvalsh_up")
        return call("eigh", values, square(input, "eigh"), finite=True, quiet=True)[0]
    return eigh(input, UPLO).eigenvalues


# ---- singular values -------------------------------------------------------------------------------------------------


def _svd_backward(g: Outputs, out: Tensor, rest: Any) -> tuple[Any]:
    """U (((U^T gU)_skew S + S (V^T gV)_skew) / E + diag(gS)) V^T, E[i, j] = S[j]^2 - S[i]^2, plus, where U or V is not
    square, what lies outside of its columns: (I - U U^T) gU S^-1 V^T and its mirror (J. Townsend, "Differentiating the
    singular value decomposition", 2016)."""
    U, S, Vh = factors_of(out, rest)
    m, n, k = U.shape[-2], Vh.shape[-1], S.shape[-1]
    gS: Any
    gU, gS, gVh = g.get(0), g.get(1), g.get(2)
    if (gU is not None and U.shape[-1] > k) or (gVh is not None and Vh.shape[-2] > k):
        raise ArgumentError("svd: vectors beyond the singular values are not unique; use full_matrices=False")
    U, Vh = U[..., :k], Vh[..., :k, :]
    if gU is None and gVh is None:
        return (matmul(U * gS.to(U.dtype)[..., None, :], Vh),)
    inner: Any = 0
    phases: Any = 0
    turned: list[Tensor] = []
    if gU is not None:
        skew = matmul(U.mH, gU)
        inner = (skew - skew.mH) * S[..., None, :]
        if U.is_complex():  # the phases of U, with those of V
            turned.append(skew.diagonal(0, -2, -1))
            phases = diag_embed(turned[0].imag / S) * 1j
    if gVh is not None:
        skew = matmul(Vh, gVh.mH)
        turned.append(skew.diagonal(0, -2, -1))
        inner = inner + S[..., :, None] * (skew - skew.mH)
    inner = inner / differences(S * S)
    if U.is_complex():
        check_phases("svd", *turned)
        inner = inner - diag_embed(inner.diagonal(0, -2, -1)) + phases
    if gS is not None:
        inner = inner + diag_embed(gS).to(U.dtype)
    grad = matmul(matmul(U, inner), Vh)
    if gU is not None and m > k:
        beyond = gU / S[..., None, :]
        grad = grad + matmul(beyond - matmul(U, matmul(U.mH, beyond)), Vh)
    if gVh is not None and n > k:
        beyond = gVh / S[..., :, None]
        grad = grad + matmul(U, beyond - matmul(matmul(beyond, Vh.mH), Vh))
    return (grad,)


_Svd = derivative("svd", ("A",), backward=_svd_backward, holomorphic=False)


@autocast("float32 -")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> svd_result:
    """(U, S, Vh) with A = U diag(S) Vh for A (..., M, N), by LAPACK's gesdd: singular values S (..., K), descending, K
    = min(M, N), and orthonormal U (..., M, M) and Vh (..., N, N). With full_matrices=False U and Vh have the K vectors
    of S alone.

    driver, which chooses among CUDA's methods in PyTorch, must be None. Vectors have a derivative where the singular
    values differ, for functions that do not depend on their signs.

    >>> norch.linalg.svd(norch.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    A = matrices(A, "svd")
    if driver is not None:
        raise ArgumentError(f"svd: driver={driver!r} is for CUDA's solvers, which norch does not call")
    outs = call("svd", ufunc("svd_f" if full_matrices else "svd_s"), A, finite=True, quiet=True)
    return svd_result(*record_factors(_Svd, outs, A))


@autocast("float32 -")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values (..., K) of A (..., M, N), descending. See svd().

    >>> norch.linalg.svdvals(norch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    if driver is None and not _has_gradient(A):
        return call("svd", ufunc("svd"), matrices(A, "svd"), finite=True, quiet=True)[0]
    return svd(A, full_matrices=False, driver=driver).S


# ---- pseudoinverse, least squares ------------------------------------------------------------------------------------


def pinv_grad(g: Tensor, A: Tensor, Y: Tensor) -> Tensor:
    """-Y^H g Y^H + (I - A Y) g^H Y Y^H + Y^H Y g^H (I - Y A) for Y = pinv(A), at points where the rank is constant (G.
    Golub and V. Pereyra, "The differentiation of pseudo-inverses ...", 1973).
    """
    YgT = matmul(g.mH, Y)  # (..., M, M)
    gTY = matmul(Y, g.mH)  # (..., N, N)
    grad = -matmul(matmul(Y.mH, g), Y.mH)
    grad = grad + matmul(YgT - matmul(A, matmul(Y, YgT)), Y.mH)
    return grad + matmul(Y.mH, gTY - matmul(matmul(gTY, Y), A))


@differentiable("pinv", grad_A=lambda g, A, out: pinv_grad(g, A, out), inputs=("A",), holomorphic=False)
def _pinv(A: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    np = numpy()

    def inverted(a: Any) -> Any:
        if hermitian:
            w, v = ufunc("eigh_lo")(a)
            u, s, vh = v * np.sign(w)[..., None, :], abs(w), np.swapaxes(v, -1, -2).conj()
        else:
            u, s, vh = ufunc("svd_s")(a)
        least = np.maximum(atol, rtol * s.max(-1, initial=0))[..., None]
        scaled = u * np.where(s > least, 1 / np.where(s > least, s, 1), 0)[..., None, :].astype(a.dtype)
        return np.swapaxes(scaled @ vh, -1, -2).conj()

    return call("pinv", inverted, A, finite=True)[0]


def tolerance(name: str, A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """atol and rtol as arrays over the batch. By default, as in PyTorch, rtol is max(M, N) times the dtype's epsilon,
    or 0 where atol is positive.
    """
    np = numpy()
    tolerances = [0.0 if atol is None else atol, 0.0 if rtol is None else rtol]
    arrays = [np.asarray(x.tolist() if hasattr(x, "tolist") else x, dtype=float) for x in tolerances]
    if rtol is None:
        arrays[1] = np.where(arrays[0] > 0, 0.0, max(A.shape[-2:]) * np.finfo(A.dtype.name).eps)
    batch = tuple(A.shape[:-2])
    for i, x in enumerate(arrays):
        try:
            arrays[i] = np.broadcast_to(x, batch if x.shape else ())
        except ValueError:
            raise ShapeError(f"{name}: a tolerance of shape {x.shape} for a batch of shape {batch}") from None
    return arrays[0], arrays[1]


def pinv(input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The Moore-Penrose pseudoinverse (..., N, M) of A (..., M, N), from its singular values (Penrose 1955), or from
    the eigenvalues of hermitian matrices.

    Singular values up to max(atol, rtol * the largest) count as 0. rtol is by default max(M, N) times the dtype's
    epsilon, or 0 if atol is passed. rcond is an older name of rtol. hermitian says that A is symmetric; then its lower
    triangle is read.

    >>> norch.linalg.pinv(norch.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    A = matrices(input, "pinv")
    if rcond is not None:
        if atol is not None or rtol is not None:
            raise ArgumentError("pinv: give rcond, or atol and rtol, not both")
        rtol = rcond
    if hermitian:
        A = square(A, "pinv")
    return _pinv(A, *tolerance("pinv", A, atol, rtol), hermitian)


@differentiable(
    "lstsq",
    broadcast=True,
    grad_A=lambda g, A, B: pinv_grad(matmul(g, B.mH), A, pinv(A)),
    grad_B=lambda g, A: matmul(pinv(A).mH, g),
    holomorphic=False,
)
def _lstsq(A: Tensor, B: Tensor, found: Tensor) -> Tensor:
    return found


_DRIVERS = {None: "gelsy", "gels": "gelsy", "gelsy": "gelsy", "gelsd": "gelsd", "gelss": "gelss"}


@autocast("float32 -")
def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> lstsq_result:
    """(solution, residuals, rank, singular_values) for A = input (..., M, N) and B = b (..., M, K) or (..., M).
    solution is the X (..., N, K) that makes |A X - B| smallest. residuals (..., K) or (..., 1) are the squares of this
    norm, for M > N and full rank, else empty. singular_values are those of A with driver "gelsd" or "gelss", else
    empty.

    driver is LAPACK's method: "gelsy" (the default), "gelsd", "gelss", or "gels", which gives no rank. Singular values
    up to rcond times the largest count as 0. The derivative is that of pinv(A) B. LinAlgError for NaN and infinities.

    >>> x = norch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> norch.linalg.lstsq(x, norch.tensor([[1.0], [3.0], [5.0]])).solution.round(decimals=4)
    tensor([[1.],
            [2.]])
    """
    A, B = matrices(input, "lstsq"), b
    alike(A, B, "lstsq")
    if driver not in _DRIVERS:
        raise ArgumentError(f"lstsq: driver is 'gels', 'gelsy', 'gelsd' or 'gelss', not {driver!r}")
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    whole = B[..., None] if vector else B
    if whole.ndim < 2 or whole.shape[-2] != A.shape[-2]:
        raise ShapeError(f"lstsq: A of {tuple(A.shape)} does not fit B of {tuple(B.shape)}")
    m, n = A.shape[-2:]
    if rcond is None:
        rcond = float(numpy().finfo(A.dtype.name).eps) * max(m, n)
    if not math.isfinite(rcond):
        raise ArgumentError(f"lstsq: rcond must be finite, not {rcond}")
    solve, int64 = scipy_linalg().lstsq, numpy().int64

    def solved(a: Any, b: Any) -> Any:
        columns = b.shape[1]
        b = b if columns else numpy().zeros((len(b), 1), b.dtype)  # without columns LAPACK would print a message
        x, _, rank, values = solve(a, b, cond=rcond, lapack_driver=_DRIVERS[driver], check_finite=False)
        return x[:, :columns], int64(rank), a[0, :0] if values is None else values

    X, rank, values = call("lstsq", lambda a, b: each(solved, a, b), A, whole, finite=True)
    full, none = m > n and holds(rank == n), A.real.new_empty(0)
    X = _lstsq(A, whole, X)
    residuals = matmul(A, X) - whole
    residuals = (residuals.abs() if residuals.is_complex() else residuals).square().sum(-2) if full else none
    rank = rank if driver != "gels" else rank.new_empty(0)
    values = values if driver in ("gelsd", "gelss") else none
    return lstsq_result(X[..., 0] if vector else X, residuals, rank, values)
