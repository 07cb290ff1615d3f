"""Rules of operations along one axis: scans, sorts, softmax."""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from ..autograd.levels import Level
from ..errors import ShapeError
from .level import along, axis_of, become, fresh, is_here, rule, sample, samples


@rule("scan")
def _scan(level: Level, kind: int, x: Any, dim: int, reverse: bool) -> Any:
    return along(level, x, dim, "scan", lambda p, axis: lib.norch_scan(kind, p, axis, reverse))


@rule("scan_extreme")
def _scan_extreme(level: Level, x: Any, dim: int, least: bool, values: Any) -> Any:
    taken = fresh(values, level)
    into = taken if x.ndim else lib.norch_unsqueeze(taken, 1)
    out = along(level, x, dim, "scan", lambda p, axis: lib.norch_scan_extreme(p, axis, least, into))
    become(values, taken, level)
    return out


@rule("resample")
def _resample(level: Level, x: Any, dim: int, index: Any, weights: Any) -> Any:
    return along(level, x, dim, "resample", lambda p, axis: lib.norch_resample(p, axis, index, weights))


@rule("resample_backward")
def _resample_backward(level: Level, g: Any, dim: int, index: Any, weights: Any, size: int) -> Any:
    return along(level, g, dim, "resample", lambda p, axis: lib.norch_resample_backward(p, axis, index, weights, size))


@rule("softmax")
def _softmax(level: Level, x: Any, dim: int, log: bool) -> Any:
    return along(level, x, dim, "softmax", lambda p, axis: lib.norch_softmax(p, axis, log))


@rule("softmax_backward")
def _softmax_backward(level: Level, g: Any, result: Any, dim: int, log: bool) -> Any:
    axis, both = axis_of(result, dim, "softmax"), (samples(g, level), samples(result, level))
    if result.ndim:
        return sample(lib.norch_softmax_backward(*both, axis, log), level)
    out = lib.norch_softmax_backward(*(lib.norch_unsqueeze(one, 1) for one in both), 1, log)
    return sample(lib.norch_squeeze(out, (1,)), level)


@rule("argsort")
def _argsort(level: Level, x: Any, dim: int, k: int, descending: bool, values: Any) -> Any:
    axis, p = axis_of(x, dim, "sort"), x._physical
    p = p if x.ndim else lib.norch_unsqueeze(p, 1)
    shape = list(lib.norch_shape(p))
    if k >= 0:
        shape[axis] = min(k, shape[axis])
    taken = None if values is None else p.new_empty(tuple(shape))
    out = lib.norch_argsort(p, axis, k, descending, taken)
    if not x.ndim:
        out, taken = (None if one is None else lib.norch_squeeze(one, (1,)) for one in (out, taken))
    if values is not None:
        become(values, taken, level)
    return sample(out, level)


@rule("order_index")
def _order_index(level: Level, x: Any, dim: int, k: int) -> Any:
    return along(level, x, dim, "sort", lambda p, axis: lib.norch_order_index(p, axis, k))


@rule("sorted")
def _sorted(level: Level, x: Any, dim: int, descending: bool) -> Any:
    return along(level, x, dim, "sort", lambda p, axis: lib.norch_sorted(p, axis, descending))


@rule("searchsorted")
def _searchsorted(level: Level, boundaries: Any, values: Any, right: bool) -> Any:
    if not is_here(boundaries, level) and boundaries.ndim == 1:
        return sample(lib.norch_searchsorted(boundaries, values._physical, right), level)
    if boundaries.ndim == 1:  # boundaries of each sample: values as one row
        p = samples(values, level)
        rows = lib.norch_reshape(p, (level.size, -1 if p._numel else 0))
        out = lib.norch_searchsorted(boundaries._physical, rows, right)
        return sample(lib.norch_view(out, lib.norch_shape(p)), level)
    if not boundaries.ndim:
        raise ShapeError("searchsorted: the sorted tensor has no dimension")
    both = samples(boundaries, level), samples(values, level)
    return sample(lib.norch_searchsorted(*both, right), level)
