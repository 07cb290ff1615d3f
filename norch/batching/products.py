"""Batching rules of matrix products: one product for all samples, with few, large matrices."""

from __future__ import annotations

from typing import Any

from .._binding.library import constants, lib
from ..autograd.levels import Level
from ..errors import ShapeError
from ..ops.op import OPCODES
from .level import aligned, is_here, rule, sample, samples

_ADD = OPCODES["add"]
_RANKS = {  # ranks of the operands for each kind of product
    constants[f"PRODUCT_{name}"]: ndims
    for name, ndims in {"MM": (2, 2), "BMM": (3, 3), "MV": (2, 1), "DOT": (1, 1), "VDOT": (1, 1)}.items()
}


@rule("matmul")
def _matmul(level: Level, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    m, n = a.ndim, b.ndim
    if not m or not n:
        raise ShapeError(f"matmul: shapes {lib.norch_shape(a)} and {lib.norch_shape(b)}: an operand has no dimension")
    if m == 1 or n == 1:
        return _of_vectors(level, a, b, transpose_a, transpose_b)
    left, right = aligned(a, level, max(m, n)), aligned(b, level, max(m, n))
    return sample(lib.norch_matmul(left, right, transpose_a, transpose_b), level)


@rule("product")
def _product(level: Level, kind: int, a: Any, b: Any) -> Any:
    if (a.ndim, b.ndim) != _RANKS[kind] or (a.ndim == 3 and lib.norch_shape(a)[0] != lib.norch_shape(b)[0]):
        raise ShapeError("shapes do not fit")  # the call for one sample names the shapes
    return _matmul(level, a, b, False, False)


def _of_vectors(level: Level, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """A product with one or two vectors. The vectors of all samples become rows of one matrix."""
    here_a, here_b = is_here(a, level), is_here(b, level)
    if a.ndim == 1 and not here_b and b.ndim <= 2:  # (samples, K) @ (K, N)
        return sample(lib.norch_matmul(a._physical, b, False, transpose_b), level)
    if b.ndim == 1 and not here_a and a.ndim <= 2:  # (M, K) @ (K): a row of (samples, K) @ (K, M)
        return sample(lib.norch_matmul(b._physical, a, False, not transpose_a and a.ndim == 2), level)
    row, column, ndim = a.ndim == 1, b.ndim == 1, max(a.ndim, b.ndim, 2)
    left = _as_matrix(a, level, -2, ndim) if row else aligned(a, level, ndim)
    right = _as_matrix(b, level, -1, ndim) if column else aligned(b, level, ndim)
    out = lib.norch_matmul(left, right, transpose_a and not row, transpose_b and not column)
    return sample(lib.norch_squeeze(out, [axis for axis, is_vector in ((-2, row), (-1, column)) if is_vector]), level)


def _as_matrix(x: Any, level: Level, axis: int, ndim: int) -> Any:
    """A vector as a one-row (axis -2) or one-column (-1) matrix, aligned() to other batches."""
    batched = is_here(x, level)
    p = lib.norch_unsqueeze(x._physical if batched else x, axis)
    for _ in range(ndim - 2 if batched else 0):
        p = lib.norch_unsqueeze(p, 1)
    return p


@rule("addmm")
def _addmm(level: Level, x: Any, a: Any, b: Any, beta: float, alpha: float) -> Any:
    if b.ndim == 1:
        column = lib.norch_unsqueeze(b, 1) if a.ndim > 1 else lib.norch_unsqueeze(b, 0)
        if a.ndim == 1:
            return lib.norch_addmm(x, lib.norch_unsqueeze(a, 1), column, beta, alpha)
        return lib.norch_squeeze(lib.norch_addmm(lib.norch_unsqueeze(x, -1), a, column, beta, alpha), (-1,))
    if x.ndim > a.ndim:
        raise ShapeError("addmm: shapes do not fit")  # the call for one sample names them
    only_x, ndim = not is_here(a, level) and not is_here(b, level), max(a.ndim, b.ndim)
    left, right = samples(a, level) if only_x else aligned(a, level, ndim), aligned(b, level, ndim)
    return sample(lib.norch_addmm(aligned(x, level, ndim), left, right, beta, alpha), level)


@rule("quantized_linear")
def _quantized_linear(level: Level, x: Any, packed: Any, scale: Any, bias: Any, dynamic: bool) -> Any:
    if any(is_here(tensor, level) for tensor in (packed, scale, bias)):
        raise NotImplementedError(
            "quantized_linear: vmap can batch only the input, not the weight, its scales or the bias"
        )
    if not x.ndim:
        raise ShapeError("quantized_linear: a sample has no dimension")
    return sample(lib.norch_quantized_linear(x._physical, packed, scale, bias, dynamic), level)


@rule("quantized_weight")
def _quantized_weight(level: Level, packed: Any, scale: Any, columns: int) -> Any:
    if packed.ndim != 2 or scale.ndim != 2 or lib.norch_shape(packed)[0] != lib.norch_shape(scale)[0]:
        raise ShapeError("quantized_weight: shapes do not fit")  # the call for one sample names them
    rows = [lib.norch_flatten(samples(tensor, level), 0, 1) for tensor in (packed, scale)]
    out = lib.norch_quantized_weight(*rows, columns)
    return sample(lib.norch_reshape(out, (level.size, lib.norch_shape(packed)[0], columns)), level)


@rule("linear")
def _linear(level: Level, x: Any, weight: Any, bias: Any, epilogue: int) -> Any:
    if not x.ndim:
        raise ShapeError("linear: a sample has no dimension")
    if not is_here(weight, level) and not is_here(bias, level):
        return sample(lib.norch_linear(x._physical, weight, bias, epilogue), level)
    shape, of_weight = lib.norch_shape(x), lib.norch_shape(weight)
    if not shape or len(of_weight) != 2 or (bias is not None and lib.norch_shape(bias) != of_weight[:1]):
        of_bias = "" if bias is None else f" and a bias of {lib.norch_shape(bias)}"
        raise ShapeError(f"linear: shapes {shape} and {of_weight}{of_bias} do not fit")
    p = x._physical if is_here(x, level) else x
    if is_here(weight, level):
        leading = (level.size,) if is_here(x, level) else ()
        rows = p if len(shape) == 2 else lib.norch_reshape(p, (*leading, -1 if p._numel else 0, shape[-1]))
        out = lib.norch_matmul(rows, weight._physical, False, True)
        if len(shape) != 2:
            out = lib.norch_reshape(out, (level.size, *shape[:-1], of_weight[0]))
    else:
        out = lib.norch_linear(p, weight, None, -1)
    if bias is not None:
        out = lib.norch_binary(_ADD, out, aligned(bias, level, len(shape)))
    return sample(out if epilogue < 0 else lib.norch_unary(epilogue, out), level)
