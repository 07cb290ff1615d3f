"""Batching rules of views: the same view of all samples."""

from __future__ import annotations

import math
from typing import Any

from .._binding.library import lib
from ..autograd.levels import Level
from .level import aligned, axis_of, is_here, rule, same_call, sample


def _refused(view: Any, x: Any, *arguments: Any) -> tuple[int, ...]:
    """Raises the error of the call for one sample; returns the shape of its result if it raises none."""
    return lib.norch_shape(view(lib.norch_select(x._physical, 0, 0), *arguments))


def _sizes(x: Any, shape: Any) -> tuple[int, ...]:
    """The shape for x; a size of -1 is inferred."""
    sizes = tuple(shape)
    if all(type(size) is int for size in sizes):
        product = math.prod(sizes)
        if product == x._numel and min(sizes, default=0) >= 0:
            return sizes
        if product < 0 and sizes.count(-1) == 1 and min(sizes) == -1 and x._numel % -product == 0:
            return tuple([x._numel // -product if size == -1 else size for size in sizes])
    return _refused(lib.norch_reshape, x, sizes)


@rule("view")
def _view(level: Level, x: Any, shape: Any) -> Any:
    return sample(lib.norch_view(x._physical, (level.size, *_sizes(x, shape))), level)


@rule("reshape")
def _reshape(level: Level, x: Any, shape: Any) -> Any:
    return _reshaped(level, x, _sizes(x, shape))


def _reshaped(level: Level, x: Any, shape: tuple[int, ...]) -> Any:
    return sample(lib.norch_reshape(x._physical, (level.size, *shape)), level)


@rule("flatten")
def _flatten(level: Level, x: Any, start: int, end: int) -> Any:
    n, shape = x.ndim or 1, lib.norch_shape(x) or (1,)
    if not (-n <= start < n and -n <= end < n) or start % n > end % n:
        return sample(lib.norch_flatten(lib.norch_select(x._physical, 0, 0), start, end), level)  # raises the error
    start, end = start % n, end % n + 1
    return _reshaped(level, x, (*shape[:start], math.prod(shape[start:end]), *shape[end:]))


@rule("reshape_as")
def _reshape_as(level: Level, x: Any, like: Any) -> Any:
    if not is_here(x, level):
        return lib.norch_reshape_as(x, lib.norch_meta(like))
    return _reshaped(level, x, _sizes(x, lib.norch_shape(like)))


@rule("permute")
def _permute(level: Level, x: Any, axes: Any) -> Any:
    order, n = tuple(axes), x.ndim
    if len(order) != n or any(not -n <= axis < n for axis in order):
        _refused(lib.norch_permute, x, order)
    return sample(lib.norch_permute(x._physical, (0, *[axis % n + 1 for axis in order])), level)


@rule("transpose")
def _transpose(level: Level, x: Any, dim0: int, dim1: int) -> Any:
    a, b = axis_of(x, dim0, "transpose"), axis_of(x, dim1, "transpose")
    return sample(lib.norch_transpose(x._physical, a, b) if x.ndim else lib.norch_alias(x._physical), level)


@rule("reverse_axes")
def _reverse_axes(level: Level, x: Any) -> Any:
    return sample(lib.norch_permute(x._physical, (0, *range(x.ndim, 0, -1))), level)


@rule("expand")
def _expand(level: Level, x: Any, shape: Any) -> Any:
    sizes_of_x, sizes = lib.norch_shape(x), tuple(shape)
    extra = len(sizes) - len(sizes_of_x)
    if extra < 0 or min(sizes[:extra], default=0) < 0:
        _refused(lib.norch_expand, x, sizes)
    kept = [old if new == -1 else new for old, new in zip(sizes_of_x, sizes[extra:], strict=True)]
    return _expanded(level, x, (*sizes[:extra], *kept))


def _expanded(level: Level, x: Any, shape: tuple[int, ...]) -> Any:
    return sample(lib.norch_expand(aligned(x, level, len(shape)), (level.size, *shape)), level)


@rule("expand_as")
def _expand_as(level: Level, x: Any, like: Any) -> Any:
    if not is_here(x, level):
        return lib.norch_expand_as(x, lib.norch_meta(like))
    return _expanded(level, x, lib.norch_shape(like))


@rule("expand_reduced")
def _expand_reduced(level: Level, x: Any, like: Any, dims: Any, keepdim: bool) -> Any:
    if not is_here(x, level):
        return lib.norch_expand_reduced(x, lib.norch_meta(like), dims, keepdim)
    p, shape = x._physical, lib.norch_shape(like)
    if shape and (keepdim is False or x.ndim != len(shape)):
        axes = range(len(shape)) if not dims else sorted(dim % len(shape) for dim in dims)
        for axis in axes:
            p = lib.norch_unsqueeze(p, axis + 1)
    return sample(lib.norch_expand(p, (level.size, *shape)), level)


@rule("squeeze")
def _squeeze(level: Level, x: Any, dims: Any) -> Any:
    shape = lib.norch_shape(x)
    if dims is None:
        axes = [i + 1 for i, size in enumerate(shape) if size == 1]
    else:
        axes = [axis_of(x, dim, "squeeze") for dim in dims]
        axes = axes if shape else []
    return sample(lib.norch_squeeze(x._physical, axes), level)


@rule("unsqueeze")
def _unsqueeze(level: Level, x: Any, dim: int) -> Any:
    if not -x.ndim - 1 <= dim <= x.ndim:
        _refused(lib.norch_unsqueeze, x, dim)
    return sample(lib.norch_unsqueeze(x._physical, dim + 1 if dim >= 0 else dim), level)


def _part_of_axis(name: str) -> None:
    """Defines the rule of a call that takes a part of an axis."""
    call = getattr(lib, f"norch_{name}")
    rule(name)(lambda level, x, dim, *part: sample(call(x._physical, axis_of(x, dim, name), *part), level))


for _name in ("select", "slice", "narrow"):
    _part_of_axis(_name)


@rule("diagonal")
def _diagonal(level: Level, x: Any, offset: int, dim0: int, dim1: int) -> Any:
    a, b = axis_of(x, dim0, "diagonal"), axis_of(x, dim1, "diagonal")
    return sample(lib.norch_diagonal(x._physical, offset, a, b), level)


@rule("unfold")
def _unfold(level: Level, x: Any, dim: int, size: int, step: int) -> Any:
    axis, p = axis_of(x, dim, "unfold"), x._physical
    if x.ndim:
        return sample(lib.norch_unfold(p, axis, size, step), level)
    windows = lib.norch_unfold(lib.norch_unsqueeze(p, 1), axis, size, step)  # a 0-d sample has one window, (size)
    return sample(lib.norch_select(windows, 1, 0), level)


@rule("region")
def _region(level: Level, x: Any, index: Any) -> Any:
    if x.ndim == 0 and (index == 0 or index == (0,)):  # a 0-d sample is its own only element
        return sample(lib.norch_alias(x._physical), level)
    view = lib.norch_region(x._physical, (slice(None), *index) if type(index) is tuple else (slice(None), index))
    return None if view is None else sample(view, level)


@rule("as_strided")
def _as_strided(level: Level, x: Any, shape: Any, strides: Any, shift: int) -> Any:
    p = x._physical
    size, steps = (level.size, *shape), (lib.norch_strides(p)[0], *strides)
    return sample(lib.norch_as_strided(p, size, steps, shift), level)


@rule("view_dtype")
def _view_dtype(level: Level, x: Any, dtype: int) -> Any:
    if x.ndim == 0:
        _refused(lib.norch_view_dtype, x, dtype)
    return sample(lib.norch_view_dtype(x._physical, dtype), level)


same_call("alias", "view_as_real", "view_as_complex")


# ---- memory layout ---------------------------------------------------------------------------------------------------


@rule("is_same")
def _is_same(level: Level, a: Any, b: Any) -> bool:
    return is_here(a, level) and is_here(b, level) and lib.norch_is_same(a._physical, b._physical)


def _about_memory(name: str) -> None:
    """Defines the rule of a query about a tensor's memory, which is answered for the samples."""
    call = getattr(lib, f"norch_{name}")
    rule(name)(lambda level, *tensors: call(*(x._physical if is_here(x, level) else x for x in tensors)))


for _name in ("shares_storage", "overlaps", "overlaps_itself"):
    _about_memory(_name)
