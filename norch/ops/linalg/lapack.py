"""LAPACK through NumPy and SciPy, and its errors by name. There are three ways to call it:

- routine(): SciPy's LAPACK and BLAS by the addresses of their functions, on the memory of tensors. direct() calls a
  function that does so.
- ufunc(): NumPy's LAPACK, for whole batches of arrays. call() converts tensors to arrays, and the results to tensors.
- functions of scipy.linalg: each() calls them for the matrices of a batch one by one.

A tensor on a CUDA device is copied to the host, and the result back.
"""

from __future__ import annotations

import functools
import importlib
import math
import sys
from collections.abc import Callable
from threading import get_ident
from types import ModuleType
from typing import Any

from ..._binding.library import lib
from ..._package.typing import Tensor
from ...autograd.levels import BatchedBase, batching
from ...device import CPU
from ...dtype import BY_NAME, DTYPES
from ...errors import DTypeError, LinAlgError, ShapeError
from .._checks import at_least, on_one_device
from .._operand import operand, tensor_of
from .._rows import OPCODES
from ..create import empty, zeros
from ..values import from_numpy

_SUM = OPCODES["sum"]
_EXTRA = "pip install 'norch-dl[linalg]' brings NumPy and SciPy"


@functools.cache
def numpy(name: str = "norch.linalg") -> ModuleType:
    """NumPy, or an ImportError that names the operation and how to install it."""
    try:
        import numpy
    except ImportError as error:
        raise ImportError(f"{name} needs NumPy; {_EXTRA}") from error
    return numpy


@functools.cache
def scipy_linalg() -> Any:
    """scipy.linalg, or an ImportError that says how to install it."""
    try:
        import scipy.linalg  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(f"this function of norch.linalg needs SciPy, whose LAPACK it calls; {_EXTRA}") from error
    return scipy.linalg


@functools.cache
def has_scipy() -> bool:
    """Whether there is SciPy. Functions that NumPy has too do not need it."""
    try:
        return bool(scipy_linalg())
    except ImportError:
        return False


# NumPy's ufuncs of LAPACK in numpy.linalg._umath_linalg: the function of numpy.linalg that calls each, with options,
# and what its failure says.
_UFUNCS: dict[str, tuple[str, dict[str, Any], str]] = {
    "cholesky_lo": ("cholesky", {}, "a matrix is not positive definite"),
    "det": ("det", {}, ""),
    "eig": ("eig", {}, "the eigenvalues did not converge"),
    "eigh_lo": ("eigh", {}, "the eigenvalues did not converge"),
    "eigh_up": ("eigh", {"UPLO": "U"}, "the eigenvalues did not converge"),
    "eigvals": ("eigvals", {}, "the eigenvalues did not converge"),
    "eigvalsh_lo": ("eigvalsh", {}, "the eigenvalues did not converge"),
    "eigvalsh_up": ("eigvalsh", {"UPLO": "U"}, "the eigenvalues did not converge"),
    "inv": ("inv", {}, "a matrix is singular"),
    "slogdet": ("slogdet", {}, ""),
    "solve": ("solve", {}, "a matrix is singular"),
    "svd": ("svd", {"compute_uv": False}, "the singular values did not converge"),
    "svd_f": ("svd", {}, "the singular values did not converge"),
    "svd_s": ("svd", {"full_matrices": False}, "the singular values did not converge"),
}


@functools.cache
def ufunc(name: str) -> Callable[..., Any]:
    """A function of matrices (..., M, N) as arrays that computes in their dtype, by NumPy's ufunc: the functions of
    numpy.linalg compute float32 in float64. Where a version of NumPy lacks it, that function.

    LinAlgError where LAPACK fails for one of the matrices. Warnings are suppressed.
    """
    np, (public, options, failure) = numpy(), _UFUNCS[name]
    routine: Any = getattr(getattr(np.linalg, "_umath_linalg", None), name, None)

    def fail(error: Any, flag: Any) -> None:
        raise np.linalg.LinAlgError(failure)

    on_failure = "call" if failure else "ignore"
    errors = {"call": fail, "invalid": on_failure, "over": "ignore", "divide": "ignore", "under": "ignore"}

    def run(*arrays: Any) -> Any:
        with np.errstate(**errors):
            return routine(*arrays)

    def run_public(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            result = getattr(np.linalg, public)(*arrays, **options)
            return tuple(result) if isinstance(result, tuple) else result

    return run_public if routine is None else run


# ---- routines of LAPACK on tensors ----------------------------------------------------------------------------------


_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_OF_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr"}
_INT32 = BY_NAME["int32"].code
BLOCK = 64  # rows or columns that LAPACK's QR takes at once, at most; its workspace is so many rows or columns


@functools.cache
def _function(name: str, dtype: int) -> Any:
    """The function of SciPy's LAPACK or BLAS for a dtype's number, a capsule."""
    scipy_linalg()
    module = importlib.import_module("scipy.linalg.cython_blas" if name == "trsm" else "scipy.linalg.cython_lapack")
    letter = _LETTERS[DTYPES[dtype].name]
    return module.__pyx_capi__[letter + (_OF_COMPLEX.get(name, name) if letter in "cz" else name)]


def routine(name: str, like: Tensor, *arguments: Any) -> None:
    """Calls a routine for each matrix of a batch of the shape of like (..., M, N). The arguments are LAPACK's: texts of
    a letter, integers, and tensors in C order with the leading axes of like; (x,) is a tensor that is the same for all
    matrices. LAPACK reads matrices in the order of Fortran, so a matrix (M, N) here is the transpose there.
    """
    shape = lib.norch_shape(like)
    count = math.prod(shape[:-2]) if len(shape) > 2 else 1
    if count:
        lib.norch_lapack(_function(name, like._dtype), count, *arguments)


def direct(name: str, function: Callable[..., Any], *tensors: Any) -> tuple[Tensor, ...]:
    """The results of function, which calls routine(). It gets tensors on the host, and the results are a tuple of
    tensors on the device of the first argument. It neither writes to its arguments nor records.
    """
    for x in tensors:
        if isinstance(x, BatchedBase):  # the samples of vmap become a leading axis
            return batching().with_leading_axis(functools.partial(direct, name, function), tensors)
    first = tensors[0]
    on_host = first._device_type == _HOST[0]
    if not on_host and first.is_meta:
        return _of_no_samples(functools.partial(direct, name, function), tensors)
    # Headers of its own: another thread may give a tensor other data, of another shape.
    hosted = [lib.norch_alias(x) if x._device_type == _HOST[0] else x.detach().cpu() for x in tensors]
    results = function(*hosted) if not watchers else _watched(name, function, tensors, *hosted)
    return results if on_host else tuple(x.to(first.device) for x in results)


LEAF = 32  # rows of a triangle that are solved one after the other; products compute the rest


def is_large(B: Any) -> bool:
    """Whether solve_by_halves() is faster than LAPACK for a triangle and B (N, K)."""
    n, k = lib.norch_shape(B)[-2:]
    return n > 2 * LEAF and k >= 16 and DTYPES[B._dtype].is_floating_point


def solve_by_halves(X: Any, A: Any, upper: bool, unit: bool) -> None:
    """Overwrites X, which has B (N, K), with the solution of A X = B for a real triangular A (N, N): X_2 from
    B_2 - A_21 X_1."""

    def solve(low: int, high: int, B: Any) -> None:
        size = high - low
        if size <= LEAF:
            square = lib.norch_slice(lib.norch_slice(A, 0, low, high, 1), 1, low, high, 1)
            lib.norch_copy(lib.norch_slice(X, 0, low, high, 1), lib.norch_solve_triangle(square, B, upper, unit))
            return
        half = (size // 2 + LEAF - 1) // LEAF * LEAF
        first, last = ((half, size), (0, half)) if upper else ((0, half), (half, size))
        solve(low + first[0], low + first[1], lib.norch_slice(B, 0, *first, 1))
        rows = lib.norch_slice(A, 0, low + last[0], low + last[1], 1)
        others = lib.norch_slice(rows, 1, low + first[0], low + first[1], 1)
        known = lib.norch_slice(X, 0, low + first[0], low + first[1], 1)
        rest = lib.norch_addmm(lib.norch_slice(B, 0, *last, 1), others, known, 1.0, -1.0)
        solve(low + last[0], low + last[1], rest)

    solve(0, A.shape[0], X)


def in_rows(x: Any) -> Tensor:
    """A copy of matrices in the order of C."""
    rows = lib.norch_contiguous(x)
    return lib.norch_clone(rows) if rows is x else rows


def in_columns(x: Any) -> Tensor:
    """A copy of matrices (..., M, N) in the order of Fortran, as its transpose (..., N, M)."""
    return in_rows(lib.norch_transpose(x, -2, -1))


def from_columns(x: Any) -> Tensor:
    """Matrices (..., M, N) in C order, from the result of in_columns()."""
    return lib.norch_contiguous(lib.norch_transpose(x, -2, -1))


def squares(x: Any) -> Tensor:
    """x. ShapeError if another thread has changed its shape since the check, so that it is not square."""
    *batch, _, n = lib.norch_shape(x)
    return lib.norch_expand(x, (*batch, n, n))


def host_buffer(shape: Any, like: Tensor) -> Tensor:
    """A new tensor on the host of the dtype of like."""
    return lib.norch_empty(tuple(shape), like._dtype, _HOST)


def zeros_at_host(shape: Any, like: Tensor) -> Tensor:
    """Zeros on the host of the dtype of like."""
    return lib.norch_full(tuple(shape), like._dtype, 0.0, 0, _HOST)


def identities(shape: Any, like: Tensor) -> Tensor:
    """Matrices on the host of the dtype of like, with ones on their diagonals and zeros elsewhere."""
    return with_unit_diagonal(zeros_at_host(shape, like))


def with_unit_diagonal(x: Any) -> Any:
    """x, new matrices, with ones written on their diagonals."""
    lib.norch_copy(lib.norch_diagonal(x, 0, -2, -1), operand(1))
    return x


def int32s(*shape: int, like: Any = None) -> Tensor:
    """Zeros of int32, on the host or the device of like."""
    return lib.norch_full(shape, _INT32, 0.0, 0, _HOST if like is None else (like._device_type, like._device_index))


# ---- operands --------------------------------------------------------------------------------------------------------


# Operations whose derivatives hold for complex matrices; the others raise an error for them.
_NUMBERS = frozenset(("float32", "float64", "complex64", "complex128"))
_COMPLEX = frozenset(
    "cholesky cholesky_ex cholesky_inverse cholesky_solve cond det eig eigh eigvals geqrf householder_product inv "
    "inv_ex lstsq lu_factor lu_solve lu_unpack matrix_exp matrix_rank ormqr pca_lowrank pinv qr slogdet solve solve_ex "
    "solve_triangular svd svd_lowrank".split()
)


def matrices(A: Tensor, name: str) -> Tensor:
    """A. ShapeError or DTypeError unless it has matrices (..., M, N) of float32 or float64, or of complex numbers if
    the operation takes these.
    """
    A = at_least(2, A, name)
    if A.dtype.is_complex and name not in _COMPLEX:
        raise DTypeError(f"{name}: {A.dtype.name} is not supported")
    if A.dtype.name not in _NUMBERS:
        raise DTypeError(
            f"{name}: not defined for dtype {A.dtype.name}, only for float32 and float64"
            + (", complex64 and complex128" if name in _COMPLEX else "")
        )
    return A


def square(A: Tensor, name: str) -> Tensor:
    """A. ShapeError unless its matrices are square, (..., N, N)."""
    rows, columns = lib.norch_shape(matrices(A, name))[-2:]
    if rows != columns:
        raise ShapeError(f"{name}: expected square matrices, got shape {tuple(A.shape)}")
    return A


def alike(A: Any, B: Any, name: str) -> None:
    """DTypeError or DeviceError unless A and B have the same dtype and device."""
    on_one_device(name, A, tensor_of(B, name))
    if A.dtype is not B.dtype:
        raise DTypeError(f"{name}: expected one dtype, got {A.dtype.name} and {B.dtype.name}")


# ---- calls -----------------------------------------------------------------------------------------------------------


def call(
    name: str, function: Callable[..., Any], *tensors: Tensor, finite: bool = False, quiet: bool = False, **options: Any
) -> tuple[Tensor, ...]:
    """The results of function, which gets the tensors as arrays, as tensors on the device of the first.

    With finite, for iterative algorithms that may not terminate otherwise, NaN and infinities are refused; function
    gets copies, which it may write to. quiet says that function raises no warnings of infinities and NaN; otherwise
    they are suppressed. If LAPACK fails (a singular matrix, no convergence), a LinAlgError names the operation.
    """
    for x in tensors:
        if isinstance(x, BatchedBase):  # the samples of vmap become a leading axis
            run = functools.partial(call, name, function, finite=finite, quiet=quiet, **options)
            return batching().with_leading_axis(run, tensors)
    np, first = numpy(name), tensors[0]
    on_host = first._device_type == _HOST[0]
    if not on_host and first.is_meta:
        return _of_no_samples(functools.partial(call, name, function, **options), tensors)
    try:
        arrays = [_finite(name, x) if finite else array_of(x) for x in tensors]
        if watchers:
            function = functools.partial(_watched, name, function, tensors)
        if quiet:
            results = function(*arrays, **options)
        else:
            with np.errstate(all="ignore"):
                results = function(*arrays, **options)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{name}: {error}") from None
    several = tuple([_owned(x) for x in results]) if isinstance(results, tuple) else (_owned(results),)
    return several if on_host else tuple(x.to(first.device) for x in several)


def _of_no_samples(run: Callable[..., Any], tensors: Any) -> tuple[Tensor, ...]:
    """Results on "meta", with the shapes and dtypes that a batch of no samples gives."""
    ndim = max(x.ndim for x in tensors)
    none = [zeros(0, *(1,) * (ndim - x.ndim), *x.shape, dtype=x.dtype, device="cpu") for x in tensors]
    return tuple(empty(x.shape[1:], dtype=x.dtype, device="meta") for x in run(*none))


_HOST = (CPU.code, 0)


def array_of(x: Any) -> Any:
    """The elements of a tensor, on the host, as an array."""
    array = lib.norch_to_array(x)
    return x.detach().cpu().numpy() if array is None else array


def total(x: Any) -> Any:
    """The sum of all elements of a tensor, as a number."""
    return lib.norch_item(lib.norch_reduce(_SUM, x, (), False, -1, 0.0))


def _finite(name: str, x: Any) -> Any:
    """A copy of the elements, so that no other thread writes to them after the check; LinAlgError for NaN and
    infinities."""
    x = lib.norch_clone(x if x.is_cpu else x.detach().cpu())
    array, whole = array_of(x), total(x)
    if whole - whole != 0 and not numpy().isfinite(array).all():  # a sum of finite elements may be infinite
        raise LinAlgError(f"{name}: the matrices hold NaN or infinities")
    return array


def _owned(array: Any) -> Tensor:
    """A result as a tensor in C order that shares its memory with nothing."""
    tensor = lib.norch_from_array(array)
    if tensor is not None:
        owner = array.base
        if owner is None or (type(owner) is type(array) and owner.base is None and owner.nbytes == array.nbytes):
            return lib.norch_contiguous(tensor)
    return from_numpy(numpy().array(array, order="C"))


# Calls for profiles and traces: rows as norch_profile_stop() gives them, with a name as the family.
watchers: list[Callable[[tuple[Any, ...]], None]] = []


def _watched(name: str, function: Callable[..., Any], tensors: Any, *arrays: Any, **options: Any) -> Any:
    """function(*arrays, **options), reported to profiles and traces."""
    begin, results = lib.norch_profile_time(), None
    try:
        results = function(*arrays, **options)
        return results
    finally:
        end, several = lib.norch_profile_time(), results if isinstance(results, tuple) else (results,)
        size = sum(getattr(x, "nbytes", 0) for x in several)
        shapes = tuple(tuple(x.shape) for x in tensors)
        row = (name, 0, tensors[0].dtype.code, 0, 0, get_ident(), begin, end, size, 0, results is None, -1, 0)
        for watch in watchers:
            watch((*row, None, shapes))


def each(function: Callable[..., Any], *arrays: Any, **options: Any) -> Any:
    """Calls function for the matrices of arrays (..., M, N), whose batches broadcast, and stacks the results; a tuple
    of results becomes a tuple of stacks. For an empty batch, one matrix of zeros with ones on its diagonal shows shapes
    and dtypes.
    """
    np = sys.modules["numpy"]
    if max(x.ndim for x in arrays) == 2:
        result = function(*arrays, **options)
        return tuple([np.asarray(x) for x in result]) if isinstance(result, tuple) else np.asarray(result)
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    count = int(np.prod(batch, dtype=int))
    rows = [np.broadcast_to(x, batch + x.shape[-2:]).reshape((count, *x.shape[-2:])) for x in arrays]
    if count == 0:
        rows = [np.eye(*x.shape[-2:], dtype=x.dtype)[None] for x in arrays]
    results = [function(*result, **options) for result in zip(*rows, strict=True)]
    if not isinstance(results[0], tuple):
        results = [(result,) for result in results]
    stacked = tuple(np.stack(part)[:count].reshape(batch + np.shape(part[0])) for part in zip(*results, strict=True))
    return stacked if len(stacked) > 1 else stacked[0]
