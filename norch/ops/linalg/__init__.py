"""Decompositions, solvers and inverses of matrices: NumPy's and SciPy's LAPACK, with derivatives.

lapack.py calls LAPACK; tensors of other devices are copied to the host. Functions with their derivatives: factor.py
(Cholesky, LU, QR), householder.py (the Q of QR), spectral.py, eigen.py and lobpcg.py (eigenvalues and singular
values), solve.py (systems, inverses, determinants). measure.py and torch_names.py are composed of them. These modules,
and NumPy, are imported when a function is called.
"""

from .._deferred import DeferredMethod
from ..op import METHODS

# Functions of torch_names.py that stand in norch itself; methods of Tensor, too, but for these.
_FUNCTIONS = ("lobpcg", "lu_unpack", "pca_lowrank", "svd_lowrank")
NAMES = (
    "cholesky cholesky_inverse cholesky_solve det geqrf inverse lobpcg logdet lu lu_solve lu_unpack matrix_exp orgqr "
    "ormqr pca_lowrank pinverse qr slogdet svd svd_lowrank triangular_solve"
).split()

METHODS.update({name: DeferredMethod(f"{__name__}.torch_names", name) for name in NAMES if name not in _FUNCTIONS})
