"""``norch.linalg``: products and norms under the names of ``torch.linalg``.

It only hands names on; the functions live with their families in ops/. Decompositions and solvers are LAPACK's, and
left to NumPy and SciPy, which read ``x.numpy()``; ``norch.from_numpy()`` takes what they give.
"""

from __future__ import annotations

from typing import Any

from .ops.composed.products import linalg_cross as cross
from .ops.composed.products import matrix_power, multi_dot, vecdot
from .ops.matmul import matmul
from .ops.norm import linalg_norm as norm
from .ops.norm import matrix_norm, vector_norm
from .ops.view import diagonal as _diagonal

_ELSEWHERE = frozenset(
    "cholesky cholesky_ex cond det eig eigh eigvals eigvalsh householder_product inv inv_ex ldl_factor ldl_factor_ex "
    "ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve matrix_exp matrix_rank pinv qr slogdet solve solve_ex "
    "solve_triangular svd svdvals tensorinv tensorsolve".split()
)

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "multi_dot", "norm", "vecdot", "vector_norm"]


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:  # noqa: N803  (PyTorch's name)
    """The diagonals of matrices: norch.diagonal() of the last two axes."""
    return _diagonal(A, offset, dim1, dim2)


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        raise AttributeError(
            f"norch.linalg has no {name}: decompositions and solvers are left to numpy.linalg and scipy.linalg, "
            "which read x.numpy(); norch.from_numpy() takes what they give"
        )
    raise AttributeError(f"module 'norch.linalg' has no attribute {name!r}")
