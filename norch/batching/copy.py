"""Batching rules of copies, casts, joins and constants."""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from ..autograd.levels import Level
from ..errors import BoundsError, ShapeError
from .level import aligned, axis_of, become, is_here, rule, same_call, sample, samples, written

same_call("clone", "cast", "full_like", "empty_like")


@rule("contiguous")
def _contiguous(level: Level, x: Any) -> Any:
    p = x._physical
    out = lib.norch_contiguous(p)
    return x if out is p else sample(out, level)


@rule("to_device")
def _to_device(level: Level, x: Any, device: Any, non_blocking: bool) -> Any:
    p = x._physical
    out = lib.norch_to_device(p, device, non_blocking)
    return x if out is p else sample(out, level)


@rule("copy")
def _copy(level: Level, x: Any, source: Any) -> None:
    into, extra = written("copy_", x, level), source.ndim - x.ndim
    if extra > 0:
        lib.norch_copy(lib.norch_select(into, 0, 0), lib.norch_empty(source.shape, x._dtype, (0, 0)))  # it raises
    lib.norch_copy(into, aligned(source, level, x.ndim))


@rule("set_data")
def _set_data(level: Level, x: Any, other: Any) -> None:
    if is_here(other, level):
        become(x, other._physical, level)
    else:
        become(x, lib.norch_expand(other, (level.size, *lib.norch_shape(other))), level)


def _dims(x: Any) -> int:
    """The number of dimensions of x; 0 for an empty vector, which cat() skips."""
    return 0 if x.ndim == 1 and x._numel == 0 else x.ndim


@rule("cat")
def _cat(level: Level, tensors: Any, dim: int) -> Any:
    listed = list(tensors)
    for i, x in enumerate(listed):
        if not x.ndim:
            raise ShapeError(f"cat: operand {i} is 0-d; stack() joins 0-d tensors")
    ndim = max(_dims(x) for x in listed)
    kept = [x for x in listed if _dims(x) or not ndim]
    first = next(x for x in kept if is_here(x, level)) if any(is_here(x, level) for x in kept) else kept[0]
    out = lib.norch_cat([samples(x, level) for x in kept], axis_of(first, dim, "cat"))
    wanted = lib.norch_result_type(listed)  # the dtype of all inputs
    return sample(out if out._dtype == wanted else lib.norch_cast(out, wanted), level)


@rule("pad")
def _pad(level: Level, x: Any, before: Any, after: Any, mode: int, value: Any) -> Any:
    return sample(lib.norch_pad(x._physical, before, after, mode, value), level)  # pads the last axes


@rule("stack")
def _stack(level: Level, tensors: Any, dim: int) -> Any:
    n = tensors[0].ndim + 1
    if not -n <= dim < n:
        raise BoundsError(f"stack: dimension {dim} is out of range [{-n}, {n - 1}]")
    return sample(lib.norch_stack([samples(x, level) for x in tensors], dim + 1 if dim >= 0 else dim), level)
