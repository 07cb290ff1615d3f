"""Small composites that belong to no family: covariance, distances, integrals of samples, membership, questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._handle import Handle
from ...dtype import dtype_named, get_default_dtype, int64
from ...errors import ArgumentError, BoundsError, DTypeError, ShapeError
from .._operand import must, own_errors
from ..copy import cast
from ..matmul import matmul
from ..norm import vector_norm
from ..pointwise import where
from ..reduce import sum as sum_
from ..sort import searchsorted
from ..view import as_strided, broadcast_to, narrow, reshape, unsqueeze
from .shape import broadcast_tensors

__all__ = [
    *("as_strided_scatter", "cdist", "corrcoef", "cosine_similarity", "cov", "cumulative_trapezoid"),
    *("is_same_size", "is_signed", "isin", "pairwise_distance", "real", "renorm"),
    *("trapezoid", "trapz", "typename", "unravel_index"),
]


def _check_float(x: Any, name: str) -> None:
    if not x.dtype.is_floating_point:
        raise DTypeError(f"{name}: not defined for dtype {x.dtype.name}")


def _float(x: Any, name: str) -> Any:
    x = must(x, name)
    if x.dtype.kind == "b":
        raise DTypeError(f"{name}: not defined for dtype bool")
    return x if x.dtype.is_floating_point else x.to(get_default_dtype())


# ---- statistics -------------------------------------------------------------------------------------------------


def cov(input: Any, *, correction: float = 1, fweights: Any = None, aweights: Any = None) -> Any:  # noqa: A002
    """The covariances of variables, one a row of input (a vector is one variable), over observations, one a column.

    fweights (integers) say how often each observation was made, aweights (floats) how much it counts.

    >>> norch.cov(norch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = must(input, "cov")
    if x.ndim > 2:
        raise ShapeError(f"cov: expected at most 2 dimensions, got shape {tuple(x.shape)}")
    x = _float(reshape(x, (1, -1)) if x.ndim < 2 else x, "cov")
    count = x.shape[1]
    weights = None
    for given, name in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        given = must(given, "cov")
        if tuple(given.shape) != (count,):
            raise ShapeError(f"cov: {name} has shape {tuple(given.shape)} for {count} observations")
        if given.dtype.is_floating_point == (name == "fweights"):
            raise DTypeError(f"cov: {name} of {given.dtype.name}")
        if count and (given < 0).any():
            raise ArgumentError(f"cov: {name} has negative numbers")
        weights = given if weights is None else weights * given
    if weights is None:
        total, mean = x.new_full((), count), x.mean(1, True)
        left = total - correction
        centred = x - mean
        product = matmul(centred, centred.mT)
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, True) / total
        squares = total if aweights is None else (weights * aweights).sum()
        left = total - correction * squares / total if aweights is not None else total - correction
        product = matmul(centred * weights, centred.mT)
    result = product / left.clamp(min=0)
    return result.squeeze()


@own_errors
def corrcoef(input: Any) -> Any:  # noqa: A002
    """The correlations of variables, one a row: cov() over the product of their standard deviations, within [-1, 1]."""
    c = cov(input)
    if c.ndim == 0:
        return c / c
    spread = c.diagonal().sqrt()
    return (c / unsqueeze(spread, 1) / spread).clamp(-1, 1)


# ---- distances ----------------------------------------------------------------------------------------------------


def _norm(x: Any, p: float, keepdim: bool = False) -> Any:
    """The p-norm along the last axis; 0 of no elements."""
    return vector_norm(x, p, -1, keepdim) if x.shape[-1] else sum_(x, -1, keepdim)


@own_errors
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str | None = None) -> Any:
    """The p-norms of all differences of rows: (..., M, K) and (..., N, K) give (..., M, N).

    >>> norch.cdist(norch.zeros(1, 2), norch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    a, b = must(x1, "cdist"), must(x2, "cdist")
    for x in (a, b):
        _check_float(x, "cdist")
        if x.ndim < 2:
            raise ShapeError(f"cdist: expected 2 dimensions or more, got shape {tuple(x.shape)}")
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: rows of {a.shape[-1]} and {b.shape[-1]} numbers")
    if p < 0:
        raise ArgumentError(f"cdist: p is not negative, not {p}")
    return _norm(unsqueeze(a, -2) - unsqueeze(b, -3), p)


@own_errors
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norm of x1 - x2 + eps along the last axis."""
    return _norm(_float(x1, "pairwise_distance") - _float(x2, "pairwise_distance") + eps, p, keepdim)


@own_errors
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along dim, whose lengths count as eps at least; the others broadcast.

    >>> norch.cosine_similarity(norch.tensor([1.0, 0.0]), norch.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    a, b = must(x1, "cosine_similarity"), must(x2, "cosine_similarity")
    for x in (a, b):
        _check_float(x, "cosine_similarity")
    a, b = broadcast_tensors(a, b)  # dim counts the axes of both
    lengths = sum_(a * a, dim).clamp(min=eps * eps).sqrt() * sum_(b * b, dim).clamp(min=eps * eps).sqrt()
    return sum_(a * b, dim) / lengths


@own_errors
def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Any:  # noqa: A002
    """input with its parts along dim, whose p-norm is more than maxnorm, scaled down to that."""
    x = must(input, "renorm")
    _check_float(x, "renorm")
    if x.ndim < 2:
        raise ShapeError(f"renorm: expected at least 2 dimensions, got shape {tuple(x.shape)}")
    rows = x.transpose(0, dim).reshape(x.shape[dim], -1)
    norms = _norm(rows, p, True)
    factors = where(norms <= maxnorm, 1, maxnorm / (norms + 1e-7))
    return (rows * factors).reshape(x.transpose(0, dim).shape).transpose(0, dim)


# ---- integrals of samples ---------------------------------------------------------------------------------------


@own_errors
def trapezoid(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Any:
    """The integral along dim by the trapezoidal rule, of samples y at x, or dx (1) apart.

    >>> norch.trapezoid(norch.tensor([1.0, 2.0, 3.0]), dx=2)
    tensor(8.)
    """
    parts = _trapezoids(y, x, dx, dim, "trapezoid")
    return sum_(parts, dim)


@own_errors
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Any:
    """trapezoid() up to the second sample, the third, and so on."""
    return _trapezoids(y, x, dx, dim, "cumulative_trapezoid").cumsum(dim)


trapz = trapezoid


def _trapezoids(y: Any, x: Any, dx: float | None, dim: int, name: str) -> Any:
    y = must(y, name)
    if y.ndim == 0 or not -y.ndim <= dim < y.ndim:
        raise BoundsError(f"{name}: dimension {dim} is out of range for shape {tuple(y.shape)}")
    n = y.shape[dim]
    if x is not None and dx is not None:
        raise ArgumentError(f"{name}: give x or dx, not both")
    if y.dtype.kind == "b":
        raise DTypeError(f"{name}: not defined for dtype bool")
    if n == 0:
        return y
    pairs = narrow(y, dim, 1, n - 1) + narrow(y, dim, 0, n - 1)
    if x is None:
        return pairs * ((1 if dx is None else dx) / 2)
    x = must(x, name)
    if x.ndim == 1:
        if x.shape[0] != n:
            raise ShapeError(f"{name}: {x.shape[0]} places for {n} samples")
        x = reshape(x, [n if axis == dim % y.ndim else 1 for axis in range(y.ndim)])
    return (narrow(x, dim, 1, x.shape[dim] - 1) - narrow(x, dim, 0, x.shape[dim] - 1)) * pairs / 2


# ---- writes to a part -------------------------------------------------------------------------------------------


@own_errors
def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:  # noqa: A002
    """A copy of input whose elements that as_strided(size, stride, storage_offset) would show are those of src."""
    out = must(input, "as_strided_scatter").clone()
    as_strided(out, size, stride, storage_offset).copy_(src)
    return out


def fill_diagonal_(x: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Writes a number to the elements whose indices are all the same; with wrap a tall matrix begins anew below."""
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"fill_diagonal_: expected a matrix, or equal sizes, got shape {tuple(x.shape)}")
    rows, columns = x.shape[0], x.shape[-1]
    starts = range(0, rows, columns + 1) if wrap and x.ndim == 2 and columns else range(1)
    for start in starts:
        part = narrow(x, 0, start, rows - start)
        length, step = min(part.shape), sum(x.stride())
        as_strided(part, (length,), (step,), part.storage_offset()).fill_(fill_value)
    return x


# ---- questions --------------------------------------------------------------------------------------------------


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Where elements are among test_elements; with invert where they are not. Either may be a number.

    >>> norch.isin(norch.arange(4), norch.tensor([1, 3]))
    tensor([False,  True, False,  True])
    """
    x, among = must(elements, "isin"), must(test_elements, "isin")
    if among.numel() == 0:
        found = (x != x) & False
    else:
        places, _ = reshape(among, -1).sort()
        at = searchsorted(places, x).clamp(max=among.numel() - 1)
        found = reshape(places.index_select(0, reshape(at, -1)), x.shape) == x
    return ~found if invert else found


def is_same_size(input: Any, other: Any) -> bool:  # noqa: A002
    """Whether two tensors have one shape."""
    return tuple(must(input, "is_same_size").shape) == tuple(must(other, "is_same_size").shape)


def is_signed(input: Any) -> bool:  # noqa: A002
    """Whether the dtype has negative numbers."""
    return must(input, "is_signed").dtype.is_signed


def typename(obj: Any) -> str:
    """The name of the type of anything, with its module's."""
    kind = type(obj)
    return f"norch.{kind.__name__}" if isinstance(obj, Handle) else f"{kind.__module__}.{kind.__qualname__}"


def unravel_index(indices: Any, shape: int | Sequence[int]) -> tuple[Any, ...]:
    """Positions in the flattened shape as one tensor of indices an axis.

    >>> norch.unravel_index(norch.tensor([5]), (2, 4))
    (tensor([1]), tensor([1]))
    """
    at = must(indices, "unravel_index")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if at.dtype.is_floating_point or at.dtype.kind == "b":
        raise DTypeError(f"unravel_index: indices are integers, not {at.dtype.name}")
    if at.numel() and not 0 <= int(at.min()) <= int(at.max()) < math.prod(sizes):
        raise BoundsError(f"unravel_index: an index is out of range for shape {tuple(sizes)}")
    at, found = at.to(int64), []
    for size in reversed(sizes):
        found.append(at % size)
        at = at // size
    return tuple(reversed(found))


def real(input: Any) -> Any:  # noqa: A002
    """The tensor itself, as its numbers are real."""
    return must(input, "real")


# PyTorch's old names of the types, by dtype.
TYPES = dict(
    zip(
        "float32 float64 float16 bfloat16 bool uint8 int8 int16 int32 int64".split(),
        "Float Double Half BFloat16 Bool Byte Char Short Int Long".split(),
        strict=True,
    )
)


class FurtherMethods(Handle):
    """Those of Tensor."""

    __slots__ = ()

    cov, corrcoef, renorm = cov, corrcoef, renorm
    as_strided_scatter, fill_diagonal_ = as_strided_scatter, fill_diagonal_
    is_same_size, is_signed = is_same_size, is_signed

    # What code written for PyTorch asks before it does something else.
    is_sparse = is_sparse_csr = is_quantized = is_nested = is_meta = is_mkldnn = is_mps = is_xpu = is_xla = False
    is_vulkan = is_ipu = is_maia = is_mtia = False

    @property
    def retains_grad(self) -> bool:
        """Whether backward() leaves the gradient of this computed tensor in .grad."""
        node = self.grad_fn  # type: ignore[attr-defined]
        return any(getattr(hook, "tensor", int)() is self for hook in getattr(node, "hooks", None) or ())

    def is_complex(self) -> bool:
        """False, as for every tensor here."""
        return False

    is_conj = is_neg = is_inference = is_shared = is_complex

    def conj(self) -> Any:
        """The tensor itself, as its numbers are real."""
        return self

    resolve_conj = resolve_neg = conj

    def renorm_(self, p: float, dim: int, maxnorm: float) -> Any:
        """renorm() in place."""
        return self.copy_(renorm(self, p, dim, maxnorm))  # type: ignore[attr-defined]

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The tensor in another dtype; without one the name of its type, as "norch.FloatTensor"."""
        if dtype is None:
            return f"norch.{TYPES[self.dtype.name]}Tensor"  # type: ignore[attr-defined]
        text = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
        if text.endswith("Tensor"):
            wanted = text.rpartition(".")[2].removesuffix("Tensor")
            dtype = next((name for name, kind in TYPES.items() if kind == wanted), dtype)
        return self.to(dtype_named(dtype))  # type: ignore[attr-defined]

    def sum_to_size(self, *size: Any) -> Any:
        """Summed over the axes that broadcasting from size would have added or spread."""
        sizes = tuple(size[0]) if len(size) == 1 and not hasattr(size[0], "__index__") else size
        shape, dtype = tuple(self.shape), self.dtype  # type: ignore[attr-defined]
        kept = dtype.is_floating_point or (shape == tuple(sizes) and shape)
        summed = cast(self, dtype if kept else int64)  # integers add up in int64
        target = summed.new_zeros(sizes)
        try:
            broadcast_to(target, shape)
        except ShapeError:
            raise ShapeError(f"sum_to_size: {tuple(sizes)} does not broadcast to shape {shape}") from None
        return summed._sum_to(target)

    real = property(real, doc="The tensor itself, as its numbers are real.")
