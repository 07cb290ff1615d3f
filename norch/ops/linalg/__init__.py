"""Decompositions, solvers and inverses of matrices: NumPy's and SciPy's LAPACK, with derivatives.

lapack.py calls LAPACK; tensors of other devices are copied to the host. Functions with their derivatives: factor.py
(Cholesky, LU, QR), householder.py (the Q of QR), spectral.py, eigen.py and lobpcg.py (eigenvalues and singular
values), solve.py (systems, inverses, determinants). measure.py and torch_names.py are composed of them. These modules,
and NumPy, are imported when a function is called.
"""
