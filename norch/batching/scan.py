"""Batching rules of operations along one axis: scans, sorts, softmax."""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from ..autograd.levels import Level
from ..errors import ShapeError
from .level import along, axis_of, become, empty_like, is_here, rule, same_call_along, sample, samples

same_call_along("resample", "resample", "resample_backward")
same_call_along("softmax", "softmax")
same_call_along("sort", "order_index", "sorted")


@rule("scan")
def _scan(level: Level, kind: int, x: Any, dim: int, reverse: bool) -> Any:
    return along(level, x, dim, "scan", lambda p, axis: lib.norch_scan(kind, p, axis, reverse))


@rule("scan_extreme")
def _scan_extreme(level: Level, x: Any, dim: int, least: bool, values: Any) -> Any:
    results = empty_like(values, (level.size, *(lib.norch_shape(values) or (1,))))
    out = along(level, x, dim, "scan", lambda p, axis: lib.norch_scan_extreme(p, axis, least, results))
    become(values, results if x.ndim else lib.norch_squeeze(results, (1,)), level)
    return out


@rule("softmax_backward")
def _softmax_backward(level: Level, g: Any, result: Any, dim: int, log: bool) -> Any:
    axis, both = axis_of(result, dim, "softmax"), (samples(g, level), samples(result, level))
    if result.ndim:
        return sample(lib.norch_softmax_backward(*both, axis, log), level)
    out = lib.norch_softmax_backward(*(lib.norch_unsqueeze(tensor, 1) for tensor in both), 1, log)
    return sample(lib.norch_squeeze(out, (1,)), level)


@rule("argsort")
def _argsort(level: Level, x: Any, dim: int, k: int, descending: bool, values: Any) -> Any:
    axis, p = axis_of(x, dim, "sort"), x._physical
    p = p if x.ndim else lib.norch_unsqueeze(p, 1)
    shape = list(lib.norch_shape(p))
    if k >= 0:
        shape[axis] = min(k, shape[axis])
    sorted_values = None if values is None else p.new_empty(tuple(shape))
    out = lib.norch_argsort(p, axis, k, descending, sorted_values)
    if not x.ndim:
        out, sorted_values = (None if t is None else lib.norch_squeeze(t, (1,)) for t in (out, sorted_values))
    if values is not None:
        become(values, sorted_values, level)
    return sample(out, level)


@rule("searchsorted")
def _searchsorted(level: Level, boundaries: Any, values: Any, right: bool) -> Any:
    if not is_here(boundaries, level) and boundaries.ndim == 1:
        return sample(lib.norch_searchsorted(boundaries, values._physical, right), level)
    if boundaries.ndim == 1:  # boundaries for each sample: values as one row
        p = samples(values, level)
        rows = lib.norch_reshape(p, (level.size, -1 if p._numel else 0))
        out = lib.norch_searchsorted(boundaries._physical, rows, right)
        return sample(lib.norch_view(out, lib.norch_shape(p)), level)
    if not boundaries.ndim:
        raise ShapeError("searchsorted: the sorted tensor has no dimension")
    both = samples(boundaries, level), samples(values, level)
    return sample(lib.norch_searchsorted(*both, right), level)
