"""Eigenvalues and eigenvectors of general matrices, which are complex."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._package.typing import Tensor
from ...autograd.derivative import derivative
from ...autograd.function import Outputs
from ...autograd.grad_mode import is_grad_enabled
from .._autocast import autocast
from ..composed.diagonal import diag_embed
from ..matmul import matmul
from .factor import factors_of, record_factors
from .lapack import call, square, ufunc
from .solve import solve
from .spectral import check_phases, differences

eig_result = NamedTuple("eig_result", [("eigenvalues", Tensor), ("eigenvectors", Tensor)])


def _eig_backward(g: Outputs, out: Tensor, rest: Any) -> tuple[Any]:
    """V^-H (diag(gw) + (V^H gV - V^H V Re(diag(V^H gV))) / conj(E)) V^H with E[i, j] = w[j] - w[i], and 1 on the
    diagonal, for columns of norm 1 (C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann and R. Haeb-Umbach, "On the
    computation of complex-valued gradients with application to statistically optimum beamforming", 2017, 4.77)."""
    w, V = factors_of(out, rest)
    gw: Any
    gw, gV = g.get(0), g.get(1)
    if gV is None:
        return (solve(V.mH, gw[..., :, None] * V.mH),)
    inner = matmul(V.mH, gV)
    check_phases("eig", inner.diagonal(0, -2, -1))
    inner = (inner - matmul(V.mH, V) * inner.diagonal(0, -2, -1).real[..., None, :]) / differences(w).conj()
    if gw is not None:
        inner = inner + diag_embed(gw)
    return (solve(V.mH, matmul(inner, V.mH)),)


_Eig = derivative("eig", ("A",), backward=_eig_backward, holomorphic=False)


@autocast("float32 -")
def eig(input: Tensor) -> eig_result:
    """(eigenvalues, eigenvectors) of A (..., N, N), by LAPACK's geev: complex w (..., N), in no order, and V (..., N,
    N), whose columns have norm 1, with A V = V diag(w).

    A derivative needs distinct eigenvalues. A function of eigenvectors has one only if it does not depend on their
    phases.

    >>> norch.linalg.eig(norch.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    A = square(input, "eig")
    dtype = A.dtype.to_complex()
    outs = [x.to(dtype) for x in call("eig", ufunc("eig"), A, finite=True, quiet=True)]
    return eig_result(*record_factors(_Eig, tuple(outs), A.to(dtype)))


@autocast("float32 -")
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues (..., N) of input (..., N, N), complex, in no order. See eig().

    >>> norch.linalg.eigvals(norch.tensor([[3.0, 1.0], [0.0, 2.0]])).real.sort().values
    tensor([2., 3.])
    """
    A = square(input, "eigvals")
    if is_grad_enabled() and A.requires_grad:
        return eig(A).eigenvalues
    return call("eigvals", ufunc("eigvals"), A, finite=True, quiet=True)[0].to(A.dtype.to_complex())
