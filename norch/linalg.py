"""``norch.linalg``: products and norms under the names of ``torch.linalg``.

The functions are defined with their families in ops/. There are no decompositions and solvers: NumPy and SciPy, which
read ``x.numpy()``, have those of LAPACK, and ``norch.from_numpy()`` takes their results.
"""

from __future__ import annotations

from typing import Any

from ._left_out import nothing_more
from .ops.composed.products import linalg_cross as cross
from .ops.composed.products import matrix_power, multi_dot, vecdot
from .ops.matmul import matmul
from .ops.norm import linalg_norm as norm
from .ops.norm import matrix_norm, vector_norm
from .ops.view import diagonal as _diagonal

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "multi_dot", "norm", "vecdot", "vector_norm"]
__dir__ = __all__.copy  # completion shows the public names only


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:  # noqa: N803  (PyTorch's name)
    """The diagonals of matrices: norch.diagonal() of the last two axes."""
    return _diagonal(A, offset, dim1, dim2)


__getattr__ = nothing_more(__name__)
