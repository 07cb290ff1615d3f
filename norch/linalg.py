"""``norch.linalg``: products, norms, decompositions, solvers and inverses under the names of ``torch.linalg``.

Each function is defined with its family in ops/. Functions that need LAPACK call NumPy or SciPy (ops/linalg/), which
are imported at the first call: ``pip install 'norch-dl[linalg]'``. These functions copy tensors of a CUDA device to the
host and back.
"""

from __future__ import annotations

from ._package.exports import publish
from ._package.typing import Tensor
from .errors import LinAlgError
from .ops._checks import at_least as _at_least
from .ops._public import publish_operations
from .ops.composed.grid import powers as _powers
from .ops.composed.products import linalg_cross as cross
from .ops.composed.products import matrix_power, multi_dot, vecdot
from .ops.linalg.eigen import eig, eigvals
from .ops.linalg.factor import cholesky, cholesky_ex, lu, lu_factor, lu_factor_ex, lu_solve, qr, solve_triangular
from .ops.linalg.householder import householder_product
from .ops.linalg.measure import cond, matrix_rank
from .ops.linalg.solve import det, inv, inv_ex, matrix_exp, slogdet, solve, solve_ex, tensorinv, tensorsolve
from .ops.linalg.spectral import eigh, eigvalsh, lstsq, pinv, svd, svdvals
from .ops.matmul import matmul
from .ops.norm import linalg_norm as norm
from .ops.norm import matrix_norm, vector_norm
from .ops.view import diagonal as _diagonal

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul",
    "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve",
    "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # PyTorch's name
    """The diagonals (..., K) of matrices (..., M, N): norch.diagonal() of the last two axes.

    >>> norch.linalg.diagonal(norch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return _diagonal(A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:  # PyTorch's name
    """The Vandermonde matrices (..., n, N) of vectors x (..., n): columns x^0 ... x^(N - 1). The default of N is n.
    ShapeError for a 0-d x.

    >>> norch.linalg.vander(norch.tensor([2.0, 3.0]), N=3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    return _powers(_at_least(1, x, "vander"), N)


publish_operations(globals(), {*__all__} - {"LinAlgError"}, without_out=("diagonal", "matrix_exp", "vander"))
publish(globals())
