"""Distances and angles between vectors; renorm."""

from __future__ import annotations

import math

from ..._binding.library import lib
from ..._package.typing import Any, Tensor
from ...autograd.differentiable import differentiable
from ...autograd.grad_mode import mode
from ...dtype import check_numbers, finfo, float32, float64
from ...errors import ArgumentError, ShapeError, one_of
from .._checks import at_least, floats_of, with_ndim
from .._entry import composed
from .._halves import WIDE
from .._operand import as_operand
from ..copy import cast, cat, result_type
from ..create import triu_indices
from ..index import KINDS, on_common_device
from ..matmul import matmul
from ..norm import max_norm_grad, vector_norm, vector_norm_grad
from ..op import method
from ..pointwise import clamp_min, where
from ..reduce import axes_of, norm_grad, norm_over, sum_over
from ..reduce import sum as sum_
from ..resample import IN_PAGES
from ..sort import nanmedian
from ..view import unsqueeze
from .shape import broadcast_shapes, broadcast_tensors
from .statistics import as_float

__all__ = ["cdist", "cosine_similarity", "pairwise_distance", "pdist", "renorm"]


def _norm(x: Tensor, p: float, keepdim: bool = False) -> Tensor:
    """The p-norm along the last axis; 0 of no elements."""
    return vector_norm(x, p, -1, keepdim) if x.shape[-1] else sum_(x, -1, keepdim)


def _row_norms(x: Tensor, p: float) -> Tensor:
    """The p-norms of differences x. They are NaN where x has a NaN, for p = 0 too, as in PyTorch."""
    norms = _norm(x, p)
    return norms if p else where((x == x).all(-1), norms, math.nan)


AT_ONCE = 1 << 18  # differences, which then stay in the cache
FEW = 1 << 20  # differences, of which the library takes less time than a product of matrices
_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _row_norm_grad(g: Tensor, x: Tensor, norms: Tensor, p: float) -> Tensor:
    """The gradient of x (..., K) from that of its norms (...) of order p; NaN where x is, of which sign() is 0."""
    if p == 2:
        return norm_grad(g, x, norms, (-1,), False)
    if p == 0:
        return x.sign() * (g * 0).unsqueeze(-1)
    if p == 1 or p == math.inf:
        slope = x.sign() * g.unsqueeze(-1) if p == 1 else max_norm_grad(g, x, norms, (-1,), False)
        return where(x == x, slope, x.detach())
    return vector_norm_grad(g, x, norms, (-1,), False, p)


def _cdist_backward(
    g: Tensor, a: Tensor, b: Tensor, out: Tensor, p: float, rows: int, needs_input_grad: tuple[bool, ...]
) -> tuple[Any, Any]:
    """So many rows of a at a time where no gradient is recorded; but not of halves, whose sums are rounded once."""
    to_a, to_b = needs_input_grad
    if not mode.enabled and p in (1, 2) and _has_kernel(a):
        a, b = (_expanded(x, lib.norch_shape(g)[:-2]) for x in (a, b))
        weight = g if p == 1 else g / out.where(out != 0, math.inf)
        return (
            lib.norch_distances_backward(weight, a, b, p) if to_a else None,
            lib.norch_distances_backward(weight.mT, b, a, p) if to_b else None,
        )
    b = b.unsqueeze(-3)
    parts: Any = [(a, out, g)]
    if not mode.enabled and rows < g.shape[-2] and g.element_size() >= 4:
        parts = zip(*(x.split(rows, -2) for x in parts[0]))  # of as many rows
    by_a, by_b = [], None
    for a_part, norms, g_part in parts:
        slope = _row_norm_grad(g_part, a_part.unsqueeze(-2) - b, norms, p)
        if to_a:
            by_a.append(sum_over(slope, (-2,)))
        if to_b:
            column = sum_over(slope, (-3,))
            by_b = column if by_b is None else by_b + column
    return cat(by_a, -2) if to_a else None, None if by_b is None else -by_b


@differentiable("cdist", inputs=("a", "b"), broadcast=True, backward=_cdist_backward)
def _cdist(a: Tensor, b: Tensor, p: float, rows: int) -> Tensor:
    """The p-norms; without a kernel for them of some rows of a at a time, as the differences of all rows would be K
    times as large as the result."""
    if p in _OF_KERNEL and _has_kernel(a):
        batch = broadcast_shapes(lib.norch_shape(a)[:-2], lib.norch_shape(b)[:-2])
        return lib.norch_distances(_expanded(a, batch), _expanded(b, batch), p)
    b = unsqueeze(b, -3)
    parts = [_row_norms(unsqueeze(part, -2) - b, p) for part in (a.split(rows, -2) if rows < a.shape[-2] else [a])]
    return parts[0] if len(parts) == 1 else cat(parts, -2)


_OF_KERNEL = (1, 2, math.inf)


def _has_kernel(x: Any) -> bool:
    """Whether the library has distances of this dtype and device."""
    return x._dtype in WIDE and not x.is_cuda and not IN_PAGES


def _expanded(x: Tensor, batch: Any) -> Tensor:
    """x (..., M, K) with these leading axes."""
    shape = lib.norch_shape(x)
    return x if shape[:-2] == tuple(batch) else lib.norch_expand(x, (*batch, *shape[-2:]))


def _typical(x: Tensor) -> Tensor:
    """About the median row of each matrix, element by element: of up to 31 of its rows, so that a few rows which are
    far away, infinite or NaN do not count."""
    n = x.shape[-2]
    return nanmedian(x.detach()[..., :: max(1, n // 16), :], -2, True)[0].nan_to_num(0.0, 0.0, 0.0)


def _about_middle(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a and b less a typical row of each matrix of a: of the same differences, with smaller products."""
    if not a.shape[-2]:
        return a, b
    middle = _typical(a)
    return a - middle, b - middle


def _euclidean_backward(
    g: Tensor, a: Tensor, b: Tensor, out: Tensor, needs_input_grad: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None]:
    to_a, to_b = needs_input_grad
    a, b = _about_middle(a, b)
    slope = g / out.where(out != 0, math.inf)
    return (
        _weighted_differences(a, slope, b) if to_a else None,
        _weighted_differences(b, slope.mT, a) if to_b else None,
    )


def _weighted_differences(a: Tensor, slope: Tensor, b: Tensor) -> Tensor:
    """The sum of slope_ij (a_i - b_j) over j."""
    return a * sum_over(slope, (-1,), True) - matmul(slope, b)


def _power_of_two(a: Tensor, b: Tensor) -> Any:
    """Of the size of the elements of each pair of matrices: squares of quotients by it do not overflow, and division is
    exact."""
    if not a.numel() or not b.numel():
        return 1.0
    top = _typical(a.abs().amax(-1, True)).maximum(_typical(b.abs().amax(-1, True)))
    least = -100 if top.dtype is float32 else -1000  # whose power has an inverse
    return where(top > 0, top.log2().floor().clamp(min=least).exp2(), 1.0)


@differentiable("euclidean", inputs=("a", "b"), broadcast=True, backward=_euclidean_backward)
def _euclidean(a: Tensor, b: Tensor) -> Tensor:
    """_cdist() of order 2, by a product of matrices."""
    a, b = _about_middle(a, b)
    scale = _power_of_two(a, b)
    (a, of_a), (b, of_b) = (_with_squares(x / scale) for x in (a, b))
    size = of_a + of_b.transpose(-1, -2)
    square = size - matmul(a * 2, b.transpose(-1, -2))
    # Not <=, which holds for two infinities: the square of the distance of a row far away.
    return where(square < size * (8 * finfo(a.dtype).eps), 0.0, square).sqrt() * scale


def _with_squares(x: Tensor) -> tuple[Tensor, Tensor]:
    """x (..., M, K) and the sums of the squares of its rows (..., M, 1). A row whose sum cannot be doubled twice is 0
    in x, with an infinite sum, which alone gives infinite distances: products of it may be infinite or NaN."""
    squares = sum_(x * x, -1, True)
    is_far = squares > finfo(x.dtype).max / 4
    return where(is_far, 0.0, x), where(is_far, math.inf, squares)


@composed(autocast="float32")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norms of all differences of rows: x1 (..., M, K) and x2 (..., N, K) give (..., M, N).

    With p=2, more than 25 rows and a million differences (M N K), the squares come from a product of matrices, |a|^2 -
    2 ab + |b|^2; PyTorch does this from 25 rows on. It is much faster, but distances that are small compared to the
    spread of the rows are less exact, and 0 where rounding hides them. a and b are measured from a typical row of x1. A
    row that is 1e19 times as far away as others (1e154 in float64) is at an infinite distance.
    compute_mode="use_mm_for_euclid_dist" always takes the product, "donot_use_mm_for_euclid_dist" never.

    >>> norch.cdist(norch.zeros(1, 2), norch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    a, b = (at_least(2, floats_of(as_operand(x, "cdist"), "cdist"), "cdist") for x in (x1, x2))
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: rows of {a.shape[-1]} and {b.shape[-1]} numbers")
    check_numbers("cdist", p=p)
    if not p >= 0:
        raise ArgumentError(f"cdist: p is not negative, not {p}")
    one_of("cdist: compute_mode", compute_mode, (None, *_MODES))
    if a.dtype is not b.dtype:
        dtype = result_type(a, b)
        a, b = cast(a, dtype), cast(b, dtype)
    rows, columns, width = a.shape[-2], b.shape[-2], a.shape[-1]
    many = max(rows, columns) > 25 and width > 0 and not (_has_kernel(a) and rows * columns * width < FEW)
    if p == 2 and a.dtype in (float32, float64):
        if compute_mode == "use_mm_for_euclid_dist" or (many and compute_mode != "donot_use_mm_for_euclid_dist"):
            return _euclidean(a, b)
    return _cdist(a, b, p, _rows_at_once(b))


@composed
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis. Two numbers count as vectors of one element.

    >>> norch.pairwise_distance(norch.tensor([[0.0, 0.0]]), norch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    difference = as_float(x1, "pairwise_distance") - as_float(x2, "pairwise_distance") + eps
    return _norm(difference, p, keepdim) if difference.ndim else vector_norm(difference, p)


def _pairs(x: Tensor) -> Tensor:
    """The indices of each two rows of x."""
    return triu_indices(x.shape[0], x.shape[0], 1, device=x.device)


def _pdist_grad(g: Any, x: Any, out: Any, p: float) -> Any:
    """That of cdist() of x and x by the first rows, of which each pair has two."""
    i, j = _pairs(x)
    both = [one.new_zeros(x.shape[0], x.shape[0]).index_put((i, j), one) for one in (g, out)]
    slope, norms = (one + one.mT for one in both)
    return _cdist_backward(slope, x, x, norms, p, _rows_at_once(x), (True, False))[0]


@differentiable(grad=_pdist_grad)
def _pdist(x: Tensor, p: float) -> Tensor:
    """Without a kernel for them of some rows at a time with all behind the first of them."""
    if p in _OF_KERNEL and _has_kernel(x):
        return lib.norch_distances(x, None, p)
    n, each = x.shape[0], _rows_at_once(x)
    if n < 2:
        return x.new_zeros(0)
    parts = []
    for start in range(0, n - 1, each):
        rows, columns = min(each, n - 1 - start), n - 1 - start
        first = unsqueeze(lib.norch_slice(x, 0, start, start + rows, 1), 1)
        norms = _row_norms(first - lib.norch_slice(x, 0, start + 1, n, 1), p)
        places = triu_indices(rows, columns, device=x.device)
        pair = lib.norch_select(places, 0, 0), lib.norch_select(places, 0, 1)
        parts.append(lib.norch_index_get(norms, KINDS["GET"], pair, (0, 1), (0, 1), 0))
    return parts[0] if len(parts) == 1 else cat(parts)


def _rows_at_once(x: Tensor) -> int:
    """How many rows are compared with all rows of x at once."""
    return max(1, AT_ONCE // max(1, x.numel()))


@composed(autocast="- float32")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows of input (N, M), as a vector (N (N - 1) / 2) in the order 0
    and 1, 0 and 2, ..., 1 and 2, ...

    >>> norch.pdist(norch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    x = with_ndim(floats_of(as_operand(input, "pdist"), "pdist"), "pdist", 2)
    check_numbers("pdist", p=p)
    if not p >= 0:
        raise ArgumentError(f"pdist: p is not negative, not {p}")
    return _pdist(x, p)


@composed(autocast="- float32")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along dim. The other axes broadcast. A length below eps counts as eps.

    >>> norch.cosine_similarity(norch.tensor([1.0, 0.0]), norch.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    a, b = as_operand(x1, "cosine_similarity"), as_operand(x2, "cosine_similarity")
    if a._dtype != b._dtype:
        dtype = result_type(x1, x2)
        a, b = a.to(dtype), b.to(dtype)
    a, b = on_common_device(floats_of(a, "cosine_similarity"), floats_of(b, "cosine_similarity"))
    if lib.norch_shape(a) != lib.norch_shape(b):
        a, b = broadcast_tensors(a, b)  # dim counts the axes of both
    axes = axes_of(dim)
    unit_a, unit_b = a / clamp_min(norm_over(a, axes, True), eps), b / clamp_min(norm_over(b, axes, True), eps)
    return sum_over(unit_a * unit_b, axes)  # products of unit vectors stay in range, as a * b may not


@method(inplace=True, composed=True, autocast="- float32", out=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """input, with each part along dim whose p-norm exceeds maxnorm scaled down to maxnorm. p must be positive.

    >>> norch.renorm(norch.tensor([[3.0, 4.0], [0.3, 0.4]]), p=2, dim=0, maxnorm=1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    x = at_least(2, as_operand(input, "renorm"), "renorm")
    x = x if x.is_complex() else floats_of(x, "renorm")
    if not (p > 0 and maxnorm >= 0):
        raise ArgumentError(f"renorm: p is positive and maxnorm not negative, got {p} and {maxnorm}")
    rows = x.transpose(0, dim).flatten(1)
    is_long = _norm(rows.detach(), p, True) > maxnorm  # rows with a NaN stay, and their gradients pass
    factors = where(is_long, maxnorm / (_norm(where(is_long, rows, 0), p, True) + 1e-7), 1)
    return (rows * factors).reshape(x.transpose(0, dim).shape).transpose(0, dim)
