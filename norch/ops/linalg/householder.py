"""Products of Householder reflections, the form in which LAPACK stores the Q of a QR decomposition: geqrf,
householder_product, ormqr.

A reflection is I - tau v v^H. The v of reflection i has column i of a matrix below the diagonal, 1 on it, and 0 above.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._binding.library import lib
from ..._package.typing import Tensor
from ...autograd.derivative import derivative
from ...autograd.differentiable import differentiable
from ...autograd.function import Outputs
from ...errors import ShapeError
from .._autocast import autocast
from .._operand import tensor_of
from ..composed.diagonal import tril
from ..composed.shape import common_shape
from ..copy import cat
from ..create import eye
from ..matmul import matmul
from .factor import record_factors, reflected, reflections
from .lapack import BLOCK, alike, direct, from_columns, host_buffer, in_columns, int32s, matrices, routine

geqrf_result = NamedTuple("geqrf_result", [("a", Tensor), ("tau", Tensor)])


def _no_backward(g: Outputs, rest: Any) -> Any:
    raise NotImplementedError("geqrf: has no derivative, as in PyTorch; norch.linalg.qr() has one")


_Geqrf = derivative("geqrf", ("A",), backward=_no_backward)


def _reflecting(A: Any) -> tuple[Tensor, Tensor]:
    a, tau = reflected(A)
    return from_columns(a), tau


@autocast("float32 -")
def geqrf(A: Tensor) -> geqrf_result:
    """(a, tau) of the QR decomposition of A (..., M, N), by LAPACK's geqrf. a (..., M, N) has R in its upper triangle,
    and below it the reflections whose product is Q; tau (..., K) has their factors, K = min(M, N).
    householder_product() and ormqr() take both. geqrf() has no derivative; linalg.qr() has one.

    >>> a, tau = norch.geqrf(norch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> (norch.linalg.householder_product(a, tau) @ a.triu()).round(decimals=4)
    tensor([[3., 1.],
            [4., 2.]])
    """
    A = matrices(A, "geqrf")
    outs = direct("geqrf", _reflecting, A)
    return geqrf_result(*record_factors(_Geqrf, outs, A))


def _with_common_batch(*matrices: Any) -> list[Any]:
    """Matrices with the same leading axes, which within vmap not all have; the second, tau, as vectors, contiguous."""
    batch = common_shape(*[lib.norch_shape(x)[:-2] for x in matrices])
    found = [lib.norch_expand(x, (*batch, *lib.norch_shape(x)[-2:])) for x in matrices]
    found[1] = lib.norch_contiguous(lib.norch_squeeze(found[1], (-2,)))
    return found


def _reflected_backward(
    g: Tensor, A: Tensor, tau: Tensor, C: Tensor, adjoint: bool, needs_input_grad: Any
) -> tuple[Any, Any, Any]:
    """The reflections applied one by one, H = I - t v v^H: with a what g is before H in the product and b what C is
    after it, dL = Re tr(a^H dH b), so the gradient of t is -(v^H a)(b^H v) and that of v is
    -(conj(t) a b^H v + t b a^H v)."""
    grad_C = _reflected(A, tau, g, not adjoint) if needs_input_grad[2] else None
    if not (needs_input_grad[0] or needs_input_grad[1]):
        return None, None, grad_C
    m, k = A.shape[-2], tau.shape[-1]
    if not k:
        return A.new_zeros(A.shape), tau.new_zeros(tau.shape), grad_C
    V = tril(A[..., :k], -1) + eye(m, k, dtype=A.dtype, device=A.device)
    factors = (tau.conj() if adjoint else tau)[..., None, None, :]
    order = [*range(k - 1, -1, -1)] if adjoint else [*range(k)]
    v, t = [V[..., i : i + 1] for i in range(k)], [factors[..., i] for i in range(k)]
    after = [C]
    for i in reversed(order[1:]):
        after.append(after[-1] - t[i] * matmul(v[i], matmul(v[i].mH, after[-1])))
    grad_v, grad_t, a = [v[0]] * k, [t[0]] * k, g
    for i in order:
        b = after.pop()
        left, right = matmul(v[i].mH, a), matmul(v[i].mH, b)
        grad_t[i] = -matmul(left, right.mH)[..., 0]
        grad_v[i] = -(t[i].conj() * matmul(a, right.mH) + t[i] * matmul(b, left.mH))
        a = a - t[i].conj() * matmul(v[i], left)
    grad_A, grad_tau = tril(cat(grad_v, -1), -1), cat(grad_t, -1)
    if A.shape[-1] > k:
        grad_A = cat([grad_A, A.new_zeros((*A.shape[:-1], A.shape[-1] - k))], -1)
    return grad_A, grad_tau.conj() if adjoint else grad_tau, grad_C


@differentiable("ormqr", inputs=("A", "tau", "C"), backward=_reflected_backward, holomorphic=False)
def _reflected(A: Tensor, tau: Tensor, C: Tensor, adjoint: bool) -> Tensor:
    """H_1 ... H_k C, or (H_1 ... H_k)^H C with adjoint."""
    k = tau.shape[-1]
    if not C.numel() or not k:
        return C.clone()
    trans = ("C" if A.is_complex() else "T") if adjoint else "N"

    def product(A: Any, tau: Any, C: Any) -> tuple[Tensor]:
        A, factors, C = _with_common_batch(A, tau, C)
        (m, n), work, k = C.shape[-2:], host_buffer((BLOCK * C.shape[-1],), C), factors.shape[-1]
        a, c = in_columns(A[..., :k]), in_columns(C)
        routine("ormqr", c, "L", trans, m, n, k, a, m, factors, c, m, (work,), BLOCK * n, int32s(*C.shape[:-2]))
        return (from_columns(c),)

    return direct("ormqr", product, A, lib.norch_unsqueeze(tau, -2), C)[0]


def _orgqr_backward(g: Tensor, A: Tensor, tau: Tensor, needs_input_grad: Any) -> tuple[Any, Any]:
    unit = eye(*A.shape[-2:], dtype=A.dtype, device=A.device).expand(A.shape)
    return _reflected_backward(g, A, tau, unit, False, (*needs_input_grad, False))[:2]


@differentiable("householder_product", inputs=("A", "tau"), backward=_orgqr_backward, holomorphic=False)
def _columns(A: Tensor, tau: Tensor) -> Tensor:
    def product(A: Any, tau: Any) -> tuple[Tensor]:
        A, factors = _with_common_batch(A, tau)
        return (reflections(in_columns(A), factors),)

    return direct("householder_product", product, A, lib.norch_unsqueeze(tau, -2))[0]


def _reflections(A: Tensor, tau: Tensor, name: str) -> tuple[Tensor, Tensor]:
    A = matrices(A, name)
    alike(A, tau, name)
    tau = tensor_of(tau, name)
    if tau.shape[:-1] != A.shape[:-2] or not tau.ndim or tau.shape[-1] > min(A.shape[-2:]):
        raise ShapeError(f"{name}: tau of {tuple(tau.shape)} does not fit reflections of {tuple(A.shape)}")
    return A, tau


@autocast("float32 -")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first N columns of H_1 ... H_K, (..., M, N), by LAPACK's orgqr (ungqr for complex matrices). The columns of
    input (..., M, N), M >= N, have the reflections, tau (..., K), K <= N, their factors. They are the Q of geqrf().
    ShapeError for other shapes.

    >>> norch.linalg.householder_product(norch.tensor([[0.0], [1.0]]), norch.tensor([1.0]))
    tensor([[ 0.],
            [-1.]])
    """
    A, tau = _reflections(input, tau, "householder_product")
    m, n = A.shape[-2:]
    if m < n:
        raise ShapeError(f"householder_product: A of {tuple(A.shape)} has more columns than rows")
    return _columns(A, tau)


@autocast("float32 -")
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q other for other (..., M, N), or other Q with left=False, by LAPACK's ormqr (unmqr for complex matrices). Q =
    H_1 ... H_K is the whole square matrix of geqrf(): input is (..., M, K), or (..., N, K) with left=False, and tau
    (..., K). With transpose Q^H replaces Q.

    >>> a, tau = norch.geqrf(norch.tensor([[3.0], [4.0]]))
    >>> norch.ormqr(a, tau, norch.tensor([[3.0], [4.0]]), transpose=True).round(decimals=4)
    tensor([[-5.],
            [ 0.]])
    """
    A, tau = _reflections(input, tau, "ormqr")
    C = matrices(other, "ormqr")
    alike(A, C, "ormqr")
    if C.shape[:-2] != A.shape[:-2] or C.shape[-2 if left else -1] != A.shape[-2]:
        raise ShapeError(f"ormqr: input of {tuple(A.shape)} does not fit other of {tuple(C.shape)}")
    return _reflected(A, tau, C, transpose) if left else _reflected(A, tau, C.mH, not transpose).mH
