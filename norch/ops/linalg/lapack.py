"""LAPACK through NumPy and SciPy: arrays of tensors and back, and its errors by name.

NumPy works on whole batches; for what only SciPy has, each() goes through the matrices of a batch one by one. A tensor
on a CUDA device is copied to the host, and the result back.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from threading import get_ident
from types import ModuleType
from typing import Any

from ..._binding.library import lib
from ..._package.typing import Tensor
from ...autograd.levels import BatchedBase, batching
from ...errors import DTypeError, LinAlgError, ShapeError
from .._checks import at_least, on_one_device
from .._operand import tensor_of
from ..create import empty, zeros
from ..values import from_numpy

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
def routine(name: str, dtype: str) -> Any:
    """SciPy's function of a routine of LAPACK, or of BLAS, for a dtype."""
    linalg = scipy_linalg()
    found = linalg.blas.get_blas_funcs if name == "trsm" else linalg.lapack.get_lapack_funcs
    return found(name, dtype=dtype)


# ---- operands --------------------------------------------------------------------------------------------------------


# Operations whose derivatives hold for complex matrices; the others raise an error for them.
_COMPLEX = frozenset(
    "cholesky cholesky_ex cholesky_inverse cholesky_solve cond det eig eigh eigvals geqrf householder_product inv "
    "inv_ex lstsq lu_factor lu_solve lu_unpack matrix_exp matrix_rank ormqr pca_lowrank pinv qr slogdet solve solve_ex "
    "solve_triangular svd svd_lowrank".split()
)


def matrices(A: Tensor, name: str) -> Tensor:
    """A, which must be matrices (..., M, N) of float32 or float64, or complex where the operation takes these:
    ShapeError or DTypeError otherwise."""
    A = at_least(2, tensor_of(A, name), name)
    if A.is_complex() and name not in _COMPLEX:
        raise DTypeError(f"{name}: {A.dtype.name} is not supported")
    if A.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise DTypeError(
            f"{name}: not defined for dtype {A.dtype.name}, only for float32 and float64"
            + (", complex64 and complex128" if name in _COMPLEX else "")
        )
    return A


def square(A: Tensor, name: str) -> Tensor:
    """A, which must be square matrices (..., N, N)."""
    A = matrices(A, name)
    if A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"{name}: expected square matrices, got shape {tuple(A.shape)}")
    return A


def alike(A: Any, B: Any, name: str) -> None:
    """DTypeError or DeviceError unless A and B have the same dtype and device."""
    on_one_device(name, A, tensor_of(B, name))
    if A.dtype is not B.dtype:
        raise DTypeError(f"{name}: expected one dtype, got {A.dtype.name} and {B.dtype.name}")


# ---- calls -----------------------------------------------------------------------------------------------------------


def call(
    name: str, function: Callable[..., Any], *tensors: Tensor, finite: bool = False, **options: Any
) -> tuple[Tensor, ...]:
    """The results of function, given the arrays of tensors, as tensors on the device of the first.

    finite: for iterative algorithms: NaN and infinities are refused, with which LAPACK may not terminate.

    A failure of LAPACK (a singular matrix, no convergence) raises a LinAlgError that names the operation; warnings of
    infinities and NaN are suppressed.
    """
    for x in tensors:
        if isinstance(x, BatchedBase):  # the samples of vmap become a leading axis
            run = functools.partial(call, name, function, finite=finite, **options)
            return batching().with_leading_axis(run, tensors)
    np = numpy(name)
    if tensors[0].is_meta:  # the shapes and dtypes are those of no samples
        ndim = max(x.ndim for x in tensors)
        none = [zeros(0, *(1,) * (ndim - x.ndim), *x.shape, dtype=x.dtype, device="cpu") for x in tensors]
        return tuple(empty(x.shape[1:], dtype=x.dtype, device="meta") for x in call(name, function, *none, **options))
    at_host = tensors[0].is_cpu
    with np.errstate(all="ignore"):
        try:
            arrays = [_array(x) for x in tensors]
            if finite:
                arrays = [x.copy() for x in arrays]  # so that no other thread writes to them after the check
                if not all(np.isfinite(x).all() for x in arrays):
                    raise np.linalg.LinAlgError("the matrices hold NaN or infinities")
            found = function(*arrays, **options) if not watchers else _watched(name, function, tensors, arrays, options)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"{name}: {error}") from None
    several = tuple([_owned(np, x) for x in (found if isinstance(found, tuple) else (found,))])
    return several if at_host else tuple(x.to(tensors[0].device) for x in several)


def _array(x: Any) -> Any:
    """The elements of a tensor, on the host, as an array."""
    found = lib.norch_to_array(x)
    return x.detach().cpu().numpy() if found is None else found


def _owned(np: ModuleType, found: Any) -> Tensor:
    """A result as a tensor that alone has its memory, in the order of C."""
    if type(found) is not np.ndarray:
        found = np.asarray(found)
    flags = found.flags
    return from_numpy(found if flags.carray and flags.owndata else found.copy("C"))


# Calls for profiles and traces: rows as norch_profile_stop() gives them, with a name as the family.
watchers: list[Callable[[tuple[Any, ...]], None]] = []


def _watched(name: str, function: Callable[..., Any], tensors: Any, arrays: Any, options: dict[str, Any]) -> Any:
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
    """function of the matrices of arrays (..., M, N), whose batches broadcast, stacked; a tuple of stacks for a tuple.

    An empty batch takes shapes and dtypes from one matrix of zeros with ones on its diagonal.
    """
    np = sys.modules["numpy"]
    if max(x.ndim for x in arrays) == 2:
        one = function(*arrays, **options)
        return tuple([np.asarray(x) for x in one]) if isinstance(one, tuple) else np.asarray(one)
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    count = int(np.prod(batch, dtype=int))
    rows = [np.broadcast_to(x, batch + x.shape[-2:]).reshape((count, *x.shape[-2:])) for x in arrays]
    if count == 0:
        rows = [np.eye(*x.shape[-2:], dtype=x.dtype)[None] for x in arrays]
    found = [function(*one, **options) for one in zip(*rows, strict=True)]
    if not isinstance(found[0], tuple):
        found = [(one,) for one in found]
    stacked = tuple(np.stack(part)[:count].reshape(batch + np.shape(part[0])) for part in zip(*found, strict=True))
    return stacked if len(stacked) > 1 else stacked[0]
