"""Batching rules of reads and writes at indices. If indices differ between samples, the sample's number becomes another
index."""

from __future__ import annotations

from typing import Any

from .._binding.library import constants, lib
from ..autograd.levels import Level
from .level import aligned, axis_of, is_here, moved, one_sample, rule, sample, samples, written

_GET, _PUT, _INT64 = constants["INDEX_GET"], constants["INDEX_PUT"], constants["INT64"]


def _of_samples(level: Level, indices: Any, axes: Any) -> tuple[list[Any], list[int]]:
    """The indices and their axes, with an index for the samples' axis in front."""
    ndim = max(index.ndim for index in indices)
    numbers: Any = lib.norch_arange(level.size, _INT64, 0.0, 1.0, 0, 1)
    place = indices[0]._device_type, indices[0]._device_index
    numbers = lib.norch_to_device(lib.norch_view(numbers, (level.size, *[1] * ndim)), place, False)
    return [numbers, *(aligned(index, level, ndim) for index in indices)], [0, *(axis + 1 for axis in axes)]


@rule("index_get")
def _index_get(level: Level, x: Any, kind: int, indices: Any, axes: Any, named: Any, lead: int) -> Any:
    if not any(is_here(index, level) for index in indices):
        shifted = [axis + 1 for axis in axes]
        return sample(lib.norch_index_get(x._physical, kind, indices, shifted, named, lead + 1), level)
    if is_here(x, level):
        at, along = _of_samples(level, indices, axes)
        out = lib.norch_index_get(x._physical, kind, at, along, [0, *named], lead)
    else:
        ndim = max(index.ndim for index in indices)
        at = [aligned(index, level, ndim) for index in indices]
        out = lib.norch_index_get(x, kind, at, axes, named, lead)
    return sample(moved(out, lead, 0), level)


@rule("index_put")
def _index_put(
    level: Level, x: Any, kind: int, indices: Any, axes: Any, named: Any, lead: int, values: Any, in_place: bool
) -> Any:
    into = written("index_put_", x, level) if in_place else samples(x, level)
    ndim = x.ndim - len(indices) + max(index.ndim for index in indices)  # dimensions of the written elements
    if values.ndim > ndim:  # the call for one sample raises
        first = [one_sample(tensor, 0, level) for tensor in (values, *indices)]
        lib.norch_index_put(lib.norch_select(into, 0, 0), kind, first[1:], axes, named, lead, first[0], False)
    batched = aligned(values, level, ndim)
    if any(is_here(index, level) for index in indices):
        at, along = _of_samples(level, indices, axes)
        if is_here(values, level):
            batched = moved(batched, 0, lead)
        elif values.ndim > ndim - lead:
            for _ in range(ndim - values.ndim):
                batched = lib.norch_unsqueeze(batched, 0)
            batched = lib.norch_unsqueeze(batched, lead)
        out = lib.norch_index_put(into, kind, at, along, [0, *named], lead, batched, in_place)
    else:
        shifted = [axis + 1 for axis in axes]
        out = lib.norch_index_put(into, kind, indices, shifted, named, lead + 1, batched, in_place)
    return x if in_place else sample(out, level)


def _axis(x: Any, level: Level) -> Any:
    """The samples of x with at least one axis each."""
    p = samples(x, level)
    return p if x.ndim else lib.norch_unsqueeze(p, 1)


@rule("gather")
def _gather(level: Level, x: Any, dim: int, index: Any) -> Any:
    out = lib.norch_gather(_axis(x, level), axis_of(x, dim, "gather"), _axis(index, level))
    return sample(out if index.ndim else lib.norch_squeeze(out, (1,)), level)


@rule("scatter")
def _scatter(level: Level, x: Any, kind: int, dim: int, index: Any, src: Any, in_place: bool) -> Any:
    into = written("scatter_", x, level) if in_place else samples(x, level)
    at = _axis(index, level)
    if src.ndim:
        values = samples(src, level)
    elif not is_here(src, level):
        values = src  # the same for all samples
    else:
        values = lib.norch_expand(aligned(src, level, at.ndim - 1), lib.norch_shape(at))
    whole = into if x.ndim else lib.norch_unsqueeze(into, 1)
    out = lib.norch_scatter(whole, kind, axis_of(x, dim, "scatter"), at, values, in_place)
    if in_place:
        return x
    return sample(out if x.ndim else lib.norch_squeeze(out, (1,)), level)


def _places(mask: Any) -> tuple[list[Any], list[int], list[int]]:
    """The positions where a mask, the same for all samples, is true: an index for each axis after the samples', these
    axes, and the axes as messages name them."""
    rows, axes = lib.norch_nonzero(mask, True), list(range(mask.ndim))
    return [lib.norch_select(rows, 0, i) for i in axes], [i + 1 for i in axes], axes


@rule("mask_get")
def _mask_get(level: Level, x: Any, mask: Any) -> Any:
    lib.norch_nonzero(mask, True)  # raises for a batched mask
    return sample(lib.norch_index_get(x._physical, _GET, *_places(mask), 1), level)


@rule("mask_put")
def _mask_put(level: Level, x: Any, mask: Any, values: Any) -> None:
    into = written("index_put_", x, level)
    lib.norch_index_put(into, _PUT, *_places(mask), 1, aligned(values, level, 1), True)
