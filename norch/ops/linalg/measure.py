"""Rank and condition of matrices, composed of their singular values and norms."""

from __future__ import annotations

import math
from typing import Any

from ..._package.typing import Tensor
from .._autocast import autocast
from ..norm import matrix_norm
from .lapack import call, matrices, numpy, square, ufunc
from .solve import inv_ex
from .spectral import svdvals, tolerance


@autocast("float32 -")
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The number (..., int64) of singular values of A (..., M, N) that exceed max(atol, rtol * the largest), with the
    defaults of pinv(). tol is atol with an rtol of 0. hermitian says that A is symmetric, which is faster.

    >>> norch.linalg.matrix_rank(norch.ones(3, 3))
    tensor(1)
    """
    A = matrices(input, "matrix_rank")
    if hermitian:
        A = square(A, "matrix_rank")
    if tol is not None:
        atol, rtol = tol, 0.0
    least, relative = tolerance("matrix_rank", A, atol, rtol)
    np = numpy()

    def rank(a: Any) -> Any:
        s = abs(ufunc("eigvalsh_lo")(a)) if hermitian else ufunc("svd")(a)
        return (s > np.maximum(least, relative * s.max(-1, initial=0))[..., None]).sum(-1)

    return call("matrix_rank", rank, A, finite=True)[0]


@autocast("float32 -")
def cond(input: Tensor, p: Any = None) -> Tensor:
    """The condition numbers (...) |A| |A^-1| of A: for square matrices in the norm p of linalg.matrix_norm(), or the
    ratio of the largest and the smallest singular value (2, the default; -2 is its reciprocal). Singular matrices have
    inf, empty ones 0.

    >>> norch.linalg.cond(norch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(2.)
    """
    A = matrices(input, "cond")
    if p in (None, 2, -2):
        if 0 in A.shape[-2:]:
            return A.real.new_zeros(A.shape[:-2])
        S = svdvals(A)
        return S[..., -1] / S[..., 0] if p == -2 else S[..., 0] / S[..., -1]
    if p == "nuc":  # as the singular values of the inverse, which singular matrices lack
        S = svdvals(square(A, "cond"))
        return S.sum(-1) * S.reciprocal().sum(-1)
    inverse, info = inv_ex(square(A, "cond"))
    condition = matrix_norm(A, p) * matrix_norm(inverse, p)
    return condition.where(info == 0, math.inf)
